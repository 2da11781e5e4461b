package sqs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Names of queue attributes.
const (
	visibilityTimeout = "VisibilityTimeout"
	delaySeconds      = "DelaySeconds"
	retentionPeriod   = "MessageRetentionPeriod"
	maximumSize       = "MaximumMessageSize"
	receiveWait       = "ReceiveMessageWaitTimeSeconds"
	redrivePolicy     = "RedrivePolicy"
	redriveAllow      = "RedriveAllowPolicy"
	policyAttribute   = "Policy"
	fifoQueue         = "FifoQueue"
	contentDedup      = "ContentBasedDeduplication"
	dedupScope        = "DeduplicationScope"
	fifoLimit         = "FifoThroughputLimit"
	managedSSE        = "SqsManagedSseEnabled"
	kmsKey            = "KmsMasterKeyId"
	kmsReuse          = "KmsDataKeyReusePeriodSeconds"
)

// Maximum length of stored attributes without a meaning, and maximum number of tags of a queue.
const (
	maxPolicyBytes = 32 << 10
	maxQueueTags   = 50
)

// setting is a queue attribute that clients may set.
type setting struct {
	name        string
	fallback    string // value if it is not set; empty: none
	least, most int    // limits of a number
	isNumber    bool
	onlyFIFO    bool
	words       []string // allowed values
}

// settings are the attributes that clients may set.
var settings = []setting{
	{name: visibilityTimeout, fallback: "30", isNumber: true, most: 43200},
	{name: delaySeconds, fallback: "0", isNumber: true, most: 900},
	{name: retentionPeriod, fallback: "345600", isNumber: true, least: 60, most: 1209600},
	{name: maximumSize, fallback: "1048576", isNumber: true, least: 1024, most: maxBatchBytes},
	{name: receiveWait, fallback: "0", isNumber: true, most: 20},
	{name: redrivePolicy},
	{name: redriveAllow},
	{name: policyAttribute},
	{name: fifoQueue, onlyFIFO: true, words: []string{"true"}},
	{name: contentDedup, fallback: "false", onlyFIFO: true, words: []string{"true", "false"}},
	{name: dedupScope, fallback: "queue", onlyFIFO: true, words: []string{"messageGroup", "queue"}},
	{name: fifoLimit, fallback: "perQueue", onlyFIFO: true, words: []string{"perQueue", "perMessageGroupId"}},
	{name: managedSSE, fallback: "true", words: []string{"true", "false"}},
	{name: kmsKey},
	{name: kmsReuse, isNumber: true, least: 60, most: 86400},
}

// Attributes that cannot be set.
const (
	queueARN      = "QueueArn"
	createdAt     = "CreatedTimestamp"
	modifiedAt    = "LastModifiedTimestamp"
	countVisible  = "ApproximateNumberOfMessages"
	countInFlight = "ApproximateNumberOfMessagesNotVisible"
	countDelayed  = "ApproximateNumberOfMessagesDelayed"
	allAttributes = "All"
	fifoSuffix    = ".fifo"
	maxNameBytes  = 80
)

var readOnly = []string{queueARN, createdAt, modifiedAt, countVisible, countInFlight, countDelayed}

// settingOf finds an attribute that can be set; nil: none with that name.
func settingOf(name string) *setting {
	if i := slices.IndexFunc(settings, func(s setting) bool { return s.name == name }); i >= 0 {
		return &settings[i]
	}
	return nil
}

// checkSettings checks the attributes of a queue, and writes the words in them as they are stored.
func checkSettings(attributes map[string]string, fifo bool) error {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		s := settingOf(name)
		switch {
		case s == nil: // or it is read-only
			return refuse(invalidAttributeName, "Unknown Attribute %s.", shorten(name))
		case !fifo && (name == dedupScope || name == fifoLimit):
			return refuse(invalidAttributeName, "You can specify the %s only when FifoQueue is set to true.", name)
		case s.onlyFIFO && !fifo:
			return refuse(invalidAttributeName, "Unknown Attribute %s.", name)
		case name == policyAttribute && denies(attributes[name]):
			return noDenials()
		}
		if name == kmsReuse && attributes[name] == "300" { // the default is not shown
			attributes[name] = ""
		}
		if name == redrivePolicy && attributes[name] != "" {
			policy, reason := readRedrive(attributes[name])
			if reason != "" {
				return badValue(shorten(attributes[name]), redrivePolicy, reason)
			}
			text, err := json.Marshal(policy)
			if err != nil {
				return fmt.Errorf("encode redrive policy: %w", err)
			}
			attributes[name] = string(text) // a count that was text is shown as a number
		}
		if i := slices.IndexFunc(s.words,
			func(word string) bool { return strings.EqualFold(word, attributes[name]) }); i >= 0 {
			attributes[name] = s.words[i]
		}
		switch {
		case s.valid(attributes[name]):
		case name == fifoQueue:
			return refuse(invalidAttribute,
				"Invalid value for the parameter %s. Reason: Modifying queue type is not supported.", name)
		default:
			return badAttribute(name)
		}
	}
	return nil
}

