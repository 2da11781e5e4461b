package integration_test

import (
	"fmt"
	"strings"
	"testing"

	"broker/integration/harness"
	"broker/integration/server"
)

// qlessClients are programs on published clients of Redis that play the flows of Qless clients. Each takes the address
// and the password, and the flows that it prints are those that held.
var qlessClients = []struct {
	name  string
	argv  func(t *testing.T) []string
	flows []string
}{
	{
		"python3-redis",
		func(t *testing.T) []string {
			harness.Need(t, "python3-redis")
			return []string{"/usr/bin/python3", harness.Script(t, "python/redis_qless.py")}
		},
		[]string{
			"put_and_get", "worker_loop", "failures", "lost_locks", "dependencies", "recurring", "tags_and_tracking",
			"queues_and_config", "statistics", "messages", "ways_of_clients",
		},
	},
	{
		"node redis",
		func(t *testing.T) []string {
			harness.NeedNode(t)
			return []string{"node", harness.Script(t, "node/qless.js")}
		},
		[]string{"connects", "runsJobs", "listens", "pipelines"},
	},
}

func TestQlessFlowsOfPublishedRedisClients(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for _, client := range qlessClients {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			argv := client.argv(t)
			cert, key, _ := selfSigned(t)
			for _, way := range []struct{ name, config, ca, password string }{
				{name: "plain"},
				{"TLS and a password", fmt.Sprintf("[qless]\npassword = \"secret\"\ntls_cert = %q\ntls_key = %q\n",
					cert, key), cert, "secret"},
				{name: "a namespace", config: "[qless]\nnamespace = \"n.\"\n"},
			} {
				t.Run(way.name, func(t *testing.T) {
					t.Parallel()
					addr, err := server.FreeAddr()
					check(t, err)
					harness.Start(t,
						harness.Options{Durability: "none", Config: way.config, Args: []string{"--qless", addr}})
					printed := harness.Run(t, harness.Command{
						Argv: append(argv[:len(argv):len(argv)], addr, way.password),
						Env:  []string{"REDIS_CA=" + way.ca},
					})
					equal(t, "flows", strings.Join(strings.Fields(printed), " "), strings.Join(client.flows, " "))
				})
			}
		})
	}
}
