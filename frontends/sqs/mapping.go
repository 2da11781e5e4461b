package sqs

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"broker/core"
	"broker/frontends/shared/tracecontext"
)

// Message attributes for the exchange with other protocols.
const (
	attrType     = "broker.type"
	attrFrom     = "broker.from"
	attrEncoding = "broker.encoding"
)

// carried is the content of a message besides its body. It is stored in Job.Attributes, on disk.
type carried struct {
	Attributes []attribute `json:"a,omitempty"`
	Sender     string      `json:"sender,omitempty"`
	Trace      string      `json:"trace,omitempty"` // AWSTraceHeader
	Group      string      `json:"group,omitempty"`
	Dedup      string      `json:"dedup,omitempty"`
}

// carriedBy reads the carried content of a job.
func carriedBy(job *core.Job) (c carried) {
	if job.Origin == core.SQS && len(job.Attributes) > 0 {
		_ = json.Unmarshal(job.Attributes, &c) // written by encode
	}
	return c
}

func (c *carried) encode() []byte {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // texts and bytes only
	}
	return b
}

// newJob makes the job of a message. It has no limit of attempts or failures: a message returns until it is deleted,
// its retention ends, or a redrive policy moves it.
func (f *Frontend) newJob(of *queue, m *outgoing, now core.Instant) *core.Job {
	job := &core.Job{
		Queue: f.coreName(of.Name), Body: []byte(m.body), Origin: core.SQS, Format: core.Raw,
		Attributes: m.carried.encode(),
		CreatedAt:  now, ExpiresAt: now.Add(seconds(of.number(retentionPeriod))),
		MaxAttempts: math.MaxUint32, MaxFails: math.MaxUint32, Tallies: core.TallyFirstLease,
		Trace: tracecontext.Join(m.traceparent, ""),
	}
	// A message of a FIFO queue keeps its place despite a delay; the core then sets its time. It also sets the time of
	// a message from a node that follows, whose clock may be ahead. Without a known time an id must be explicit.
	if job.SeqOrder = of.FIFO; of.FIFO || f.follows() {
		m.id = uuid.NewString()
		job.ID = m.id
	}
	if m.delay > 0 {
		job.ReadyAt = now.Add(m.delay)
	}
	if m.carried.Group != "" {
		job.Tags = []string{groupTag + ":" + m.carried.Group}
	}
	for _, a := range m.carried.Attributes {
		if a.Name == attrType && !a.isBinary() && len(a.Text) <= core.MaxQueueName {
			job.Type = a.Text
		}
	}
	job.Queue, job.Type = f.opts.Route(job.Queue, job.Type)
	return job
}

// outgoing is a checked message to send.
type outgoing struct {
	id          string // id of the submission; empty: the core makes one
	body        string
	delay       time.Duration
	carried     carried
	traceparent string
	system      []attribute // sent system attributes, for their digest
}

// message is a received message.
type message struct {
	MessageID        string                    `json:"MessageId" query:"MessageId"`
	ReceiptHandle    string                    `json:",omitempty"`
	MD5OfBody        string                    `json:",omitempty"`
	Body             *string                   `json:",omitempty"` // jobs of other protocols may have empty bodies
	Attributes       map[string]string         `json:",omitempty" query:"Attribute"`
	AttributesDigest string                    `json:"MD5OfMessageAttributes,omitempty" query:"MD5OfMessageAttributes"`
	Custom           map[string]attributeValue `json:"MessageAttributes,omitempty" query:"MessageAttribute"`
}

// attributeValue is a message attribute on the wire.
type attributeValue struct {
	StringValue *string `json:",omitempty"`
	BinaryValue []byte  `json:",omitempty"`
	DataType    string
}

// textOf is the body of a message. Other protocols allow bytes that XML cannot contain; such a body becomes base64.
func textOf(job *core.Job) (text, encoding string) {
	text = string(job.Body)
	if validContents(text) {
		return text, ""
	}
	return base64.StdEncoding.EncodeToString(job.Body), "base64"
}

// validContents reports whether a text contains only characters that XML allows.
func validContents(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if !(r == 0x9 || r == 0xA || r == 0xD || r >= 0x20 && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD ||
			r >= 0x10000) {
			return false
		}
	}
	return true
}

