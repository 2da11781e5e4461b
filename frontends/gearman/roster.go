package gearman

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"broker/core"
)

// roster knows who is connected and for what, for the text command workers alone: the broker has its own knowledge of
// who can do what.
type roster struct {
	mu   sync.Mutex
	rows map[core.ClientID]*row // guarded by mu, as are the rows
}

// row is one connection. Functions stand in the order in which they were registered, as often as they were.
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

func (r *roster) able(w *row, function string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.functions = append(w.functions, function)
}

// unable forgets a function, however often it was registered.
func (r *roster) unable(w *row, function string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.functions = slices.DeleteFunc(w.functions, func(f string) bool { return f == function })
}

func (r *roster) reset(w *row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.functions = nil
}

// list writes a line for every connection, the oldest first, with its newest function first:
//
//	FD IP ID : f2 f1
func (r *roster) list() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := make([]*row, 0, len(r.rows))
	for _, w := range r.rows {
		rows = append(rows, w)
	}
	slices.SortFunc(rows, func(a, b *row) int { return cmp.Compare(a.client, b.client) })
	var b []byte
	for _, w := range rows {
		b = strconv.AppendInt(b, int64(w.fd), 10)
		b = append(append(b, ' '), w.ip...)
		b = append(append(b, ' '), w.id...)
		b = append(b, " :"...)
		for _, f := range slices.Backward(w.functions) {
			b = append(append(b, ' '), f...)
		}
		b = append(b, '\n')
	}
	return append(b, endOfList...)
}
