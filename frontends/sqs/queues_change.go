package sqs

import (
	"encoding/json"
	"fmt"
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

// policyDocument is a Policy in the form of AddPermission. It is kept and shown, and gives no rights: those come from
// the broker's principals. See denies.
type policyDocument struct {
	Version   string
	ID        string `json:"Id"`
	Statement []json.RawMessage
}

type statement struct {
	Sid       string
	Effect    string
	Principal map[string]any
	Action    any
	Resource  string
}

type addPermissionInput struct {
	target
	Label         string
	AWSAccountIDs []string `json:"AWSAccountIds" query:"AWSAccountId"`
	Actions       []string `query:"ActionName"`
}

func (q *request) addPermission(of *queue, in *addPermissionInput) (any, error) {
	switch {
	case in.Label == "":
		return nil, missing("Label")
	case len(in.AWSAccountIDs) == 0:
		return nil, missing("AWSAccountIds")
	case len(in.Actions) == 0:
		return nil, missing("Actions")
	case len(in.Label) > maxNameBytes || strings.ContainsFunc(in.Label, func(r rune) bool { return !isWordRune(r) }):
		return nil, badValue(shorten(in.Label), "Label",
			"Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.")
	}
	var who, what []string
	for _, account := range in.AWSAccountIDs {
		who = append(who, "arn:aws:iam::"+account+":root")
	}
	for _, action := range in.Actions {
		if action != "*" && (q.front.meter[action] == nil || action == noAction) {
			return nil, badValue("SQS:"+shorten(action), "ActionName",
				"Please refer to the appropriate WSDL for a list of valid actions.")
		}
		what = append(what, "SQS:"+action)
	}
	fresh := statement{in.Label, "Allow", map[string]any{"AWS": single(who)}, single(what), q.front.arnOf(of.Name)}
	return q.editPolicy(of.Name, func(p *policyDocument) error {
		if slices.Contains(p.labels(), in.Label) {
			return badValue(in.Label, "Label", "Already exists.")
		}
		raw, err := json.Marshal(fresh)
		p.Statement = append(p.Statement, raw)
		return err
	})
}

// single is a list, encoded as its element if there is only one.
func single(list []string) any {
	if len(list) == 1 {
		return list[0]
	}
	return list
}

type removePermissionInput struct {
	target
	Label string
}

func (q *request) removePermission(of *queue, in *removePermissionInput) (any, error) {
	if in.Label == "" {
		return nil, missing("Label")
	}
	return q.editPolicy(of.Name, func(p *policyDocument) error {
		i := slices.Index(p.labels(), in.Label)
		if i < 0 {
			return badValue(shorten(in.Label), "Label", "can't find label.")
		}
		p.Statement = slices.Delete(p.Statement, i, i+1)
		return nil
	})
}

// labels returns the labels of the statements.
func (p *policyDocument) labels() []string {
	labels := make([]string, len(p.Statement))
	for i, raw := range p.Statement {
		var s struct{ Sid string }
		if json.Unmarshal(raw, &s) == nil {
			labels[i] = s.Sid
		}
	}
	return labels
}

// editPolicy changes the Policy of a queue. A policy without statements is removed.
func (q *request) editPolicy(name string, edit func(*policyDocument) error) (any, error) {
	_, err := q.change(name, func(old *queue) (*queue, error) {
		p := policyDocument{Version: "2008-10-17", ID: q.front.arnOf(name) + "/SQSDefaultPolicy"}
		if value := old.get(policyAttribute); value != "" {
			if err := json.Unmarshal([]byte(value), &p); err != nil {
				return nil, badAttribute(policyAttribute)
			}
		}
		if err := edit(&p); err != nil {
			return nil, err
		}
		value := ""
		if len(p.Statement) > 0 {
			raw, err := json.Marshal(p)
			if err != nil {
				return nil, fmt.Errorf("encode policy: %w", err)
			}
			value = string(raw)
		}
		return old.with(map[string]string{policyAttribute: value}, q.front.broker.Now()), nil
	})
	if err == nil {
		q.audit("queue.change", name, policyAttribute)
	}
	return nil, err
}

// audit adds a change to the audit log.
func (q *request) audit(action, name, detail string) {
	q.front.opts.Audit(access.Change{
		Who: q.from.name(), Address: q.from.address, Protocol: core.SQS, Action: action, Target: q.front.coreName(name),
		Detail: detail,
	})
}
