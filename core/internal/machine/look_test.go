package machine_test

import (
	"fmt"
	"strings"

	"broker/core"
)

// lookOp makes the operations that look for something; nil: verb is none of them.
func (r *reader) lookOp(verb string, tag uint64) core.Op {
	switch verb {
	case "list-clients":
		return &core.ListClients{
			Tag: tag, Protocol: r.protocol("of"), Limit: int(r.number("limit")), After: r.clientID(r.Option("after")),
		}
	case "list-workers":
		return &core.ListWorkers{Tag: tag, After: r.Option("after"), Limit: int(r.number("limit"))}
	case "disconnect":
		return &core.DisconnectClient{Tag: tag, Client: r.clientID(r.Word(2))}
	case "name":
		return &core.NameClient{Name: r.Word(2)}
	}
	return nil
}

// clientID is the number of a client of the script, zero if there is none of that name.
func (r *reader) clientID(name string) core.ClientID {
	for _, a := range r.p.clients {
		if a.name == name {
			return a.id
		}
	}
	return 0
}

// lookReply writes what came of lookOp.
func (p *player) lookReply(r *core.Reply) string {
	var lines []string
	for i := range r.Clients {
		lines = append(lines, p.clientText(&r.Clients[i]))
	}
	for _, w := range r.Workers {
		lines = append(lines, fmt.Sprintf("worker %s:%s", w.Name, p.heldText(w.Held)))
	}
	if r.NextClient != 0 {
		lines = append(lines, "and more")
	}
	if len(lines) == 0 {
		return "none"
	}
	return strings.Join(lines, "\n")
}

func (p *player) clientText(i *core.ClientInfo) string {
	text := fmt.Sprintf("%v client at %q since %s", i.Protocol, i.Address, p.at(i.OpenedAt))
	for _, x := range []struct{ name, value string }{{"named", i.Name}, {"worker", i.Worker}, {"for", strings.Join(i.Queues, " ")}} {
		if x.value != "" {
			text += fmt.Sprintf(" %s %s", x.name, x.value)
		}
	}
	if i.Parked {
		text += " parked"
	}
	if i.Sleeping {
		text += " sleeping"
	}
	return text + p.heldText(i.Held)
}

func (p *player) heldText(held []core.HeldJob) (text string) {
	for _, j := range held {
		text += fmt.Sprintf(" (%d %s of %s by %v, lease %d from %s to %s)",
			j.Seq, j.Type, j.Queue, j.Protocol, j.Epoch, p.at(j.LeasedAt), p.at(j.LeaseUntil))
	}
	return text
}

// why says what a job waits for, and what else is only known of single jobs.
func (p *player) why(name string) error {
	ref, err := p.ref(name)
	if err != nil {
		return err
	}
	i := p.ask(&core.Inspect{Ref: ref, Brief: true}).Info
	if i == nil {
		return fmt.Errorf("no job %s", name)
	}
	text := fmt.Sprintf("%d waits for %v", i.Seq, i.Reason)
	if len(i.Waiting) > 0 {
		text += fmt.Sprintf(" %v", i.Waiting)
	}
	p.say("%s, dependents=%d children=%d epoch=%d bytes=%d", text, i.Dependents, i.Children, i.Epoch, i.BodyBytes)
	return nil
}
