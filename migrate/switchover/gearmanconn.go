package switchover

import (
	"bytes"
	"slices"
	"time"

	"broker/frontends/gearman/packet"
	"broker/migrate/wire"
)

// request handles a request of the client.
func (c *gearmanConn) request(p wire.Packet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch p.Type() { //nolint:exhaustive // all others go to the server, which refuses unknown types
	case wire.Text:
		c.askLocked(c.server, p, &gearmanSlot{typ: wire.Text, raw: p})
	case packet.CanDo, packet.CanDoTimeout:
		c.server.out.put(p)
		c.canDoLocked(p)
	case packet.CantDo:
		c.server.out.put(p)
		c.cantDoLocked(p)
	case packet.ResetAbilities:
		c.server.out.put(p)
		clear(c.functions)
		if c.broker != nil {
			clear(c.broker.functions)
			c.broker.out.put(p)
		}
	case packet.SetClientID, packet.OptionReq:
		c.settingLocked(p)
	case packet.PreSleep:
		c.asleep = true
		c.server.out.put(p)
		if c.broker != nil {
			c.broker.out.put(p)
		}
	case packet.SubmitJob, packet.SubmitJobHigh, packet.SubmitJobLow, packet.SubmitReduceJob, packet.SubmitJobBg,
		packet.SubmitJobHighBg, packet.SubmitJobLowBg,
		packet.SubmitJobSched, packet.SubmitJobEpoch, packet.SubmitReduceJobBg:
		c.submitLocked(p)
	case packet.GrabJob, packet.GrabJobUniq, packet.GrabJobAll:
		c.grabLocked(p)
	case packet.WorkStatus, packet.WorkComplete, packet.WorkFail, packet.WorkException, packet.WorkData,
		packet.WorkWarning:
		c.workLocked(p)
	case packet.GetStatus:
		c.statusLocked(p)
	case packet.GetStatusUnique:
		c.uniqueLocked(p)
	case packet.EchoReq:
		c.askLocked(c.server, p, &gearmanSlot{typ: packet.EchoReq})
	default:
		c.server.out.put(p)
	}
}

// askLocked sends a request that gets a reply. If the side is nil, the slot already has its reply.
func (c *gearmanConn) askLocked(s *gearmanSide, p wire.Packet, slot *gearmanSlot) {
	c.slots = append(c.slots, slot)
	if s == nil {
		c.heldBytes += len(slot.reply)
		c.flushLocked()
		return
	}
	c.expectLocked(s, slot)
	s.out.put(p)
}

// expectLocked records that a side owes a reply. A broker that takes too long counts as lost.
func (c *gearmanConn) expectLocked(s *gearmanSide, slot *gearmanSlot) {
	s.pending = append(s.pending, slot)
	if s.broker && len(s.pending) == 1 {
		_ = s.out.conn.SetReadDeadline(time.Now().Add(c.s.replyWithin)) // fails on a closed connection only
	}
}

// takeLocked removes the oldest request of a side, which has its reply now.
func (c *gearmanConn) takeLocked(s *gearmanSide) *gearmanSlot {
	slot := s.pending[0]
	s.pending = s.pending[1:]
	if s.broker {
		// fails on a closed connection only
		_ = s.out.conn.SetReadDeadline(replyDeadline(len(s.pending), c.s.replyWithin))
	}
	return slot
}

func (c *gearmanConn) canDoLocked(p wire.Packet) {
	name := string(p.Arg(0))
	if _, known := c.functions[name]; !known && len(c.functions) >= maxFunctions || len(p) > maxFunctionBytes {
		return // it only gets the server's jobs
	}
	c.functions[name] = p
	if c.broker != nil {
		delete(c.broker.functions, name) // its time-out may have changed
	}
	c.registerLocked()
}

func (c *gearmanConn) cantDoLocked(p wire.Packet) {
	name := string(p.Arg(0))
	delete(c.functions, name)
	if c.broker != nil && c.broker.functions[name] {
		delete(c.broker.functions, name)
		c.broker.out.put(p)
	}
}

// settingLocked keeps the last value of a setting of the connection.
func (c *gearmanConn) settingLocked(p wire.Packet) {
	c.settings = slices.DeleteFunc(c.settings, func(s wire.Packet) bool {
		return s.Type() == p.Type() && (p.Type() == packet.SetClientID || bytes.Equal(s, p))
	})
	if len(c.settings) < maxSettings && len(p) <= wire.MaxLine {
		c.settings = append(c.settings, p)
	}
	option := p.Type() == packet.OptionReq
	if c.broker != nil {
		c.broker.out.put(p)
		if option {
			c.expectLocked(c.broker, &gearmanSlot{typ: packet.OptionReq, internal: true})
		}
	}
	if option {
		c.askLocked(c.server, p, &gearmanSlot{typ: packet.OptionReq})
		return
	}
	c.server.out.put(p)
}

// maxSettings limits the kept options.
const maxSettings = 16

func (c *gearmanConn) submitLocked(p wire.Packet) {
	e := c.s.find(string(p.Arg(0)))
	slot := &gearmanSlot{typ: p.Type(), entry: e}
	if e == nil || e.state != New {
		c.askLocked(c.server, p, slot)
		return
	}
	s, err := c.brokerLocked()
	if err != nil {
		slot.reply = newGearmanPacket(packet.Error, "QUEUE_ERROR", err.Error())
	}
	c.askLocked(s, p, slot)
}

// grabLocked asks for a job. It alternates which side comes first.
func (c *gearmanConn) grabLocked(p wire.Packet) {
	c.asleep = false
	slot := &gearmanSlot{typ: p.Type(), raw: p}
	first := c.server
	if c.broker != nil && len(c.broker.functions) > 0 {
		slot.other = c.broker
		if c.turn {
			first, slot.other = c.broker, c.server
		}
		c.turn = !c.turn
	}
	c.askLocked(first, p, slot)
}

// workLocked passes a worker's report about a job to the side that has assigned it. After the connection to the broker
// was lost, its jobs no longer belong to this worker.
func (c *gearmanConn) workLocked(p wire.Packet) {
	if !ofBroker(p) || !c.s.any() {
		c.server.out.put(p)
		return
	}
	handle := string(p.Arg(0))
	if c.broker == nil || !c.broker.assigned[handle] {
		return
	}
	if p.Type() == packet.WorkComplete || p.Type() == packet.WorkFail {
		delete(c.broker.assigned, handle)
	}
	restoreHandle(p)
	c.broker.out.put(p)
}

func (c *gearmanConn) statusLocked(p wire.Packet) {
	if !ofBroker(p) || !c.s.any() {
		c.askLocked(c.server, p, &gearmanSlot{typ: packet.GetStatus})
		return
	}
	slot := &gearmanSlot{typ: packet.GetStatus}
	s, err := c.brokerLocked()
	if err != nil {
		slot.reply = newGearmanPacket(packet.Error, "QUEUE_ERROR", err.Error())
	}
	restoreHandle(p)
	c.askLocked(s, p, slot)
}

// uniqueLocked asks the server, and then the broker.
func (c *gearmanConn) uniqueLocked(p wire.Packet) {
	slot := &gearmanSlot{typ: packet.GetStatusUnique, raw: p}
	if c.s.any() {
		slot.other, _ = c.brokerLocked() // nil: ask only the server
	}
	c.askLocked(c.server, p, slot)
}
