package sqs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"broker/core"
	"broker/core/client"
)

// Names of documents, which are stored on disk.
const (
	queueDocs = "sqs/queue/"
	taskDocs  = "sqs/task/"
)

// queue holds the settings of a queue by SQS clients. It is immutable: a change makes a new one.
type queue struct {
	Name       string            `json:"name"`
	Attributes map[string]string `json:"attributes,omitempty"` // only attributes that were set
	Tags       map[string]string `json:"tags,omitempty"`
	CreatedAt  int64             `json:"created_at"` // Unix seconds
	ModifiedAt int64             `json:"modified_at"`
	FIFO       bool              `json:"fifo,omitempty"`
	Fair       bool              `json:"fair,omitempty"` // its message groups take turns

	// PurgedAt is part of the deduplication keys, so that a purge or a new queue with the same name ignores old keys.
	PurgedAt core.Instant `json:"purged_at,omitempty"`

	redrive redrive // of RedrivePolicy; no target: none
}

// get returns an attribute that was set or has a default; empty: neither.
func (q *queue) get(name string) string {
	if value, set := q.Attributes[name]; set {
		return value
	}
	s := settingOf(name)
	if s == nil || s.onlyFIFO && !q.FIFO {
		return ""
	}
	return s.fallback
}

// number returns a numeric attribute.
func (q *queue) number(name string) int {
	n, _ := strconv.Atoi(q.get(name)) // checked when it was set
	return n
}

// with returns a copy with changed attributes. Empty values of policies remove them.
func (q *queue) with(attributes map[string]string, now core.Instant) *queue {
	fresh := *q
	fresh.Attributes = maps.Clone(q.Attributes)
	if fresh.Attributes == nil {
		fresh.Attributes = make(map[string]string)
	}
	for name, value := range attributes {
		if value == "" {
			delete(fresh.Attributes, name)
		} else {
			fresh.Attributes[name] = value
		}
	}
	fresh.ModifiedAt = now.Time().Unix()
	fresh.redrive, _ = parseRedrive(fresh.Attributes[redrivePolicy])
	return &fresh
}

// Load reads the stored queues and move tasks, before nodes that follow ask for them.
func (f *Frontend) Load() error {
	if f.loaded {
		return nil
	}
	f.loaded = true
	c := f.open(caller{internal: true})
	defer c.Close()
	err := f.eachDocument(c, queueDocs, func(value []byte) error {
		q := &queue{}
		if err := json.Unmarshal(value, q); err != nil {
			return err
		}
		q.redrive, _ = parseRedrive(q.Attributes[redrivePolicy])
		f.queues[q.Name] = q
		return nil
	})
	if err != nil {
		return err
	}
	return f.loadTasks(c)
}

func (f *Frontend) eachDocument(c *client.Client, prefix string, do func(value []byte) error) error {
	after := ""
	for {
		r, err := c.Ask(&core.ReadDocuments{Prefix: prefix, After: after})
		if err != nil {
			return fmt.Errorf("read documents behind %q: %w", after, err)
		}
		if len(r.Documents) == 0 {
			return nil
		}
		for _, d := range r.Documents {
			if err := do(d.Value); err != nil {
				return fmt.Errorf("document %q: %w", d.Name, err)
			}
			after = d.Name
		}
	}
}

// known returns a queue that SQS clients have created or changed; nil: none.
func (f *Frontend) known(name string) *queue {
	f.mu.RLock()
	q := f.queues[name]
	f.mu.RUnlock()
	if q == nil && f.follows() {
		return f.learn(name)
	}
	return q
}

// find returns a queue for a request. An answer that the queue does not exist waits until that is durable, so the
// caller must not hold changes.
func (q *request) find(name string) (*queue, error) {
	if known := q.front.known(name); known != nil {
		return known, nil
	}
	c := q.front.open(q.from)
	defer c.Close()
	found, commit, err := q.front.lookup(c, name)
	if err == nil {
		return found, nil
	}
	if err := c.Committed(q.ctx, commit); err != nil {
		return nil, err
	}
	return nil, err
}

// find returns a queue without waiting for a commit.
func (f *Frontend) find(name string) (*queue, error) {
	if known := f.known(name); known != nil {
		return known, nil
	}
	c := f.open(caller{})
	defer c.Close()
	found, _, err := f.lookup(c, name)
	return found, err
}

// lookup asks as a client for a queue that SQS clients have not made, and returns the commit that the answer depends
// on. A queue from another protocol has the default settings.
func (f *Frontend) lookup(c *client.Client, name string) (*queue, core.Commit, error) {
	info, commit, err := f.ask(c, name)
	if err != nil {
		return nil, commit, err
	}
	if info == nil {
		return nil, commit, noQueue()
	}
	at := info.KnownSince.Time().Unix()
	return &queue{Name: name, CreatedAt: at, ModifiedAt: at}, commit, nil
}