// denies reports whether a policy denies something, which nothing would enforce. What a policy allows needs no
// enforcement: no client gets a right by it.
func denies(policy string) bool {
	var list struct{ Statement []struct{ Effect string } }
	var single struct{ Statement struct{ Effect string } }
	if json.Unmarshal([]byte(policy), &list) == nil {
		return slices.ContainsFunc(list.Statement, func(s struct{ Effect string }) bool { return s.Effect == deny })
	}
	return json.Unmarshal([]byte(policy), &single) == nil && single.Statement.Effect == deny
}

// deny is the Effect of a statement that denies.
const deny = "Deny"

// valid reports whether a value is allowed. Rules about other queues are checked elsewhere.
func (s *setting) valid(value string) bool {
	switch {
	case s.isNumber:
		n, err := strconv.Atoi(value)
		return err == nil && n >= s.least && n <= s.most || value == "" && s.fallback == ""
	case s.words != nil:
		return slices.Contains(s.words, value)
	case len(value) > maxPolicyBytes:
		return false
	case value == "":
		return s.name == policyAttribute || s.name == redrivePolicy || s.name == redriveAllow || s.name == kmsKey
	case s.name == policyAttribute:
		return json.Valid([]byte(value))
	}
	return true
}

// redrive is a RedrivePolicy.
type redrive struct {
	target string // name of the queue
	most   int    // receives
}

// maxReceives is the largest maxReceiveCount.
const maxReceives = 1000

// redriveText is a RedrivePolicy as it is stored and shown.
type redriveText struct {
	Target string `json:"deadLetterTargetArn"`
	Most   int    `json:"maxReceiveCount"`
}

// parseRedrive reads a RedrivePolicy. Its count may be a number or text. A reason says why it is invalid; empty: it
// is valid.
func parseRedrive(value string) (r redrive, reason string) {
	text, reason := readRedrive(value)
	return redrive{target: arnName(text.Target), most: text.Most}, reason
}

func readRedrive(value string) (text redriveText, reason string) {
	var p struct {
		Target string          `json:"deadLetterTargetArn"`
		Most   json.RawMessage `json:"maxReceiveCount"`
	}
	switch err := json.Unmarshal([]byte(value), &p); {
	case err != nil:
		return text, "Redrive policy is not a valid JSON map."
	case p.Target == "":
		return text, "Redrive policy does not contain mandatory attribute: deadLetterTargetArn."
	case p.Most == nil:
		return text, "Redrive policy does not contain mandatory attribute: maxReceiveCount."
	}
	count := strings.Trim(string(p.Most), `"`)
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > maxReceives {
		return text, "Invalid value for maxReceiveCount: " + shorten(count) + ", valid values are from 1 to " +
			strconv.Itoa(maxReceives) + " both inclusive."
	}
	return redriveText{Target: p.Target, Most: n}, ""
}

// sameSetting reports whether two values of an attribute mean the same.
func sameSetting(name, a, b string) bool {
	if name == redrivePolicy && a != "" && b != "" {
		x, _ := parseRedrive(a)
		y, _ := parseRedrive(b)
		return x == y
	}
	return a == b
}

// Values of redrivePermission.
const (
	allowAll = "allowAll"
	denyAll  = "denyAll"
	byQueue  = "byQueue"
)

// maxSourceARNs is the maximum number of queues in a RedriveAllowPolicy.
const maxSourceARNs = 10

// redriveAllowPolicy defines which queues may use a queue for dead letters.
type redriveAllowPolicy struct {
	Permission string   `json:"redrivePermission"`
	Sources    []string `json:"sourceQueueArns"`
}

func parseRedriveAllow(value string) (p redriveAllowPolicy, ok bool) {
	if json.Unmarshal([]byte(value), &p) != nil {
		return p, false
	}
	switch p.Permission {
	case allowAll, denyAll:
		return p, len(p.Sources) == 0
	case byQueue:
		return p, len(p.Sources) > 0 && len(p.Sources) <= maxSourceARNs
	}
	return p, false
}

// allows reports whether a queue may send its dead letters here.
func (p *redriveAllowPolicy) allows(source string) bool {
	switch p.Permission {
	case denyAll:
		return false
	case byQueue:
		return slices.ContainsFunc(p.Sources, func(arn string) bool { return arnName(arn) == source })
	}
	return true
}

// validQueueName reports whether clients may create a queue of that name.
func validQueueName(name string) bool {
	stem := strings.TrimSuffix(name, fifoSuffix)
	return stem != "" && len(name) <= maxNameBytes &&
		!strings.ContainsFunc(stem, func(r rune) bool { return !isWordRune(r) })
}

// isWordRune reports whether a character may be part of a name.
func isWordRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// seconds converts a number of seconds.
func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
