package sqs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/client"
)

// Limits of a message.
const (
	maxAttributes     = 10
	maxAttributeBytes = 256 // of a name and of a type
	maxDelay          = 900
	maxGroupBytes     = 128
	dedupFor          = 5 * time.Minute
	maxTraceBytes     = 1 << 10
)

// messageInput holds the parameters of a message to send.
type messageInput struct {
	MessageBody             *string
	DelaySeconds            *int
	MessageAttributes       map[string]attributeValue `query:"MessageAttribute"`
	MessageSystemAttributes map[string]attributeValue `query:"MessageSystemAttribute"`
	MessageGroupID          *string                   `json:"MessageGroupId" query:"MessageGroupId"`
	MessageDedupID          *string                   `json:"MessageDeduplicationId" query:"MessageDeduplicationId"`
}

type sendInput struct {
	target
	messageInput
}

type sendOutput struct {
	MessageID        string `json:"MessageId" query:"MessageId"`
	MD5OfMessageBody string
	AttributesDigest string `json:"MD5OfMessageAttributes,omitempty" query:"MD5OfMessageAttributes"`
	SystemDigest     string `json:"MD5OfMessageSystemAttributes,omitempty" query:"MD5OfMessageSystemAttributes"`
	SequenceNumber   string `json:",omitempty"`
}

func (q *request) sendMessage(of *queue, in *sendInput) (any, error) {
	m, err := q.check(of, &in.messageInput)
	if err != nil {
		return nil, err
	}
	if size := m.size(); size > min(of.number(maximumSize), q.front.opts.MaxBodyBytes) {
		return nil, refuse(invalidParameter,
			"One or more parameters are invalid. Reason: Message must be shorter than %d bytes.",
			of.number(maximumSize))
	}
	results, err := q.send(of, []*outgoing{m})
	if err != nil {
		return nil, err
	}
	return results[0].out, results[0].err
}

// sent is the result for a message.
type sent struct {
	out *sendOutput
	err error
}

// send submits messages in one call and waits for their commit. Each is accepted or refused independently.
func (q *request) send(of *queue, messages []*outgoing) ([]sent, error) {
	f := q.front
	if err := q.makeFair(of, messages); err != nil {
		return nil, err
	}
	c := f.open(q.from)
	defer c.Close()
	now := f.broker.Now()
	ops, results := make([]core.Op, 0, len(messages)), make([]sent, len(messages))
	places := make([]int, 0, len(messages)) // of the operations
	for i, m := range messages {
		op := &core.Submit{Tag: 1, Job: f.newJob(of, m, now)}
		if !q.from.principal.May(access.Produce, op.Job.Queue) { // the queue after routing
			results[i].err = f.forbid(of.Name)
			continue
		}
		if of.FIFO {
			op.Job.UniqueKey, op.Job.Unique, op.Job.UniqueUntil = dedupKey(of,
				m), core.UniqueCoalesce, now.Add(dedupFor)
			op.Window = op.Job.UniqueUntil
		}
		ops, places = append(ops, op), append(places, i)
	}
	replies := c.AskAll(ops...)
	if len(replies) != len(ops) {
		return nil, client.ErrNoReply
	}
	commit := client.Latest(replies)
	for n := range replies {
		r, i := &replies[n], places[n]
		if r.Kind == core.Failed {
			results[i].err = r.Err
			continue
		}
		m := messages[i]
		out := &sendOutput{
			MD5OfMessageBody: digestOf(m.body), AttributesDigest: digestAttributes(m.carried.Attributes),
			SystemDigest: digestAttributes(m.system),
		}
		if of.FIFO {
			out.SequenceNumber = sequence(r.Seq)
		}
		var at core.Commit
		out.MessageID, at, results[i].err = f.idOf(c, r, m, now)
		commit, results[i].out = max(commit, at), out
	}
	return results, c.Committed(q.ctx, commit)
}

// idOf is the id of a sent message, or of the original if it is a duplicate.
func (f *Frontend) idOf(c *client.Client, r *core.Reply, m *outgoing, now core.Instant) (string, core.Commit, error) {
	switch {
	case !r.Existing && m.id != "":
		return m.id, 0, nil
	case !r.Existing:
		return core.MintedID(r.Seq, now), 0, nil
	case r.Job != nil: // the original has ended
		return identity(r.Job, r.Seq), 0, nil
	}
	info, err := c.Ask(&core.Inspect{Tag: 1, Ref: core.Ref{Seq: r.Seq}})
	switch {
	case errors.Is(err, core.ErrNotFound):
		return "", 0, refuse(unavailable, "The message of which this is a duplicate has just been deleted. Try again.")
	case err != nil:
		return "", 0, err
	case info.Info.Job == nil:
		return "", 0, core.ErrDamaged
	}
	return identity(info.Info.Job, r.Seq), info.Commit, nil
}

