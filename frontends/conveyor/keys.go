package conveyor

import "strings"

// kind is the type of data that a key holds. Each command serves a few kinds and refuses the rest.
type kind = uint8

// The kinds of keys, with N the client's namespace.
const (
	keyUnknown    kind = iota
	keyQueue           // N:queue:QUEUE          list of waiting jobs
	keyJob             // N:job:UUID             the job, from its start to its end
	keyChildren        // N:job:UUID:children    list of children that wait for the job
	keyHeirs           // N:job:UUID:onComplete  list of jobs that wait for it and its children
	keyOpen            // N:job:UUID:active      set of children that are not closed
	keyScheduled       // N:scheduled            sorted set of jobs by time
	keyFailed          // N:failed               list of jobs that failed finally
	keyActiveJobs      // N:jobs:active          set of jobs that were popped and not closed
	keyWorkerJobs      // N:worker:active:WORKER set of the jobs of a worker
	keyWorkers         // N:workers:active       sorted set of workers by their last check-in
	keyQueues          // N:queues:active        sorted set of queues by their last check-in
	keyCounter         // N:hist:…, N:j_hist:…, N:w_hist:…
	keyEvents          // N:events               channel
)

// key is a parsed key or channel.
type key struct {
	kind      kind
	namespace string // the client's
	name      string // queue, job or worker; for a counter: the whole key
}

// plainKeys are the keys without a name in them.
var plainKeys = map[string]kind{
	"scheduled": keyScheduled, "failed": keyFailed, "jobs:active": keyActiveJobs, "workers:active": keyWorkers,
	"queues:active": keyQueues, "events": keyEvents,
}

// namedKeys are the prefixes of the other keys.
var namedKeys = []struct {
	start string
	kind  kind
}{
	{"queue:", keyQueue},
	{"job:", keyJob},
	{"worker:active:", keyWorkerJobs},
	{"hist:", keyCounter},
	{"j_hist:", keyCounter},
	{"w_hist:", keyCounter},
}

// jobParts are the suffixes of the keys about a job.
var jobParts = []struct {
	end  string
	kind kind
}{{":children", keyChildren}, {":onComplete", keyHeirs}, {":active", keyOpen}}

// maxNamespace is the longest namespace of a client.
const maxNamespace = 64

// parseKey parses a key. The namespace ends at the first colon: the queue "b:q" of namespace "a" and the queue "q" of
// namespace "a:b" would be one queue of the broker.
func parseKey(text string) key {
	namespace, rest, found := strings.Cut(text, ":")
	if !found || namespace == "" || len(namespace) > maxNamespace {
		return key{}
	}
	k := key{namespace: namespace, kind: plainKeys[rest]}
	if k.kind != keyUnknown {
		return k
	}
	for _, named := range namedKeys {
		name, found := strings.CutPrefix(rest, named.start)
		if !found || name == "" {
			continue
		}
		k.kind, k.name = named.kind, name
		switch k.kind {
		case keyJob:
			for _, part := range jobParts {
				if uuid, found := strings.CutSuffix(name, part.end); found {
					k.kind, k.name = part.kind, uuid
				}
			}
		case keyCounter:
			k.name = rest
		}
		return k
	}
	return key{}
}

// colonNamespace returns the namespace of a key that is only valid if its namespace contains a colon; empty: there is
// none.
func colonNamespace(text string) string {
	if parseKey(text).kind != keyUnknown {
		return ""
	}
	for i, c := range text {
		if c == ':' && parseKey("n"+text[i:]).kind != keyUnknown {
			return text[:i]
		}
	}
	return ""
}