// view converts a leased job to a message, with the requested attributes.
func (f *Frontend) view(r *core.Reply, past history, in *receiveInput) message {
	job := r.Job
	body, encoding := textOf(job)
	m := message{
		MessageID: identity(job, r.Seq), Body: &body, MD5OfBody: digestOf(body),
		ReceiptHandle: receiptHandle{seq: r.Seq, leasedAt: r.Lease.LeasedAt}.text(job.Queue),
	}
	c := carriedBy(job)
	all := c.Attributes
	if job.Origin != core.SQS {
		all = append(all, attribute{Name: attrFrom, Type: "String", Text: job.Origin.String()})
	}
	if job.Type != "" && job.Type != job.Queue &&
		!slices.ContainsFunc(all, func(a attribute) bool { return a.Name == attrType }) {
		all = append(all, attribute{Name: attrType, Type: "String", Text: job.Type})
	}
	if encoding != "" {
		all = append(all, attribute{Name: attrEncoding, Type: "String", Text: encoding})
	}
	var shown []attribute
	for _, a := range all {
		if wantsAttribute(in.MessageAttributeNames, a.Name) {
			shown = append(shown, a)
		}
	}
	if len(shown) > 0 {
		m.Custom = make(map[string]attributeValue, len(shown))
		for _, a := range shown {
			v := attributeValue{DataType: a.Type}
			if a.isBinary() {
				v.BinaryValue = a.Binary
			} else {
				v.StringValue = &a.Text
			}
			m.Custom[a.Name] = v
		}
		m.AttributesDigest = digestAttributes(shown)
	}
	m.Attributes = f.systemAttributes(r, &c, past, in)
	return m
}

// identity is a message's id.
func identity(job *core.Job, seq uint64) string {
	if job.ID != "" {
		return job.ID
	}
	return core.MintedID(seq, job.CreatedAt)
}

// Names of system attributes of messages.
const (
	sysSender     = "SenderId"
	sysSent       = "SentTimestamp"
	sysFirst      = "ApproximateFirstReceiveTimestamp"
	sysCount      = "ApproximateReceiveCount"
	sysTrace      = "AWSTraceHeader"
	sysGroup      = "MessageGroupId"
	sysDedup      = "MessageDeduplicationId"
	sysSequence   = "SequenceNumber"
	sysDeadSource = "DeadLetterQueueSourceArn"
)

var systemNames = []string{
	sysSender, sysSent, sysFirst, sysCount, sysTrace, sysGroup, sysDedup, sysSequence, sysDeadSource,
}

// systemAttributes returns the requested system attributes.
func (f *Frontend) systemAttributes(r *core.Reply, c *carried, past history, in *receiveInput) map[string]string {
	values := make(map[string]string)
	add := func(name, value string) {
		if value != "" && in.wantsSystem(name) {
			values[name] = value
		}
	}
	milli := func(i core.Instant) string { return strconv.FormatInt(i.Time().UnixMilli(), 10) }
	add(sysSender, c.Sender)
	add(sysSent, milli(r.Job.CreatedAt))
	add(sysFirst, milli(past.firstLeasedAt))
	add(sysCount, strconv.FormatUint(uint64(r.Lease.Attempts), 10))
	add(sysTrace, c.Trace)
	add(sysGroup, c.Group)
	if strings.HasSuffix(r.Job.Queue, fifoSuffix) {
		add(sysDedup, c.Dedup)
		add(sysSequence, sequence(r.Seq))
	}
	if past.movedFrom != "" {
		add(sysDeadSource, f.arnOf(strings.TrimPrefix(past.movedFrom, f.opts.Namespace)))
	}
	return values
}

// sequence formats a job's number with 20 digits.
func sequence(seq uint64) string {
	digits := strconv.FormatUint(seq, 10)
	return strings.Repeat("0", 20-len(digits)) + digits
}

// wantsAttribute reports whether a receiver has requested a message attribute: by name, by prefix, or all.
func wantsAttribute(asked []string, name string) bool {
	return slices.ContainsFunc(asked, func(pattern string) bool {
		if pattern == allAttributes || pattern == "*" || pattern == ".*" || pattern == name {
			return true
		}
		prefix, starred := strings.CutSuffix(pattern, ".*")
		return starred && strings.HasPrefix(name, prefix)
	})
}
