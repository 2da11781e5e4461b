package crossprotocol_test

import (
	"strings"
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/faktory"
	"broker/frontends/frontendtest"
	"broker/frontends/gearman"
	"broker/frontends/workq"
)

// load configures a principal named p with these roles.
func load(t *testing.T, c *access.Control, roles string) {
	t.Helper()
	e := access.Entry{Name: "p"}
	for role := range strings.FieldsSeq(roles) {
		g, err := access.ParseGrant(role)
		if err != nil {
			t.Fatal(err)
		}
		e.Grants = append(e.Grants, g)
	}
	c.Load([]access.Entry{e})
}

// guarded opens a stage whose clients are the principal p with these roles, and a connection to it.
func guarded(
	t *testing.T, p core.Protocol, roles string, maker func(*access.Guard) frontends.Frontend,
) (*access.Control, *frontendtest.Client) {
	t.Helper()
	c := &access.Control{}
	load(t, c, roles)
	stage := frontendtest.Open(t,
		func(b core.Broker) frontends.Frontend { return maker(access.NewGuard(b, c, p, "p")) }, frontendtest.InMemory)
	return c, stage.Dial("client")
}

// exchange sends requests and checks the replies.
func exchange(c *frontendtest.Client, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		c.Send(pairs[i])
		c.Want(pairs[i+1])
	}
}

const id = "6ba7b810-9dad-41d1-80b4-00c04fd430c"

func TestWorkqPrincipalsDoWhatTheirRolesAllow(t *testing.T) {
	t.Parallel()
	make := func(b *access.Guard) frontends.Frontend { return workq.New(b, workq.Options{}) }
	const refused = "-CLIENT-ERROR Not allowed\r\n"
	control, c := guarded(t, core.Workq, "produce:mail* consume:work", make)
	exchange(c,
		"add "+id+"1 mail.x 1000 60000 1\r\nx\r\n", "+OK\r\n",
		"add "+id+"2 work 1000 60000 1\r\nx\r\n", refused,
		"inspect queue mail.x\r\n", refused,
		"inspect queues 0 10\r\n", refused,
		"inspect server\r\n", refused,
		"delete "+id+"1\r\n", refused,
		"result "+id+"1 0\r\n", "-TIMEOUT\r\n",
		"lease mail.x 0\r\n", refused,
		"lease work mail.x 0\r\n", refused,
		"lease work 0\r\n", "-TIMEOUT\r\n",
		"complete "+id+"1 1\r\nx\r\n", refused,
		// Replies keep their order among requests that are sent together.
		"lease work 0\r\nlease mail.x 0\r\nadd "+id+"3 mailbox 1000 60000 1\r\nx\r\n", "-TIMEOUT\r\n"+refused+"+OK\r\n",
	)
	if n := control.Refusals(core.Workq); n != 9 {
		t.Errorf("%d refusals were counted", n)
	}
	load(t, control, "operate consume:mail*")
	exchange(c,
		"lease mail.x 0\r\n", "+OK 1\r\n"+id+"1 mail.x 1000 1\r\nx\r\n",
		"complete "+id+"1 1\r\nx\r\n", "+OK\r\n",
		"delete "+id+"3\r\n", "+OK\r\n",
		"add "+id+"4 mail.x 1000 60000 1\r\nx\r\n", refused,
	)
}

func TestFaktoryPrincipalsDoWhatTheirRolesAllow(t *testing.T) {
	t.Parallel()
	make := func(b *access.Guard) frontends.Frontend { return faktory.New(b, faktory.Options{}) }
	const refused = "-ERR not allowed\r\n"
	job := func(jid, queue string) string {
		return `PUSH {"jid":"` + jid + `12345678","jobtype":"t","queue":"` + queue + `","args":[]}` + "\r\n"
	}
	control, c := guarded(t, core.Faktory, "produce:mail", make)
	exchange(c,
		"", "+HI {\"v\":2}\r\n",
		"HELLO {\"v\":2}\r\n", "+OK\r\n",
		job("a", "mail"), "+OK\r\n",
		job("b", "other"), refused,
		`PUSHB [{"jid":"c12345678","jobtype":"t","queue":"other","args":[]}]`+"\r\n",
		"$27\r\n{\"c12345678\":\"not allowed\"}\r\n",
		"FETCH mail\r\n", refused,
		`ACK {"jid":"a12345678"}`+"\r\n", refused,
		`FAIL {"jid":"a12345678"}`+"\r\n", refused,
		"QUEUE PAUSE mail\r\n", refused,
		"QUEUE PAUSE *\r\n", refused,
		"QUEUE LATENCY mail\r\n", refused,
		`MUTATE {"cmd":"clear","target":"dead"}`+"\r\n", refused,
		"INFO\r\n", refused,
		"FLUSH\r\n", refused,
		`TRACK SET {"jid":"a12345678","percent":5}`+"\r\n", refused,
	)
	load(t, control, "consume:mail operate")
	c.Send("FETCH mail\r\n")
	if got := c.ReadUntil("\r\n") + c.ReadUntil("\r\n"); !strings.Contains(got, "a12345678") {
		t.Errorf("fetched %q", got)
	}
	exchange(c,
		`ACK {"jid":"a12345678"}`+"\r\n", "+OK\r\n",
		"QUEUE PAUSE *\r\n", "+OK\r\n",
		`MUTATE {"cmd":"clear","target":"dead"}`+"\r\n", "+OK\r\n",
		job("d", "mail"), refused,
	)
}

func TestGearmanPrincipalsDoWhatTheirRolesAllow(t *testing.T) {
	t.Parallel()
	make := func(b *access.Guard) frontends.Frontend {
		return gearman.New(b, gearman.Options{Handles: core.NewHandleFormat("H:h")})
	}
	packet := func(typ byte, args ...string) string {
		data := strings.Join(args, "\x00")
		return "\x00REQ\x00\x00\x00" + string(rune(typ)) + "\x00\x00\x00" + string(rune(len(data))) + data
	}
	answer := func(typ byte, args ...string) string { return strings.Replace(packet(typ, args...), "REQ", "RES", 1) }
	const (
		canDo, submitBg, created, grab, noJob, failure = 1, 18, 8, 9, 10, 19
		lineRefused                                    = "ERR NOT_ALLOWED Not+allowed+for+this+client\r\n"
	)
	refused := answer(failure, "NOT_ALLOWED", "Not allowed for this client")
	control, c := guarded(t, core.Gearman, "produce:mail consume:work", make)
	exchange(c,
		packet(submitBg, "mail", "", "x"), answer(created, "H:h:1"),
		packet(submitBg, "work", "", "x"), refused,
		packet(canDo, "mail"), refused,
		packet(canDo, "work")+packet(grab), answer(noJob),
		"status\r\n", lineRefused,
		"workers\r\n", lineRefused,
		"show jobs\r\n", lineRefused,
		"maxqueue mail 1\r\n", lineRefused,
		"create function mail\r\n", lineRefused,
		"drop function mail\r\n", lineRefused,
		"cancel job H:h:1\r\n", lineRefused,
		"shutdown\r\n", lineRefused,
		"getpid\r\nstatus\r\n", "OK ${pid}\n"+lineRefused,
	)
	load(t, control, "operate consume:mail")
	exchange(c,
		packet(grab), answer(noJob), // registered for a function that is no longer allowed
		packet(submitBg, "mail", "", "x"), refused,
		"status\r\n", "mail\t1\t0\t0\nwork\t0\t0\t0\n.\n",
		"maxqueue mail 1\r\n", "OK\r\n",
		"cancel job H:h:1\r\n", "OK\r\n",
	)
}
