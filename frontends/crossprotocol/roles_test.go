package crossprotocol

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// rolePort is a protocol whose commands are tested with each role. The commands are read from the tables in its source,
// so that the test fails for a new command without a request here.
type rolePort struct {
	name     string
	protocol core.Protocol
	folder   string
	tables   []string // variables that hold the commands
	make     func(*access.Guard) frontends.Frontend
	greet    string            // handshake before the command
	refusals []string          // replies to a client without the right
	requests map[string]string // by command, on the jobs of roleWorld
	// ask sends a command over a protocol without a byte stream, and returns the reply; nil: use a connection.
	ask func(t *testing.T, b core.Broker, control *access.Control, command, request string) string
}

// The jobs in requests: a ready job and a leased job. A third job is in the dead set.
const (
	readyID  = "6ba7b810-9dad-41d1-80b4-00c04fd430c1"
	leasedID = "6ba7b810-9dad-41d1-80b4-00c04fd430c2"
	deadID   = "6ba7b810-9dad-41d1-80b4-00c04fd430c3"
)

// roleWorld prepares the broker of a stage.
func roleWorld(t *testing.T, b core.Broker) {
	t.Helper()
	client := b.Open(core.ClientOptions{Protocol: core.Internal, Unlisted: true, Wake: func() {}})
	do := func(op core.Op) {
		if r := b.Do(client, []core.Op{op}, nil); r[0].Kind == core.Failed {
			t.Fatalf("%T: %v", op, r[0].Err)
		}
	}
	do(&core.Submit{
		Tag: 1,
		Job: &core.Job{ID: leasedID, Queue: "leased", Origin: core.Faktory, Format: core.Args, Body: []byte("[]")},
	})
	do(&core.Lease{Tag: 1, Queues: []string{"leased"}, Holder: core.HeldByWorker, Worker: "w"})
	do(&core.Submit{
		Tag: 1, Job: &core.Job{ID: readyID, Queue: "q", Origin: core.Faktory, Format: core.Args, Body: []byte("[]")},
	})
	do(&core.Submit{
		Tag: 1, Job: &core.Job{ID: deadID, Queue: "q", Origin: core.Faktory, Format: core.Args, Body: []byte("[]")},
	})
	do(&core.Bury{Tag: 1, Ref: core.Ref{ID: deadID}})
}

// commandsOf reads the keys of tables, or the first strings of their rows, from the source of a front-end.
func commandsOf(t *testing.T, folder string, tables []string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	take := func(lit *ast.CompositeLit) {
		for _, row := range lit.Elts {
			switch row := row.(type) {
			case *ast.KeyValueExpr:
				switch key := row.Key.(type) {
				case *ast.BasicLit:
					names = append(names, strings.Trim(key.Value, `"`))
				case *ast.Ident:
					names = append(names, key.Name)
				}
			case *ast.CompositeLit:
				if word, ok := row.Elts[0].(*ast.BasicLit); ok {
					names = append(names, strings.Trim(word.Value, `"`))
				}
			}
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			var names []ast.Expr
			var values []ast.Expr
			switch n := n.(type) {
			case *ast.ValueSpec:
				for _, name := range n.Names {
					names = append(names, name)
				}
				values = n.Values
			case *ast.AssignStmt:
				names, values = n.Lhs, n.Rhs
			}
			for i, name := range names {
				id, ok := name.(*ast.Ident)
				if !ok || i >= len(values) || !slices.Contains(tables, id.Name) {
					continue
				}
				if lit, ok := values[i].(*ast.CompositeLit); ok {
					take(lit)
				}
			}
			return true
		})
	}
	if len(names) == 0 {
		t.Fatalf("no commands in %s", folder)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// mayAs reports whether a principal with one role (none if empty) may send a command.
func (p *rolePort) mayAs(t *testing.T, command, role string) bool {
	t.Helper()
	control := &access.Control{}
	entry := access.Entry{Name: "p"}
	if role != "" {
		g, err := access.ParseGrant(role)
		if err != nil {
			t.Fatal(err)
		}
		entry.Grants = []access.Grant{g}
	}
	control.Load([]access.Entry{entry})
	if p.ask != nil {
		b := newEnv(t, frontendtest.InMemory).workq.Broker
		roleWorld(t, b)
		return !strings.Contains(p.ask(t, b, control, command, p.requests[command]), p.refusals[0])
	}
	stage := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return p.make(access.NewGuard(b, control, p.protocol, "p"))
	}, frontendtest.InMemory)
	roleWorld(t, stage.Broker)
	c := stage.Dial("client")
	c.Send(p.greet)
	c.Rest()
	c.Send(p.requests[command])
	got := c.Rest()
	for _, refusal := range p.refusals {
		if bytes.Contains(got, []byte(refusal)) {
			return false
		}
	}
	return true
}

const (
	rolePage  = "../../docs/roles.md"
	roleStart = "<!-- commands: written by the tests of frontends/crossprotocol; run them with -update after a change -->\n"
	roleEnd   = "<!-- end of commands -->\n"
)

var roleNames = []string{"", "read", "produce", "consume", "operate", "admin"}

// TestDocsSayWhichCommandsEachRoleMaySend sends every command of every protocol as a principal with each role and with
// none. It compares the results with the table in docs/roles.md.
func TestDocsSayWhichCommandsEachRoleMaySend(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString(
		"| commands | no role | read | produce | consume | operate | admin |\n|---|---|---|---|---|---|---|\n",
	)
	for _, p := range rolePorts() {
		commands := commandsOf(t, p.folder, p.tables)
		commands = slices.AppendSeq(commands, maps.Keys(p.requests)) // also commands whose role depends on a subcommand
		slices.Sort(commands)
		commands = slices.Compact(commands)
		byRights, order := map[string][]string{}, []string(nil)
		for _, command := range commands {
			if _, known := p.requests[command]; !known {
				t.Errorf("%s %s has no request in roles_test.go", p.name, command)
				continue
			}
			if p.requests[command] == "" {
				continue // another row has it
			}
			rights := ""
			for _, role := range roleNames {
				if p.mayAs(t, command, role) {
					rights += " yes"
				}
				rights += " |"
			}
			if byRights[rights] == nil {
				order = append(order, rights)
			}
			byRights[rights] = append(byRights[rights], "`"+shownCommand(command)+"`")
		}
		for _, rights := range order {
			fmt.Fprintf(&table, "| %s %s |%s\n", p.name, strings.Join(byRights[rights], ", "), rights)
		}
	}
	text, err := os.ReadFile(rolePage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), roleStart)
	old, tail, foundEnd := strings.Cut(rest, roleEnd)
	switch {
	case !found || !foundEnd:
		t.Fatal("the page has no markers for the table of commands")
	case old == table.String():
	case !*update:
		t.Fatalf("docs/roles.md differs (run go test ./frontends/crossprotocol -update and review the diff):\n%s",
			&table)
	default:
		if err := os.WriteFile(rolePage, []byte(head+roleStart+table.String()+roleEnd+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// shownCommand is the protocol's name of a command. Packets of Gearman are Go identifiers in the source.
func shownCommand(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= 'A' && r <= 'Z' }) ||
		strings.ToUpper(name[:1]) == name[:1] {
		return name
	}
	var b strings.Builder
	for _, r := range strings.Replace(name, "ID", "Id", 1) {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// redisCommand encodes a command for a front-end that speaks RESP.
func redisCommand(words ...string) string {
	b := redcon.AppendArray(nil, len(words))
	for _, w := range words {
		b = redcon.AppendBulkString(b, w)
	}
	return string(b)
}
