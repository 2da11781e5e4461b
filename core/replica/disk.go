package replica

import "context"

// checkFree notices that little space is left on this node's disk.
func (n *Node) checkFree() {
	free, err := n.store.Load().FreeBytes()
	if err != nil || n.o.MinFreeDisk == 0 {
		return // some file systems do not report it; failing writes are noticed anyway
	}
	low := free < n.o.MinFreeDisk
	if n.diskLow.Swap(low) == low {
		return
	}
	if low {
		n.log.Warn("the disk of this node is nearly full", "free_bytes", free, "min_free_disk", n.o.MinFreeDisk)
	} else {
		n.log.Info("the disk of this node has space again", "free_bytes", free)
	}
}

// transferIfDiskLow transfers leadership to a member with more disk space, because a leader with a full disk refuses
// new jobs. If all disks are nearly full, this node stays the leader.
func (n *Node) transferIfDiskLow(all map[string]*Status) {
	if n.diskLow.Load() {
		n.transferTo(all, "handing the lead over, since the disk of this node is nearly full",
			func(s *Status) bool { return !s.DiskLow })
	}
}

// transferTo transfers leadership to a member that can lead and is better, because of a disk. It logs why.
func (n *Node) transferTo(all map[string]*Status, why string, better func(*Status) bool) {
	for _, s := range n.servers() {
		st := all[string(s.ID)]
		if string(s.ID) == n.o.ID || st == nil || !better(st) || canLead(s, st, n.raft.CommitIndex()) != nil {
			continue
		}
		n.log.Warn(why, "to", string(s.ID))
		n.yield(context.Background(), Member{ID: string(s.ID), Address: string(s.Address)})
		if err := n.raft.LeadershipTransferToServer(s.ID, s.Address).Error(); err != nil {
			n.log.Warn("leadership could not be transferred", "to", string(s.ID), "error", err.Error())
			continue
		}
		return
	}
}
