package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sort"
	"strings"
	"time"
)

// Source is a server whose jobs are moved.
type Source interface {
	// Count counts the jobs of the source.
	Count() ([]Count, error)
	// Move moves one batch and returns what was moved, also with an error. Nothing moved and no error: there is nothing
	// left that can be moved now.
	Move(ctx context.Context) ([]Count, error)
	// Finish waits for what is still under way.
	Finish(ctx context.Context) error
	Close()
}

// Count is a number of jobs of one queue in one state.
type Count struct {
	Queue string `json:"queue"`
	State string `json:"state"`
	Jobs  int    `json:"jobs"`
}

// Row is the result for one queue and state.
type Row struct {
	Queue  string `json:"queue"`
	State  string `json:"state"`
	Before int    `json:"before"`
	Moved  int    `json:"moved"`
	Left   int    `json:"left"`
}

// Report is the result of an import.
type Report struct {
	Rows   []Row `json:"rows"`
	Before int   `json:"before"`
	Moved  int   `json:"moved"`
	Left   int   `json:"left"`
}

// The states of jobs in counts.
const (
	Ready     = "ready"
	Leased    = "leased"
	Scheduled = "scheduled"
	Retrying  = "retrying"
	Dead      = "dead"
)

// batchJobs and batchBytes bound a batch; a single larger job is a batch of its own.
const (
	batchJobs  = 256
	batchBytes = 8 << 20
)

// window is how many jobs the next batch takes.
type window int

const firstWindow window = 16

// adapt grows or shrinks the window after a batch of so many bytes.
func (w *window) adapt(bytes int) {
	switch {
	case bytes > batchBytes:
		*w = max(1, *w/4)
	case bytes < batchBytes/4:
		*w = min(batchJobs, *w*2)
	}
}

// followPause is the time between two looks at a source that has nothing more to move.
const followPause = time.Second

// Options of an import.
type Options struct {
	Follow   bool                    // go on until ctx ends
	Progress func(moved, before int) // after each batch
	Pause    func(context.Context, time.Duration)
}

// Run moves all jobs of a source. The report is complete as far as the import has come, also with an error. The end of ctx is
// not an error with Follow.
func Run(ctx context.Context, s Source, o Options) (Report, error) {
	var t tally
	before, err := s.Count()
	if err != nil {
		return Report{}, err
	}
	t.add(before, func(r *Row, n int) { r.Before += n })
	err = move(ctx, s, o, &t)
	if err == nil {
		err = s.Finish(ctx)
	}
	if o.Follow && ctx.Err() != nil {
		err = nil
	}
	left, countErr := s.Count()
	if countErr != nil {
		return t.report(), errors.Join(err, countErr)
	}
	t.add(left, func(r *Row, n int) { r.Left += n })
	return t.report(), err
}

func move(ctx context.Context, s Source, o Options, t *tally) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		moved, err := s.Move(ctx)
		t.add(moved, func(r *Row, n int) { r.Moved += n })
		r := t.report()
		o.Progress(r.Moved, r.Before)
		switch {
		case err != nil:
			return err
		case len(moved) > 0:
		case !o.Follow:
			return nil
		default:
			o.Pause(ctx, followPause)
		}
	}
}

// tally collects counts by queue and state.
type tally struct{ rows map[[2]string]*Row }

func (t *tally) add(counts []Count, set func(r *Row, n int)) {
	if t.rows == nil {
		t.rows = make(map[[2]string]*Row)
	}
	for _, c := range counts {
		key := [2]string{c.Queue, c.State}
		if t.rows[key] == nil {
			t.rows[key] = &Row{Queue: c.Queue, State: c.State}
		}
		set(t.rows[key], c.Jobs)
	}
}

func (t *tally) report() Report {
	r := Report{Rows: []Row{}}
	for _, row := range t.rows {
		if row.Before == 0 && row.Moved == 0 && row.Left == 0 {
			continue
		}
		r.Rows = append(r.Rows, *row)
		r.Before += row.Before
		r.Moved += row.Moved
		r.Left += row.Left
	}
	sort.Slice(r.Rows, func(i, j int) bool {
		a, b := &r.Rows[i], &r.Rows[j]
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.State, b.State)) < 0
	})
	return r
}

// dialTimeout bounds how long a connection may take.
const dialTimeout = 10 * time.Second

// replyTimeout bounds how long a server may take to reply.
const replyTimeout = time.Minute

// promptConn is a connection to a server that replies at once.
type promptConn struct{ net.Conn }

// Read implements net.Conn. It fails if nothing comes within replyTimeout.
func (c promptConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(replyTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// dial connects to a server that replies at once. It returns the address as a URL, for its password.
func dial(address, defaultPort string) (net.Conn, *url.URL, error) {
	conn, u, err := dialPatient(address, defaultPort)
	if err != nil {
		return nil, nil, err
	}
	return promptConn{conn}, u, nil
}

// dialPatient connects to an address: HOST, HOST:PORT, a URL with a host, or unix:PATH.
func dialPatient(address, defaultPort string) (net.Conn, *url.URL, error) {
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		conn, err := net.DialTimeout("unix", strings.TrimPrefix(path, "//"), dialTimeout)
		return conn, &url.URL{}, err
	}
	text := address
	if !strings.Contains(text, "://") {
		text = "tcp://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return nil, nil, fmt.Errorf("%q is not an address: expected HOST:PORT or unix:/path", address)
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultPort)), dialTimeout)
	if err != nil {
		return nil, nil, err
	}
	return conn, u, nil
}

// dialBoth connects to a source and to this broker.
func dialBoth(source, target, port string) (from, to net.Conn, urls [2]*url.URL, err error) {
	from, urls[0], err = dial(source, port)
	if err != nil {
		return nil, nil, urls, fmt.Errorf("source: %w", err)
	}
	to, urls[1], err = dial(target, port)
	if err != nil {
		_ = from.Close() // nothing was sent
		return nil, nil, urls, fmt.Errorf("this broker: %w", err)
	}
	if from.RemoteAddr().String() == to.RemoteAddr().String() && from.RemoteAddr().Network() == to.RemoteAddr().Network() {
		_, _ = from.Close(), to.Close() // nothing was sent
		return nil, nil, urls, fmt.Errorf("source and target are both %s: an import would never end", from.RemoteAddr())
	}
	return from, to, urls, nil
}