// makeFair makes the groups of a standard queue take turns, from the first message with a group on.
func (q *request) makeFair(of *queue, messages []*outgoing) error {
	if of.FIFO || of.Fair || !slices.ContainsFunc(messages, func(m *outgoing) bool { return m.carried.Group != "" }) {
		return nil
	}
	if q.front.follows() {
		return q.askFair(of.Name)
	}
	return q.front.makeFair(q.from, of.Name)
}

// makeFair makes the groups of a standard queue take turns.
func (f *Frontend) makeFair(from caller, queue string) error {
	f.changes.Lock()
	defer f.changes.Unlock()
	old, err := f.find(queue)
	if err != nil || old.Fair {
		return err
	}
	c := f.open(from)
	defer c.Close()
	name := f.coreName(queue)
	r, err := c.Ask(&core.ListLimits{Tag: 1, Queue: name})
	if err != nil {
		return err
	}
	var ops []core.Op
	if !slices.ContainsFunc(r.Sharings, func(s core.Sharing) bool { return s.Queue == name }) {
		ops = append(ops, f.share(old))
	}
	fresh := *old
	fresh.Fair = true
	_, err = f.store(c, &fresh, ops...)
	return err
}

// dedupKey is the deduplication key of a message in a FIFO queue.
func dedupKey(of *queue, m *outgoing) string {
	key := strconv.FormatInt(int64(of.PurgedAt), 36) + " "
	if of.get(dedupScope) == "messageGroup" {
		key += m.carried.Group + " "
	}
	return key + m.carried.Dedup
}