// inspect returns what the broker knows about a queue; nil if it does not exist.
func (f *Frontend) inspect(name string) (*core.QueueInfo, error) {
	c := f.open(caller{})
	defer c.Close()
	info, _, err := f.ask(c, name)
	return info, err
}

// ask is inspect as a client, with the commit that the answer depends on.
func (f *Frontend) ask(c *client.Client, name string) (*core.QueueInfo, core.Commit, error) {
	replies := c.AskAll(&core.InspectQueue{Tag: 1, Queue: f.coreName(name)})
	for _, r := range replies {
		switch {
		case r.Kind == core.Queues && len(r.Queues) > 0:
			return &r.Queues[0], r.Commit, nil
		case r.Kind == core.Failed && !errors.Is(r.Err, core.ErrNoQueue):
			return nil, r.Commit, r.Err
		}
	}
	return nil, client.Latest(replies), nil
}

// store writes a queue to the store and applies it, after some operations. The caller holds changes.
func (f *Frontend) store(c *client.Client, q *queue, before ...core.Op) (core.Commit, error) {
	value, err := json.Marshal(q)
	if err != nil {
		return 0, fmt.Errorf("encode queue %s: %w", q.Name, err)
	}
	ops := append(before, f.redriveRules(q)...)
	ops = append(ops,
		&core.WriteDocuments{Tag: 1, Documents: []core.MetaEntry{{Name: queueDocs + q.Name, Value: value}}})
	replies := c.AskAll(ops...)
	for _, r := range replies {
		if r.Kind == core.Failed && !errors.Is(r.Err, core.ErrConfigured) {
			return 0, r.Err // sharing from the configuration takes precedence
		}
	}
	f.mu.Lock()
	f.queues[q.Name] = q
	f.mu.Unlock()
	f.tellChanged(q.Name)
	return client.Latest(replies), nil
}

// redriveRules returns the operations that make the core move dead letters: those of a queue, and those of other queues
// for which it is the dead-letter queue.
func (f *Frontend) redriveRules(q *queue) []core.Op {
	ops := []core.Op{f.redriveRule(q, q)}
	for _, source := range f.sourcesOf(q.Name) {
		if source != q.Name {
			ops = append(ops, f.redriveRule(f.known(source), q))
		}
	}
	return ops
}

// redriveRule returns the operation that makes the core move the dead letters of a queue. changed is the new state of
// one of the queues.
func (f *Frontend) redriveRule(of, changed *queue) core.Op {
	op := &core.MoveSpent{Tag: 1, Queue: f.coreName(of.Name)}
	to := of.redrive.target
	if to == "" || to == of.Name {
		return op
	}
	op.Rule = core.SpentRule{Leases: uint32(of.redrive.most), To: f.coreName(to), FromMove: of.FIFO}
	if to == changed.Name {
		op.Rule.ExpiresIn = seconds(changed.number(retentionPeriod))
	} else if dead, err := f.find(to); err == nil {
		op.Rule.ExpiresIn = seconds(dead.number(retentionPeriod))
	}
	return op
}

// groupTag is the tag for a message's group. It is stored on disk.
const groupTag = "sqs.group"

// share returns the operation that makes the core keep the order of groups, or let them take turns.
func (f *Frontend) share(q *queue) core.Op {
	key := core.JobKey{Kind: core.KeyTag, Tag: groupTag}
	return &core.ShareQueue{
		Tag: 1, Sharing: core.Sharing{Queue: f.coreName(q.Name), Key: key, Ordered: q.FIFO, Fair: !q.FIFO},
	}
}

type createQueueInput struct {
	QueueName  string
	Attributes map[string]string `query:"Attribute"`
	Tags       map[string]string `json:"tags" query:"Tag,Key,Value"`
}

type queueURLOutput struct {
	QueueURL string `json:"QueueUrl" query:"QueueUrl"`
}

func (q *request) createQueue(in *createQueueInput) (any, error) {
	f, name := q.front, in.QueueName
	if name == "" {
		return nil, missing("QueueName")
	}
	if err := q.mayOne(operate, name); err != nil {
		return nil, err
	}
	fifo := strings.EqualFold(in.Attributes[fifoQueue], "true")
	if !validQueueName(name) || strings.HasSuffix(name, fifoSuffix) != fifo {
		return nil, badValue(shorten(name), "QueueName",
			"Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length; FIFO queues end in .fifo.")
	}
	if err := checkSettings(in.Attributes, fifo); err != nil {
		return nil, err
	}
	if len(in.Tags) > maxQueueTags {
		return nil, badValue(len(in.Tags), "Tags", "Too many tags.")
	}
	c := f.open(q.from)
	defer c.Close()
	f.changes.Lock()
	commit, err := q.createLocked(c, in, fifo)
	f.changes.Unlock()
	if err != nil {
		return nil, err
	}
	if err := c.Committed(q.ctx, commit); err != nil {
		return nil, err
	}
	return &queueURLOutput{q.urlOf(name)}, nil
}

