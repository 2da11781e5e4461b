package sqs

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"broker/access"
	"broker/core"
	"broker/core/client"
)

type setAttributesInput struct {
	target
	Attributes map[string]string `query:"Attribute"`
}

// setQueueAttributes changes attributes. A new retention period also applies to existing messages.
func (q *request) setQueueAttributes(of *queue, in *setAttributesInput) (any, error) {
	if len(in.Attributes) == 0 {
		return nil, missing("Attributes")
	}
	if err := checkSettings(in.Attributes, of.FIFO); err != nil {
		return nil, err
	}
	if err := q.checkPolicies(of.Name, of.FIFO, in.Attributes); err != nil {
		return nil, err
	}
	fresh, err := q.change(of.Name, func(old *queue) (*queue, error) {
		return old.with(in.Attributes, q.front.broker.Now()), nil
	})
	if err != nil {
		return nil, err
	}
	q.audit("queue.change", of.Name, namesIn(maps.Keys(in.Attributes)))
	if before := of.number(retentionPeriod); fresh.number(retentionPeriod) != before {
		return nil, q.retain(fresh)
	}
	return nil, nil
}

// change changes a queue and waits for the commit.
func (q *request) change(name string, alter func(old *queue) (*queue, error)) (*queue, error) {
	f := q.front
	c := f.open(q.from)
	defer c.Close()
	fresh, commit, err := func() (*queue, core.Commit, error) {
		f.changes.Lock()
		defer f.changes.Unlock()
		old, err := f.find(name)
		if err != nil {
			return nil, 0, err
		}
		fresh, err := alter(old)
		if err != nil {
			return nil, 0, err
		}
		commit, err := f.store(c, fresh)
		return fresh, commit, err
	}()
	if err != nil {
		return nil, err
	}
	return fresh, c.Committed(q.ctx, commit)
}

// checkPolicies checks the dead-letter settings of a queue against the named queues.
func (q *request) checkPolicies(name string, fifo bool, attributes map[string]string) error {
	if value := attributes[redriveAllow]; value != "" {
		if _, ok := parseRedriveAllow(value); !ok {
			return badAttribute(redriveAllow)
		}
	}
	value := attributes[redrivePolicy]
	if value == "" {
		return nil
	}
	policy, reason := parseRedrive(value)
	if reason != "" {
		return badValue(shorten(value), redrivePolicy, reason)
	}
	if err := q.mayOne([]access.Role{access.Produce, access.Operate}, policy.target); err != nil {
		return err
	}
	dead, err := q.front.find(policy.target)
	switch {
	case err != nil:
		return refuse(invalidParameter,
			"Value %s for parameter RedrivePolicy is invalid. Reason: Dead letter target does not exist.",
			shorten(value))
	case dead.FIFO != fifo:
		return refuse(invalidParameter,
			"Value %s for parameter RedrivePolicy is invalid. Reason: Dead-letter queue must be same type of queue as the source.",
			shorten(value))
	}
	if allow, set := parseRedriveAllow(dead.get(redriveAllow)); set && !allow.allows(name) {
		return refuse(invalidParameter,
			"Value %s for parameter RedrivePolicy is invalid. Reason: Queue does not have permission to use the target as a dead-letter queue.",
			shorten(value))
	}
	return nil
}

// retain applies the retention period of a queue to its messages.
func (q *request) retain(of *queue) error {
	c := q.front.open(q.from)
	defer c.Close()
	keep := seconds(of.number(retentionPeriod))
	list := &core.ListJobs{Tag: 1, Queue: q.front.coreName(of.Name), Brief: true, Limit: maxListed}
	var commit core.Commit
	for {
		r, err := c.Ask(list)
		if err != nil {
			return err
		}
		var ops []core.Op
		for i := range r.Jobs {
			j := &r.Jobs[i]
			if j.Origin != core.SQS || !j.State.Unfinished() {
				continue
			}
			until := j.CreatedAt.Add(keep)
			ops = append(ops, &core.Update{
				Tag: 1, Ref: core.Ref{Seq: j.Seq}, If: core.Condition{Queue: list.Queue},
				Set: core.JobChange{ExpiresAt: &until},
			})
		}
		if len(ops) > 0 {
			commit = max(commit, client.Latest(c.AskAll(ops...))) // a removed message needs no new end
		}
		if list.Cursor = r.Cursor; list.Cursor == 0 {
			return c.Committed(q.ctx, commit)
		}
	}
}

type tagQueueInput struct {
	target
	Tags map[string]string `query:"Tag,Key,Value"`
}

func (q *request) tagQueue(of *queue, in *tagQueueInput) (any, error) {
	if len(in.Tags) == 0 {
		return nil, missing("Tags")
	}
	_, err := q.change(of.Name, func(old *queue) (*queue, error) {
		fresh := *old
		fresh.Tags = maps.Clone(old.Tags)
		if fresh.Tags == nil {
			fresh.Tags = make(map[string]string)
		}
		maps.Copy(fresh.Tags, in.Tags)
		if len(fresh.Tags) > maxQueueTags {
			return nil, badValue(len(fresh.Tags), "Tags", "Too many tags.")
		}
		return &fresh, nil
	})
	if err == nil {
		q.audit("queue.tag", of.Name, namesIn(maps.Keys(in.Tags)))
	}
	return nil, err
}

// namesIn lists names in order, for the audit log.
func namesIn(names iter.Seq[string]) string { return strings.Join(slices.Sorted(names), ", ") }

type untagQueueInput struct {
	target
	TagKeys []string `query:"TagKey"`
}

func (q *request) untagQueue(of *queue, in *untagQueueInput) (any, error) {
	if len(in.TagKeys) == 0 {
		return nil, missing("TagKeys")
	}
	_, err := q.change(of.Name, func(old *queue) (*queue, error) {
		fresh := *old
		fresh.Tags = maps.Clone(old.Tags)
		for _, key := range in.TagKeys {
			delete(fresh.Tags, key)
		}
		return &fresh, nil
	})
	if err == nil {
		q.audit("queue.untag", of.Name, namesIn(slices.Values(in.TagKeys)))
	}
	return nil, err
}

type tagsOutput struct {
	Tags map[string]string `json:",omitempty" query:"Tag,Key,Value"`
}

func (q *request) listQueueTags(of *queue, _ *target) (any, error) { return &tagsOutput{of.Tags}, nil }

// changePermission is AddPermission and RemovePermission. Rights come from the roles of principals, in every protocol,
// so a permission of a queue would have no effect.
func (q *request) changePermission(*queue, *target) (any, error) { return nil, noPolicies() }

// audit adds a change to the audit log.
func (q *request) audit(action, name, detail string) {
	q.front.opts.Audit(access.Change{
		Who: q.from.name(), Address: q.from.address, Protocol: core.SQS, Action: action, Target: q.front.coreName(name),
		Detail: detail,
	})
}
