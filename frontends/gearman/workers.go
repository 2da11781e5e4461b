package gearman

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"broker/core"
)

// maxFunctions limits the registrations of one connection, including repeated ones.
const maxFunctions = 10_000

// manyFunctions is how many functions a worker may have without its messages being handled one by one: with all of
// them, a message takes some milliseconds.
const manyFunctions = 500

// workerRegistry lists the connections and their functions in the order of the text command workers. The broker has its
// own index of workers.
type workerRegistry struct {
	mu      sync.Mutex
	entries map[core.ClientID]*connEntry // mu guards the map and the entries
}

// connEntry is one connection. Functions are in the order of registration and may repeat. The slice is never modified
// in place, so that snapshots can share it.
type connEntry struct {
	client    core.ClientID
	fd        int
	ip        string
	id        string
	functions []string
}

func (r *workerRegistry) add(client core.ClientID, fd int, ip string) *connEntry {
	w := &connEntry{client: client, fd: fd, ip: ip, id: "-"}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries == nil {
		r.entries = map[core.ClientID]*connEntry{}
	}
	r.entries[client] = w
	return w
}

func (r *workerRegistry) remove(w *connEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, w.client)
}

func (r *workerRegistry) setID(w *connEntry, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.id = id
}

// register adds a function and reports whether there was room.
func (r *workerRegistry) register(w *connEntry, function string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(w.functions) >= maxFunctions {
		return false
	}
	w.functions = append(w.functions, function)
	return true
}

// unregister removes all registrations of a function.
func (r *workerRegistry) unregister(w *connEntry, function string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.functions = slices.DeleteFunc(slices.Clone(w.functions), func(f string) bool { return f == function })
}

func (r *workerRegistry) reset(w *connEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.functions = nil
}

// snapshot copies all entries, the oldest connection first.
func (r *workerRegistry) snapshot() []connEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := make([]connEntry, 0, len(r.entries))
	for _, w := range r.entries {
		rows = append(rows, *w)
	}
	slices.SortFunc(rows, func(a, b connEntry) int { return cmp.Compare(a.client, b.client) })
	return rows
}

// write appends the line of a connection, its newest function first:
//
//	FD IP ID : f2 f1
func (w *connEntry) write(b []byte) []byte {
	b = strconv.AppendInt(b, int64(w.fd), 10)
	b = append(append(b, ' '), w.ip...)
	b = appendText(append(b, ' '), w.id)
	b = append(b, " :"...)
	for _, f := range slices.Backward(w.functions) {
		b = appendText(append(b, ' '), f)
	}
	return append(b, '\n')
}
