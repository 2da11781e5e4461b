package machine

import (
	"broker/core"
)

// writeDocuments adds documents to the open batch. Of documents with the same name, the last one counts.
func (m *Machine) writeDocuments(c *client, op *core.WriteDocuments) {
	if m.list.IsChecked() {
		return
	}
	if m.opts.Persist {
		for _, d := range op.Documents {
			m.table.PutDocument(d)
		}
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.Promise()})
}

// readDocuments lets the engine answer: the machine keeps no documents.
func (m *Machine) readDocuments(c *client, op *core.ReadDocuments) {
	read := *op
	m.replyWith(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: &core.Answer{}}, Work{Needs: StoredDocuments, Documents: &read})
}
