package qless

import (
	"strings"

	"broker/core"
)

// Names of documents, which are stored on disk.
const (
	docPrefix = "qless/"

	configDoc = docPrefix + "config"
	jobDocs   = docPrefix + "job/"
	recurDocs = docPrefix + "recurring/"
	queueDocs = docPrefix + "queue/"
	workDocs  = docPrefix + "worker/"
	tagDocs   = docPrefix + "tag/"
	trackDocs = docPrefix + "track/"
	statDocs  = docPrefix + "stat/"
)

func statDoc(k statKey) string { return statDocs + formatNumber(k.day) + "/" + k.queue }

// document is the current value of a document; nil if it no longer exists.
func (m *model) document(name string) []byte {
	score := func(z *sortedSet, of string) []byte {
		s, there := z.score(of)
		if !there {
			return nil
		}
		e := newEncoder()
		e.num(s)
		return e.b
	}
	kind, of := splitDoc(name)
	switch kind {
	case configDoc:
		e := newEncoder()
		e.list(m.config.names)
		for _, n := range m.config.names {
			e.text(m.config.values[n])
		}
		return e.b
	case recurDocs:
		if r := m.recurring[of]; r != nil {
			return r.encode()
		}
	case queueDocs:
		seen, there := m.seen.score(of)
		if there || m.paused[of] {
			e := newEncoder()
			e.flags(there, m.paused[of])
			e.num(seen)
			return e.b
		}
	case workDocs:
		return score(&m.workers, of)
	case tagDocs:
		return score(&m.tagCounts, of)
	case trackDocs:
		return score(&m.tracked, of)
	case statDocs:
		if k, ok := parseStatKey(of); ok && m.stats[k] != nil {
			return m.stats[k].encode()
		}
	}
	return nil
}

// splitDoc splits the name of a document into its kind and the name of its object.
func splitDoc(name string) (kind, of string) {
	rest := strings.TrimPrefix(name, docPrefix)
	i := strings.IndexByte(rest, '/')
	if i < 0 {
		return name, ""
	}
	return name[:len(docPrefix)+i+1], rest[i+1:]
}

func parseStatKey(s string) (statKey, bool) {
	day, queue, ok := strings.Cut(s, "/")
	at, isNumber := parseNumber(day)
	return statKey{at, queue}, ok && isNumber
}

// restore adds a stored document to the model.
func (m *model) restore(name string, value []byte) error {
	kind, of := splitDoc(name)
	if kind == jobDocs {
		return m.restoreJob(of, value)
	}
	d := newDecoder(value)
	switch kind {
	case recurDocs:
		r, err := decodeRecurring(of, value)
		if err == nil {
			m.recurring[of] = r
			m.queue(r.queue).sets[recurringSet].add(of, r.next)
		}
		return err
	case statDocs:
		k, ok := parseStatKey(of)
		s, err := decodeStatistics(value)
		if !ok || err != nil {
			return errDocument
		}
		k.queue = own(k.queue)
		m.addStatistics(k, s)
		return nil
	case configDoc:
		for _, n := range d.list() {
			m.config.set(n, own(d.text()))
		}
	case queueDocs:
		var seen, paused bool
		d.flags(&seen, &paused)
		if at := d.num(); seen {
			m.seen.add(of, at)
		}
		if paused {
			m.paused[of] = true
		}
	case workDocs:
		m.workers.add(of, d.num())
	case tagDocs:
		m.tagCounts.add(of, d.num())
	case trackDocs:
		m.tracked.add(of, d.num())
	default:
		return errDocument
	}
	return d.close()
}

func (m *model) restoreJob(jid string, value []byte) error {
	if !readable(value) {
		return errDocument
	}
	j := &job{jid: jid}
	d := decoder{b: m.jobs.load(jid, value)[unattached:]}
	j.readDocument(&d)
	if d.close() != nil {
		return errDocument
	}
	put := func(sets map[string]*sortedSet, set string, score float64) {
		if sets[set] == nil {
			sets[own(set)] = &sortedSet{}
		}
		sets[set].add(jid, score)
	}
	for kind, p := range j.places {
		if p.in {
			m.queue(p.queue).sets[kind].insert(member{p.score, jid})
		}
	}
	for _, h := range j.holders {
		put(m.held, h.worker, h.until)
	}
	for _, g := range j.tagged {
		put(m.tags, g.tag, g.at)
	}
	if j.failedAt != 0 {
		put(m.failures, j.failedGroup, j.failedAt)
		m.failureCount = max(m.failureCount, j.failedAt)
	}
	if j.completed {
		m.completed.add(jid, j.completedAt)
	}
	m.lastNow = max(m.lastNow, j.time)
	return nil
}

// documents returns the documents that a command has changed.
func (t *tx) documents() []core.MetaEntry {
	docs := make([]core.MetaEntry, 0, len(t.touched)+len(t.names))
	for _, j := range t.touched {
		switch {
		case !j.gone && j.foreign && !j.hasDocument && t.syncing: // the broker's job holds all its data
		case !j.gone:
			docs = append(docs, core.MetaEntry{Name: jobDocs + j.jid, Value: j.encode()})
			j.hasDocument = true
		case t.before[j].hasDocument && !t.m.jobs.has(j.jid):
			docs = append(docs, core.MetaEntry{Name: jobDocs + j.jid})
		}
	}
	for _, name := range t.names {
		docs = append(docs, core.MetaEntry{Name: name, Value: t.m.document(name)})
	}
	return docs
}
