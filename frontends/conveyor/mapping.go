package conveyor

import (
	"strings"

	"broker/core"
)

// queueOf is the broker's name for a client's queue. Queues of the default namespace are shared under their own names;
// other namespaces are separate.
func (f *Frontend) queueOf(namespace, name string) string {
	if namespace != defaultNamespace {
		name = namespace + ":" + name
	}
	return f.opts.Namespace + name
}

// nameOf is the name of a queue for clients of a namespace. ok is false for a queue outside the namespace.
func (f *Frontend) nameOf(namespace, queue string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(queue, f.opts.Namespace); !ok {
		return "", false
	}
	if namespace != defaultNamespace {
		return strings.CutPrefix(name, namespace+":")
	}
	return name, !strings.Contains(name, ":")
}

// jobOf makes a job of the broker.
func (f *Frontend) jobOf(e *envelope, namespace, queue string) *core.Job {
	typ := e.typ
	if typ == "" {
		typ = queue
	}
	j := &core.Job{
		ID: e.uuid, Origin: core.Conveyor, Queue: f.queueOf(namespace, queue), Type: typ,
		Body: []byte(string(e.payload)), Format: core.Raw, Attributes: e.attributes(),
		MaxFails: maxFails, Exhausted: core.ExhaustedBury, LeaseEnd: core.LeaseEndAttempt,
	}
	if e.maxRetries > 0 {
		j.MaxFails, j.Own = uint32(e.maxRetries), core.PolicyMaxFails
	}
	if e.retry > 0 {
		j.PriorFails = uint32(e.retry)
	}
	j.MaxFails = max(j.MaxFails, j.PriorFails+1)
	j.ReadyAt = core.InstantOf(e.runAt)
	if f.opts.Route != nil {
		if q, t := f.opts.Route(queue, typ); q != queue {
			j.Queue, j.Type = q, t
		} else {
			j.Type = t
		}
	}
	return j
}

// encodeJob encodes a job for clients. fails is its number of failures, which workers of other protocols may have
// changed.
func (f *Frontend) encodeJob(namespace string, j *core.Job, queue, typ string, fails uint32) []byte {
	if j.Origin == core.Conveyor {
		if raw, ok := encodeRaw(j.Attributes, j.Body); ok {
			if e, err := parseEnvelope(raw); err == nil && e.retry != int64(fails) {
				raw = withRetry(raw, fails)
			}
			if j.Rares().RerunOf != 0 {
				raw = withUUID(raw, j.Identity())
			}
			return raw
		}
	}
	name, ok := f.nameOf(namespace, queue)
	if !ok {
		name = queue
	}
	if typ == queue {
		typ = name
	}
	return encodeEnvelope(j.Identity(), typ, name, j.Body)
}
