package console

import (
	"net"
	"slices"
	"strings"

	"broker/operate/service"
)

// firstSteps is shown on the overview of an empty store: addresses for clients, and two programs to copy.
type firstSteps struct {
	Addresses    []fact
	Languages    []choice
	Submit, Work string
}

// language has a producer and a worker in one programming language, with ADDRESS as a placeholder.
type language struct{ name, label, submit, work string }

var languages = []language{
	{
		"broker", "broker", `BROKER_URL=ADDRESS broker push greet '["Ann"]'`,
		"BROKER_URL=ADDRESS broker work greet -- cat",
	},
	{
		"curl", "curl",
		`curl -s ADDRESS/api/v1/jobs -H 'Content-Type: application/json' -d '{"queue": "greet", "args": ["Ann"]}'`,
		`lease=$(curl -s ADDRESS/api/v1/leases -H 'Content-Type: application/json' -d '{"queues": ["greet"], "wait_s": 20}' |
  grep -o '"lease":"[^"]*"' | cut -d '"' -f 4)
curl -s -X POST "ADDRESS/api/v1/leases/$lease/complete"`,
	},
	{
		"python", "Python", `import json, urllib.request

def post(path, body):
    request = urllib.request.Request("ADDRESS/api/v1" + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.loads(urllib.request.urlopen(request).read() or "null")

print(post("/jobs", {"queue": "greet", "args": ["Ann"]})["id"])`,
		`import json, urllib.request

def post(path, body):
    request = urllib.request.Request("ADDRESS/api/v1" + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.loads(urllib.request.urlopen(request).read() or "null")

for lease in post("/leases", {"queues": ["greet"], "wait_s": 20})["leases"]:
    print("Hello,", *lease["job"]["args"])
    post("/leases/" + lease["lease"] + "/complete", {})`,
	},
	{
		"node", "Node", `const post = (path, body) => fetch("ADDRESS/api/v1" + path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
});
post("/jobs", { queue: "greet", args: ["Ann"] }).then((r) => r.json()).then((job) => console.log(job.id));`,
		`const post = (path, body) => fetch("ADDRESS/api/v1" + path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
});
(async () => {
  const { leases } = await (await post("/leases", { queues: ["greet"], wait_s: 20 })).json();
  for (const { lease, job } of leases) {
    console.log("Hello,", ...job.args);
    await post("/leases/" + lease + "/complete", {});
  }
})();`,
	},
	{
		"ruby", "Ruby", `require "json"
require "net/http"

def post(path, body) = Net::HTTP.post(URI("ADDRESS/api/v1" + path), body.to_json, "Content-Type" => "application/json").body

puts JSON.parse(post("/jobs", { queue: "greet", args: ["Ann"] }))["id"]`,
		`require "json"
require "net/http"

def post(path, body) = Net::HTTP.post(URI("ADDRESS/api/v1" + path), body.to_json, "Content-Type" => "application/json").body

JSON.parse(post("/leases", { queues: ["greet"], wait_s: 20 }))["leases"].each do |l|
  puts "Hello, #{l["job"]["args"].first}"
  post("/leases/#{l["lease"]}/complete", {})
end`,
	},
	{
		"php", "PHP", `<?php
function post($path, $body) {
    $request = ["method" => "POST", "header" => "Content-Type: application/json", "content" => json_encode($body)];
    return json_decode(file_get_contents("ADDRESS/api/v1" . $path, false, stream_context_create(["http" => $request])), true);
}
echo post("/jobs", ["queue" => "greet", "args" => ["Ann"]])["id"], "\n";`,
		`<?php
function post($path, $body) {
    $request = ["method" => "POST", "header" => "Content-Type: application/json", "content" => json_encode($body)];
    return json_decode(file_get_contents("ADDRESS/api/v1" . $path, false, stream_context_create(["http" => $request])), true);
}
foreach (post("/leases", ["queues" => ["greet"], "wait_s" => 20])["leases"] as $l) {
    echo "Hello, ", $l["job"]["args"][0], "\n";
    post("/leases/" . $l["lease"] . "/complete", new stdClass);
}`,
	},
}

// firstSteps returns the first steps, or nil once a job was submitted or if the caller may not see all queues.
func (r *request) firstSteps(sum *service.Summary) *firstSteps {
	if sum.Queues > 0 || sum.Totals.Submitted > 0 || !rightsOf(r.caller, "").Produce {
		return nil
	}
	address, name := r.address()
	f := &firstSteps{Addresses: []fact{{Label: "HTTP", Value: address, Note: "API and console"}}}
	for _, protocol := range protocolNames {
		if port := r.console.options.Ports[protocol]; port != "" {
			f.Addresses = append(f.Addresses, fact{Label: protocolLabel(protocol), Value: net.JoinHostPort(name, port)})
		}
	}
	at := max(slices.IndexFunc(languages, func(l language) bool { return l.name == r.query.Get("with") }), 0)
	for i, l := range languages {
		f.Languages = append(f.Languages,
			choice{Value: l.name, Label: l.label, URL: with(r.query, "with", l.name), Chosen: i == at})
	}
	url := strings.NewReplacer("ADDRESS", address)
	f.Submit, f.Work = url.Replace(languages[at].submit), url.Replace(languages[at].work)
	return f
}
