package machine

import (
	"broker/core"
	"broker/core/internal/record"
)

// writeDocuments puts documents into the open batch; the last of a name counts.
func (m *Machine) writeDocuments(c *client, op *core.WriteDocuments) {
	if m.run != nil && !m.run.applying {
		return
	}
	if m.opts.Persist {
		for _, d := range op.Documents {
			m.putDocument(d)
		}
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.promise()})
}

func (m *Machine) putDocument(d core.MetaEntry) {
	m.openBytes += record.MetaSize(&d)
	if at, there := m.documentAt[d.Name]; there {
		m.documents[at].Value = d.Value
		return
	}
	m.documentAt[d.Name] = len(m.documents)
	m.documents = append(m.documents, d)
}

// sealDocuments moves the documents of the open batch into the batch that is sealed.
func (m *Machine) sealDocuments(into []core.MetaEntry) []core.MetaEntry {
	clear(into[:cap(into)])
	into = append(into[:0], m.documents...)
	clear(m.documents)
	m.documents = m.documents[:0]
	if len(m.documentAt) > maxKeptNames {
		m.documentAt = map[string]int{}
	}
	clear(m.documentAt)
	return into
}

// maxKeptNames is how many names of documents a map keeps room for from one batch to the next.
const maxKeptNames = 4096

// readDocuments lets the engine answer: the machine keeps no documents.
func (m *Machine) readDocuments(c *client, op *core.ReadDocuments) {
	read := *op
	m.replyWith(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: &core.Answer{}}, Work{Needs: StoredDocuments, Documents: &read})
}
