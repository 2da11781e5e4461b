package switchover

import (
	"bytes"
	"slices"

	"broker/frontends/gearman/packet"
	"broker/migrate/wire"
)

// replies handles the packets from a side until its connection ends.
func (c *gearmanConn) replies(s *gearmanSide) {
	many := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(s.pending) > 0 && s.pending[0].typ == wire.Text && manyLines(s.pending[0].raw)
	}
	for {
		p, err := readGearmanReply(s.in, many)
		if err == nil {
			err = c.reply(s, p)
		}
		if err != nil {
			break
		}
		c.out.wait()
	}
	if c.sideEnded(s) {
		return
	}
	c.end()
}

// sideEnded handles the end of a side. It reports whether to continue serving the client.
func (c *gearmanConn) sideEnded(s *gearmanSide) (goOn bool) {
	s.out.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !s.broker {
		c.serverGone = true
		return c.finished && c.broker != nil && len(c.broker.awaited) > 0 && !c.ended // results may still arrive
	}
	return c.lostLocked(s) && !c.serverGone
}

// reply handles a packet of a side.
func (c *gearmanConn) reply(s *gearmanSide, p wire.Packet) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch p.Type() { //nolint:exhaustive // the others are replies
	case packet.Noop:
		c.pushLocked(s, p)
		return nil
	case packet.WorkStatus, packet.WorkComplete, packet.WorkFail, packet.WorkException, packet.WorkData,
		packet.WorkWarning:
		if s.broker {
			if err := showHandle(p); err != nil {
				return err
			}
			if p.Type() == packet.WorkComplete || p.Type() == packet.WorkFail {
				delete(s.awaited, string(p.Arg(0)))
			}
		}
		c.pushLocked(s, p)
		return nil
	case packet.Error:
		if string(p.Arg(0)) == "JOB_NOT_FOUND" { // an answer to WORK_*, which otherwise has no reply
			c.pushLocked(s, p)
			return nil
		}
	}
	if len(s.pending) == 0 {
		c.pushLocked(s, p)
		return nil
	}
	slot := c.takeLocked(s)
	if slot.internal {
		return nil
	}
	err := c.answerLocked(s, slot, p)
	if err != nil { // the connection ends, but the request gets its reply first
		c.doneLocked(s, slot, newGearmanPacket(packet.Error, "QUEUE_ERROR", err.Error()))
	}
	return err
}

// answerLocked gives a slot its reply, or asks the other side.
func (c *gearmanConn) answerLocked(s *gearmanSide, slot *gearmanSlot, p wire.Packet) error {
	typ := p.Type()
	if s.broker && len(p) > packet.HeaderBytes {
		switch typ { //nolint:exhaustive // the others have no handle
		case packet.JobCreated, packet.JobAssign, packet.JobAssignUniq, packet.JobAssignAll, packet.StatusRes:
			if err := showHandle(p); err != nil {
				return err
			}
		}
	}
	switch typ { //nolint:exhaustive // the others pass unchanged
	case packet.JobCreated:
		slot.entry.accepted(s.broker)
		if s.broker && foreground(slot.typ) {
			s.awaited[string(p.Arg(0))] = true
		}
	case packet.JobAssign, packet.JobAssignUniq, packet.JobAssignAll:
		if s.broker {
			s.assigned[string(p.Arg(0))] = true
		}
	case packet.NoJob:
		if c.askOtherLocked(slot) {
			return nil
		}
	case packet.StatusResUnique:
		if bytes.Equal(p.Arg(1), []byte("0")) && c.askOtherLocked(slot) {
			return nil
		}
	}
	c.doneLocked(s, slot, p)
	return nil
}

// askOtherLocked sends the request to the other side, if that side is connected and has not had the request yet.
func (c *gearmanConn) askOtherLocked(slot *gearmanSlot) bool {
	s := slot.other
	slot.other = nil
	if s == nil || s != c.server && s != c.broker {
		return false
	}
	c.expectLocked(s, slot)
	s.out.put(slot.raw)
	c.cond.Broadcast()
	return true
}

// doneLocked gives a slot its reply. The reply is passed on after all earlier replies.
func (c *gearmanConn) doneLocked(s *gearmanSide, slot *gearmanSlot, p wire.Packet) {
	slot.reply = p
	s.held = slot
	c.heldBytes += len(p)
	c.flushLocked()
	// This side waits while its replies wait for a reply of the other side.
	for c.heldBytes > maxHeld && s.held != nil && !slices.Contains(s.pending, c.slots[0]) && !c.ended {
		c.cond.Wait()
	}
}

// flushLocked passes replies on, in the order of the requests.
func (c *gearmanConn) flushLocked() {
	n := 0
	for ; n < len(c.slots) && c.slots[n].reply != nil; n++ {
		slot := c.slots[n]
		c.out.put(slot.reply)
		c.heldBytes -= len(slot.reply)
		for _, p := range slot.after {
			c.out.put(p)
			c.heldBytes -= len(p)
		}
		for _, s := range []*gearmanSide{c.server, c.broker} {
			if s != nil && s.held == slot {
				s.held = nil
			}
		}
	}
	if n > 0 {
		c.slots = c.slots[n:]
		c.cond.Broadcast()
	}
}

// pushLocked passes on an unsolicited packet. It stays behind the earlier replies of its side.
func (c *gearmanConn) pushLocked(s *gearmanSide, p wire.Packet) {
	if s.held == nil {
		c.out.put(p)
		return
	}
	s.held.after = append(s.held.after, p)
	c.heldBytes += len(p)
}

// lostLocked handles the end of the connection to the broker. It reports whether to continue serving the client. If the
// client waits for results from the broker, its connection must be closed, so that it notices that they will not come.
func (c *gearmanConn) lostLocked(s *gearmanSide) bool {
	c.broker = nil
	c.cond.Broadcast()
	if c.ended || len(s.awaited) > 0 {
		return false
	}
	for _, slot := range s.pending {
		switch {
		case slot.internal:
		case slot.typ == packet.GrabJob || slot.typ == packet.GrabJobUniq || slot.typ == packet.GrabJobAll:
			if !c.askOtherLocked(slot) {
				slot.reply = newGearmanPacket(packet.NoJob)
			}
		default:
			slot.reply = newGearmanPacket(packet.Error, "QUEUE_ERROR", "the connection to the broker was lost")
		}
		c.heldBytes += len(slot.reply)
	}
	c.flushLocked()
	c.redialLocked()
	return true
}
