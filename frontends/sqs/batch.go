package sqs

import "strings"

// maxEntries is the maximum number of entries in a batch.
const maxEntries = 10

// failedEntry is a refused entry of a batch.
type failedEntry struct {
	ID          string `json:"Id" query:"Id"`
	SenderFault bool
	Code        string
	Message     string
}

func failed(id string, err error) failedEntry {
	e := errorOf(err)
	return failedEntry{ID: id, SenderFault: e.sender(), Code: e.kind.code, Message: e.text}
}

// checkEntries checks a batch of an action as a whole.
func checkEntries[E any](action string, entries []E, id func(*E) string) error {
	switch n := len(entries); {
	case n == 0:
		return refuse(emptyBatch, "There should be at least one %sRequestEntry in the request.", action)
	case n > maxEntries:
		return refuse(tooManyEntries, "Maximum number of entries per request are %d. You have sent %d.", maxEntries, n)
	}
	seen := make(map[string]bool, len(entries))
	for i := range entries {
		name := id(&entries[i])
		switch {
		case name == "" || len(name) > maxNameBytes ||
			strings.ContainsFunc(name, func(r rune) bool { return !isWordRune(r) }):
			return refuse(invalidEntryID,
				"A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		case seen[name]:
			return refuse(idsNotDistinct, "Id %s repeated.", name)
		}
		seen[name] = true
	}
	return nil
}

type sendEntry struct {
	ID string `json:"Id" query:"Id"`
	messageInput
}

type sendBatchInput struct {
	target
	Entries []sendEntry `query:"SendMessageBatchRequestEntry"`
}

type sentEntry struct {
	ID string `json:"Id" query:"Id"`
	sendOutput
}

type sendBatchOutput struct {
	Successful []sentEntry   `json:",omitempty" query:"SendMessageBatchResultEntry"`
	Failed     []failedEntry `json:",omitempty" query:"BatchResultErrorEntry"`
}

// sendMessageBatch sends the valid messages in one commit, and lists the others as failed.
func (q *request) sendMessageBatch(of *queue, in *sendBatchInput) (any, error) {
	if err := checkEntries(q.wire.action, in.Entries, func(e *sendEntry) string { return e.ID }); err != nil {
		return nil, err
	}
	for i := range in.Entries { // a missing id refuses the whole batch
		switch e := &in.Entries[i]; {
		case !of.FIFO:
		case e.MessageDedupID == nil && of.get(contentDedup) != "true":
			return nil, noDedupID()
		case e.MessageGroupID == nil:
			return nil, refuse(invalidParameter, "The request must contain the parameter MessageGroupId.")
		}
	}
	out := &sendBatchOutput{}
	var messages []*outgoing
	var ids []string
	total := 0
	for i := range in.Entries {
		e := &in.Entries[i]
		m, err := q.check(of, &e.messageInput)
		if err == nil && m.size() > min(of.number(maximumSize), q.front.opts.MaxBodyBytes) {
			total += m.size()
			err = refuse(invalidParameter,
				"One or more parameters cannot be validated. Reason: Message must be shorter than %d bytes.",
				of.number(maximumSize))
		}
		if err != nil {
			out.Failed = append(out.Failed, failed(e.ID, err))
			continue
		}
		total += m.size()
		messages, ids = append(messages, m), append(ids, e.ID)
	}
	if total > maxBatchBytes {
		return nil, refuse(batchTooLong, "Batch requests cannot be longer than %d bytes. You have sent %d bytes.",
			maxBatchBytes, total)
	}
	if len(messages) == 0 {
		return out, nil
	}
	results, err := q.send(of, messages)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		if r.err != nil {
			out.Failed = append(out.Failed, failed(ids[i], r.err))
		} else {
			out.Successful = append(out.Successful, sentEntry{ids[i], *r.out})
		}
	}
	return out, nil
}

// doneEntry is a successful entry of a batch of deletions or changes.
type doneEntry struct {
	ID string `json:"Id" query:"Id"`
}

type deleteEntry struct {
	ID            string `json:"Id" query:"Id"`
	ReceiptHandle string
}

type deleteBatchInput struct {
	target
	Entries []deleteEntry `query:"DeleteMessageBatchRequestEntry"`
}

type deleteBatchOutput struct {
	Successful []doneEntry   `json:",omitempty" query:"DeleteMessageBatchResultEntry"`
	Failed     []failedEntry `json:",omitempty" query:"BatchResultErrorEntry"`
}

func (q *request) deleteMessageBatch(of *queue, in *deleteBatchInput) (any, error) {
	if err := checkEntries(q.wire.action, in.Entries, func(e *deleteEntry) string { return e.ID }); err != nil {
		return nil, err
	}
	wanted, ids := make([]messageChange, len(in.Entries)), make([]string, len(in.Entries))
	for i, e := range in.Entries {
		wanted[i], ids[i] = messageChange{handle: e.ReceiptHandle}, e.ID
	}
	done, bad, err := q.finishBatch(of, wanted, ids)
	return &deleteBatchOutput{done, bad}, err
}

// finishBatch deletes messages or changes their visibility, and returns the entry of each in the reply.
func (q *request) finishBatch(
	of *queue, wanted []messageChange, ids []string,
) (done []doneEntry, bad []failedEntry, err error) {
	errs, err := q.finish(of, wanted)
	for i, id := range ids {
		if errs[i] != nil {
			bad = append(bad, failed(id, errs[i]))
		} else {
			done = append(done, doneEntry{id})
		}
	}
	return done, bad, err
}

type changeEntry struct {
	ID                string `json:"Id" query:"Id"`
	ReceiptHandle     string
	VisibilityTimeout *int
}

type changeBatchInput struct {
	target
	Entries []changeEntry `query:"ChangeMessageVisibilityBatchRequestEntry"`
}

type changeBatchOutput struct {
	Successful []doneEntry   `json:",omitempty" query:"ChangeMessageVisibilityBatchResultEntry"`
	Failed     []failedEntry `json:",omitempty" query:"BatchResultErrorEntry"`
}

func (q *request) changeVisibilityBatch(of *queue, in *changeBatchInput) (any, error) {
	if err := checkEntries(q.wire.action, in.Entries, func(e *changeEntry) string { return e.ID }); err != nil {
		return nil, err
	}
	var incomplete []failedEntry
	var wanted []messageChange
	var ids []string
	for _, e := range in.Entries {
		if e.VisibilityTimeout == nil {
			incomplete = append(incomplete, failed(e.ID, missing(visibilityTimeout)))
			continue
		}
		wanted, ids = append(wanted, messageChange{e.ReceiptHandle, e.VisibilityTimeout}), append(ids, e.ID)
	}
	done, bad, err := q.finishBatch(of, wanted, ids)
	return &changeBatchOutput{done, append(incomplete, bad...)}, err
}