// check checks a message to send, except its size.
func (q *request) check(of *queue, in *messageInput) (*outgoing, error) {
	if in.MessageBody == nil || *in.MessageBody == "" {
		return nil, missing("MessageBody")
	}
	m := &outgoing{body: *in.MessageBody, delay: seconds(of.number(delaySeconds)), traceparent: traceParent(in)}
	if !validContents(m.body) {
		return nil, refuse(invalidContents,
			"Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF.")
	}
	if d := in.DelaySeconds; d != nil {
		if of.FIFO && *d > 0 {
			return nil,
				badValue(*d, "DelaySeconds", "The request include parameter that is not valid for this queue type.")
		}
		if *d < 0 || *d > maxDelay {
			return nil, badValue(*d, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900.")
		}
		if !of.FIFO {
			m.delay = seconds(*d)
		}
	}
	var err error
	if m.carried.Attributes, err = checkAttributes(in.MessageAttributes); err != nil {
		return nil, err
	}
	if err := q.checkSystem(m, in.MessageSystemAttributes); err != nil {
		return nil, err
	}
	m.carried.Sender = q.senderID()
	return m, checkOrder(of, m, in)
}

// senderID names the sender of a message: its principal, or the account.
func (q *request) senderID() string {
	if name := q.from.name(); name != "" {
		return name
	}
	return q.front.opts.Account
}

// checkOrder checks the group and the deduplication id.
func checkOrder(of *queue, m *outgoing, in *messageInput) error {
	for _, p := range []struct {
		name  string
		value *string
		to    *string
	}{{sysGroup, in.MessageGroupID, &m.carried.Group}, {sysDedup, in.MessageDedupID, &m.carried.Dedup}} {
		if p.value == nil {
			continue
		}
		if !validGroup(*p.value) {
			return badValue(shorten(*p.value), p.name,
				p.name+" can only include alphanumeric and punctuation characters. 1 to 128 in length.")
		}
		*p.to = *p.value
	}
	switch {
	case !of.FIFO && in.MessageDedupID != nil:
		return badValue(shorten(*in.MessageDedupID), sysDedup,
			"The request includes a parameter that is not valid for this queue type.")
	case !of.FIFO:
		return nil
	case in.MessageGroupID == nil:
		return missing(sysGroup)
	case m.carried.Dedup == "" && of.get(contentDedup) == "true":
		sum := sha256.Sum256([]byte(m.body))
		m.carried.Dedup = hex.EncodeToString(sum[:])
	case m.carried.Dedup == "":
		return noDedupID()
	}
	return nil
}

func noDedupID() error {
	return refuse(invalidParameter,
		"The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
}

func validGroup(id string) bool {
	return id != "" && len(id) <= maxGroupBytes &&
		!strings.ContainsFunc(id, func(r rune) bool { return r < '!' || r > '~' })
}

// attributeNumber is the format of a Number value.
var attributeNumber = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$`)

// checkAttributes checks message attributes and sorts them by name.
func checkAttributes(values map[string]attributeValue) ([]attribute, error) {
	if len(values) > maxAttributes {
		return nil, refuse(invalidParameter, "Number of message attributes [%d] exceeds the allowed maximum [%d].",
			len(values), maxAttributes)
	}
	var all []attribute
	for name, v := range values {
		if !validAttributeName(name) {
			return nil, refuse(invalidParameter, "Message (user) attribute name '%s' is invalid.", shorten(name))
		}
		kind, _, _ := strings.Cut(v.DataType, ".")
		a := attribute{Name: name, Type: v.DataType, Binary: v.BinaryValue}
		if v.StringValue != nil {
			a.Text = *v.StringValue
		}
		wrong := func(why string) ([]attribute, error) {
			return nil, refuse(invalidParameter, "Message (user) attribute '%s' %s", shorten(name), why)
		}
		switch {
		case v.DataType == "":
			return wrong("must contain a non-empty type.")
		case kind != "String" && kind != "Number" && kind != "Binary" || len(v.DataType) > maxAttributeBytes:
			return wrong(
				"has an invalid type. It must be String, Number or Binary, with a label of up to 256 bytes in all.",
			)
		case kind == "Binary" && len(a.Binary) == 0, kind != "Binary" && a.Text == "":
			return wrong("must contain a non-empty value of type '" + kind + "'.")
		case kind == "Binary" && a.Text != "", kind != "Binary" && len(a.Binary) > 0:
			return wrong("has a value of another type.")
		case kind == "Number" && !attributeNumber.MatchString(a.Text):
			return wrong("is not a number.")
		case kind != "Binary" && !validContents(a.Text):
			return wrong("has invalid characters in its value.")
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b attribute) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// validAttributeName reports whether a message attribute may have this name. AWS documents letters of ASCII only, but
// accepts "attr.1øßä" and refuses "§" (recorded on AWS). That the other letters of Latin-1 and Latin Extended-A are
// accepted, and no others, is not recorded.
func validAttributeName(name string) bool {
	lower := strings.ToLower(name)
	return name != "" && len(name) <= maxAttributeBytes && name[0] != '.' && name[len(name)-1] != '.' &&
		!strings.Contains(name, "..") &&
		!strings.HasPrefix(lower, "aws.") && !strings.HasPrefix(lower, "amazon.") &&
		!strings.ContainsFunc(name, func(r rune) bool { return !isWordRune(r) && r != '.' && !isLatinLetter(r) })
}

// isLatinLetter reports whether a character outside ASCII is a letter of Latin-1 or Latin Extended-A.
func isLatinLetter(r rune) bool { return r >= 'À' && r <= 'ſ' && r != '×' && r != '÷' }

// checkSystem reads the trace header, the only system attribute that can be sent. Without one, the header of the
// request counts.
func (q *request) checkSystem(m *outgoing, values map[string]attributeValue) error {
	if len(q.trace) <= maxTraceBytes && validContents(q.trace) {
		m.carried.Trace = q.trace
	}
	for name, v := range values {
		if name != sysTrace || v.StringValue == nil || v.DataType != "String" || len(*v.StringValue) > maxTraceBytes ||
			!validContents(*v.StringValue) {
			return badValue(shorten(name), "MessageSystemAttributes", "Only AWSTraceHeader of type String can be sent.")
		}
		m.carried.Trace = *v.StringValue
		m.system = append(m.system, attribute{Name: name, Type: v.DataType, Text: *v.StringValue})
	}
	return nil
}

// traceParent is the W3C trace context in a message attribute.
func traceParent(in *messageInput) string {
	if v := in.MessageAttributes["traceparent"]; v.StringValue != nil {
		return *v.StringValue
	}
	return ""
}

// size is the size of the message for its limit.
func (m *outgoing) size() int {
	n := len(m.body)
	for i := range m.carried.Attributes {
		n += m.carried.Attributes[i].size()
	}
	return n
}
