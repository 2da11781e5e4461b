package gearman

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"broker/core"
)

// maxFunctions bounds the registrations of one connection, repeated ones included.
const maxFunctions = 1 << 16

// roster knows who is connected and for what, for the text command workers alone: the broker has its own knowledge of
// who can do what.
type roster struct {
	mu   sync.Mutex
	rows map[core.ClientID]*row // guarded by mu, as are the rows
}

// row is one connection. Functions stand in the order in which they were registered, as often as they were; what is in
// the slice never changes, so that a snapshot may share it.
type row struct {
	client    core.ClientID
	fd        int
	ip        string
	id        string
	functions []string
}

func (r *roster) add(client core.ClientID, fd int, ip string) *row {
	w := &row{client: client, fd: fd, ip: ip, id: "-"}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows == nil {
		r.rows = map[core.ClientID]*row{}
	}
	r.rows[client] = w
	return w
}

func (r *roster) remove(w *row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rows, w.client)
}

func (r *roster) setID(w *row, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.id = id
}

// able adds a function; it reports whether there was room.
func (r *roster) able(w *row, function string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(w.functions) >= maxFunctions {
		return false
	}
	w.functions = append(w.functions, function)
	return true
}

// unable forgets a function, however often it was registered.
func (r *roster) unable(w *row, function string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := make([]string, 0, len(w.functions))
	for _, f := range w.functions {
		if f != function {
			kept = append(kept, f)
		}
	}
	w.functions = kept
}

func (r *roster) reset(w *row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.functions = nil
}

// snapshot copies all rows, the oldest connection first.
func (r *roster) snapshot() []row {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := make([]row, 0, len(r.rows))
	for _, w := range r.rows {
		rows = append(rows, *w)
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.client, b.client) })
	return rows
}

// write appends a connection's line, its newest function first:
//
//	FD IP ID : f2 f1
func (w *row) write(b []byte) []byte {
	b = strconv.AppendInt(b, int64(w.fd), 10)
	b = append(append(b, ' '), w.ip...)
	b = append(append(b, ' '), w.id...)
	b = append(b, " :"...)
	for _, f := range slices.Backward(w.functions) {
		b = append(append(b, ' '), f...)
	}
	return append(b, '\n')
}
