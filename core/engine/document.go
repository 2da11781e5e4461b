package engine

import "broker/core"

// Limits of one page of documents.
const (
	defaultDocuments  = 1000
	maxDocuments      = 10_000
	documentPageBytes = 8 << 20
)

// readDocuments answers a ReadDocuments from the store, once earlier decisions are durable.
func (e *Engine) readDocuments(r *core.Reply, op *core.ReadDocuments) error {
	e.Flush()
	limit := op.Limit
	if limit <= 0 {
		limit = defaultDocuments
	}
	limit = min(limit, maxDocuments)
	bytes := 0
	return e.store.ScanDocuments(op.Prefix, op.After, func(name string, value []byte) bool {
		r.Documents = append(r.Documents, core.MetaEntry{Name: name, Value: append([]byte{}, value...)})
		bytes += len(name) + len(value)
		return len(r.Documents) < limit && bytes < documentPageBytes
	})
}
