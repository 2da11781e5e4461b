package table

import (
	"broker/core"
	"broker/core/internal/record"
)

// PutDocument adds a document to the open batch; a document without a value is removed. The last one with a name
// counts.
func (t *Table) PutDocument(d core.MetaEntry) {
	t.OpenBytes += record.MetaSize(&d)
	if at, there := t.documentAt[d.Name]; there {
		t.documents[at].Value = d.Value
		return
	}
	t.documentAt[d.Name] = len(t.documents)
	t.documents = append(t.documents, d)
}

// sealDocuments moves the documents of the open batch into the batch that is sealed.
func (t *Table) sealDocuments(into []core.MetaEntry) []core.MetaEntry {
	clear(into[:cap(into)])
	into = append(into[:0], t.documents...)
	clear(t.documents)
	t.documents = t.documents[:0]
	if len(t.documentAt) > maxKeptNames {
		t.documentAt = map[string]int{}
	}
	clear(t.documentAt)
	return into
}

// maxKeptNames limits the size of the map of document names that is reused for the next batch.
const maxKeptNames = 4096
