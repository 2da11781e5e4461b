package sim

import (
	"fmt"
	"maps"
	"slices"

	"broker/core"
)

// document is the model of a document that was written together with the submission of a job.
type document struct {
	seq  uint64      // of the job
	made core.Commit // it is acknowledged once this is on disk
	gone core.Commit // its removal is acknowledged once this is on disk; zero: it was not removed
}

// docPrefix is the prefix of the names of all documents of the simulation.
const docPrefix = "sim/"

// writeDocument adds a document to a list that submits a job, and sometimes removes another one.
func (w *world) writeDocument() (op *core.WriteDocuments, accepted func(r core.Reply, seq uint64)) {
	op = &core.WriteDocuments{Tag: w.newTag()}
	text := fmt.Sprint(op.Tag)
	name, removed := docPrefix+text, ""
	op.Documents = []core.MetaEntry{{Name: name, Value: []byte(text)}}
	if names := slices.Sorted(maps.Keys(w.model.documents)); len(names) > 0 && w.rng.IntN(2) == 0 {
		removed = names[w.rng.IntN(len(names))]
		op.Documents = append(op.Documents, core.MetaEntry{Name: removed})
	}
	return op, func(r core.Reply, seq uint64) {
		made := w.commitOf(r, true)
		if d := w.model.documents[removed]; d != nil && d.gone == 0 {
			d.gone = made
		}
		w.model.documents[name] = &document{seq: seq, made: made}
	}
}

// documentsAfterCrash compares the documents on disk with the model, and each document with the job that was submitted
// with it: either both exist or neither does.
func (w *world) documentsAfterCrash(committed core.Commit) error {
	onDisk := map[string]bool{}
	for _, d := range w.ask(&core.ReadDocuments{Prefix: docPrefix, Limit: 10_000}).Documents {
		if w.model.documents[d.Name] == nil || d.Name != docPrefix+string(d.Value) {
			return fmt.Errorf("document %q came back as %q", d.Name, d.Value)
		}
		onDisk[d.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(w.model.documents)) {
		d := w.model.documents[name]
		p, job := w.model.jobs[d.seq], w.look(d.seq)
		ended := p == nil || p.mayEnd || w.model.endsAlone(p) || p.ended != 0 || p.expiresAt != 0
		switch {
		case onDisk[name] && d.gone != 0 && d.gone <= committed:
			return fmt.Errorf("document %q came back though its removal was acknowledged", name)
		case onDisk[name] && job == nil && !ended:
			return fmt.Errorf("document %q is on disk without job %d of the same list", name, d.seq)
		case !onDisk[name] && d.gone == 0 && (d.made <= committed || job != nil):
			return fmt.Errorf("document %q was acknowledged by commit %d of %d and is lost, job %d is %+v", name,
				d.made, committed, d.seq, job)
		case !onDisk[name]:
			delete(w.model.documents, name)
		default:
			d.made, d.gone = 1, 0
		}
	}
	return nil
}

// documentsFlushed is flushed for documents.
func (m *model) documentsFlushed(settle func(*core.Commit), committed core.Commit) {
	for name, d := range m.documents {
		settle(&d.made)
		if settle(&d.gone); d.gone != 0 && d.gone <= committed {
			delete(m.documents, name)
		}
	}
}