// createLocked makes a queue, or finds an existing queue with the requested attributes.
func (q *request) createLocked(c *client.Client, in *createQueueInput, fifo bool) (core.Commit, error) {
	f := q.front
	if old := f.known(in.QueueName); old != nil {
		for name, value := range in.Attributes {
			if !sameSetting(name, old.get(name), value) {
				return 0, refuse(queueNameExists,
					"A queue already exists with the same name and a different value for attribute %s", name)
			}
		}
		// Its creation, or its last change, may not be durable yet. A commit of another request would not wake this
		// one.
		return client.Latest(c.AskAll(&core.LastCommit{Tag: 1})), nil
	}
	if err := q.checkPolicies(in.QueueName, fifo, in.Attributes); err != nil {
		return 0, err
	}
	now := f.broker.Now()
	fresh := (&queue{
		Name: in.QueueName, Tags: in.Tags, CreatedAt: now.Time().Unix(), FIFO: fifo, PurgedAt: now,
	}).with(in.Attributes, now)
	ops := []core.Op{&core.CreateQueue{Tag: 1, Queue: f.coreName(in.QueueName)}}
	if fifo {
		ops = append(ops, f.share(fresh))
	}
	commit, err := f.store(c, fresh, ops...)
	if err == nil {
		q.audit("queue.create", in.QueueName, "")
	}
	return commit, err
}

// urlOf is the URL of a queue.
func (q *request) urlOf(name string) string { return q.host + "/" + q.front.opts.Account + "/" + name }

// arnOf is the ARN of a queue.
func (f *Frontend) arnOf(name string) string {
	return "arn:aws:sqs:" + f.opts.Region + ":" + f.opts.Account + ":" + name
}

type getQueueURLInput struct {
	QueueName string
}

func (q *request) getQueueURL(in *getQueueURLInput) (any, error) {
	if in.QueueName == "" {
		return nil, missing("QueueName")
	}
	if err := q.mayOne(anyRole, in.QueueName); err != nil {
		return nil, err
	}
	if _, err := q.find(in.QueueName); err != nil {
		return nil, err
	}
	return &queueURLOutput{q.urlOf(in.QueueName)}, nil
}

// deleteQueue removes a queue with its messages and settings.
func (q *request) deleteQueue(old *queue, _ *target) (any, error) {
	f, name := q.front, q.front.coreName(old.Name)
	f.changes.Lock()
	defer f.changes.Unlock()
	c := f.open(q.from)
	defer c.Close()
	forgotten, err := c.Ask(&core.WriteDocuments{Tag: 1, Documents: []core.MetaEntry{{Name: queueDocs + old.Name}}})
	if err != nil {
		return nil, err // else it would be back after a restart
	}
	f.mu.Lock()
	delete(f.queues, old.Name)
	f.mu.Unlock()
	f.tellChanged(old.Name)
	if err := f.dropTasks(c, f.tasksOf(old.Name)); err != nil {
		return nil, err
	}
	commit := client.Latest(c.AskAll(
		&core.MoveSpent{Tag: 1, Queue: name},
		&core.RemoveLimit{Tag: 1, ID: core.LimitID{Queue: name, Scope: core.ScopeKey}},
		&core.ShareQueue{Tag: 1, Sharing: core.Sharing{Queue: name}},
	))
	purged, err := purge(c, name, true)
	if err != nil {
		return nil, err
	}
	q.audit("queue.delete", old.Name, "")
	return nil, c.Committed(q.ctx, max(forgotten.Commit, commit, purged))
}

func (q *request) purgeQueue(old *queue, _ *target) (any, error) {
	c := q.front.open(q.from)
	defer c.Close()
	commit, err := purge(c, q.front.coreName(old.Name), false)
	if err != nil {
		return nil, err
	}
	q.audit("queue.purge", old.Name, "")
	if old.FIFO {
		_, err := q.change(old.Name, func(old *queue) (*queue, error) {
			fresh := *old
			fresh.PurgedAt = q.front.broker.Now()
			return &fresh, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return nil, c.Committed(q.ctx, commit)
}

// purge removes all current messages of a queue, including messages in flight and delayed messages. With drop it also
// removes the queue.
func purge(c *client.Client, name string, drop bool) (commit core.Commit, err error) {
	op := &core.Purge{Tag: 1, Queue: name, Drop: drop}
	for {
		r, err := c.Ask(op)
		if err != nil {
			return 0, err
		}
		commit = max(commit, r.Commit)
		if op.Cursor = r.Cursor; op.Cursor == 0 {
			return commit, nil
		}
	}
}
