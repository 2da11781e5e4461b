package faktory

import (
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"broker/access"
	"broker/core"
	"broker/frontends"
)

// batchIDs makes batch ids from batch numbers and reads them. Clients keep ids, so these forms never change:
//
//	b-q4t6zk2m0x9hc1e7-1z      the prefix of the store, and the number in base 36
//	b-000000000001z            13 digits without a prefix: batches of stores that older versions created
//
// The prefix is random, so that an id from another store never names a batch of this one. It is stored with the first
// batch of a store.
//
// The forms are those of Faktory clients, and the HTTP API uses them because a batch must have one id. The core numbers
// batches and knows no ids: it gets no random numbers, and its machine decides the same on every node. So the
// front-end of the leader makes the prefix, and the nodes that follow ask it.
type batchIDs struct {
	reload func() // calls load, at a node that follows: the leader may have stored a prefix; nil: it is known

	mu      sync.RWMutex // guards the fields below; held while the broker stores the first prefix
	prefix  string
	first   uint64 // the first batch with a prefix; zero: none yet
	leaders uint64 // how often forget was called
}

// bidStart and bidDigits are the format of ids without a store prefix.
const (
	bidStart  = "b-"
	bidDigits = 13
)

// bidsMeta is the name of the stored entry. Its value is a storedBIDs.
const bidsMeta = "faktory/bids"

type storedBIDs struct {
	Prefix string `json:"prefix"`
	First  uint64 `json:"first"`
}

// load reads the prefix of the store.
func (ids *batchIDs) load(b *access.Guard) {
	var stored storedBIDs
	ids.mu.RLock()
	leaders := ids.leaders
	ids.mu.RUnlock()
	for _, r := range core.DoOnce(b.Unguarded(), core.Internal, &core.ReadMeta{Name: bidsMeta}) {
		if json.Unmarshal(r.Data, &stored) == nil { // nothing is stored before the first batch
			ids.mu.Lock()
			if ids.leaders == leaders {
				ids.prefix, ids.first = stored.Prefix, stored.First
			}
			ids.mu.Unlock()
		}
	}
}

// forget makes a node that follows read the prefix from the next leader: it may be lost with the leader before.
func (ids *batchIDs) forget() {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	ids.prefix, ids.first = "", 0
	ids.leaders++
}

// known returns the prefix and the first batch with it; zero: none yet.
func (ids *batchIDs) known() (prefix string, first uint64) {
	ids.mu.RLock()
	prefix, first = ids.prefix, ids.first
	ids.mu.RUnlock()
	if first == 0 && ids.reload != nil {
		ids.reload()
		ids.mu.RLock()
		defer ids.mu.RUnlock()
		return ids.prefix, ids.first
	}
	return prefix, first
}

// format returns the id of a batch.
func (ids *batchIDs) format(number uint64) string {
	prefix, first := ids.known()
	digits := strconv.FormatUint(number, 36)
	if first == 0 || number < first {
		return bidStart + strings.Repeat("0", bidDigits-len(digits)) + digits
	}
	return bidStart + prefix + "-" + digits
}

// parse is the inverse of format.
func (ids *batchIDs) parse(bid string) (number uint64, ok bool) {
	digits := bid[strings.LastIndexByte(bid, '-')+1:]
	number, err := strconv.ParseUint(digits, 36, 64)
	return number, err == nil && number != 0 && ids.format(number) == bid
}

// BatchName is the id of a batch for Faktory clients.
func (f *Frontend) BatchName(number uint64) string { return f.bids.format(number) }

// ParseBatchName is the inverse of BatchName.
func (f *Frontend) ParseBatchName(bid string) (number uint64, ok bool) { return f.bids.parse(bid) }

// OpenBatch opens a batch by calling do, for clients of any protocol. With the first batch of a store, it also stores
// the prefix. Other batches wait until that is done.
func (f *Frontend) OpenBatch(op *core.OpenBatch, do func(core.Op) core.Reply) core.Reply {
	ids := &f.bids
	if _, first := ids.known(); first != 0 {
		return do(op)
	}
	if f.opts.Leader != nil {
		opened := do(op)
		if opened.Kind != core.Failed {
			f.ask(&question{Do: askPrefix, Batch: opened.Seq})
			opened.Commit = max(opened.Commit, do(&core.LastCommit{Tag: op.Tag}).Commit)
		}
		return opened
	}
	ids.mu.Lock()
	defer ids.mu.Unlock()
	opened := do(op)
	if opened.Kind == core.Failed || ids.first != 0 {
		return opened
	}
	stored := ids.beginLocked(opened.Seq, op.Tag, do)
	if stored.Kind == core.Failed {
		return stored
	}
	opened.Commit = max(opened.Commit, stored.Commit)
	return opened
}

// begin stores a prefix for the batches from a number on, which a node that follows has opened, unless there is one.
func (ids *batchIDs) begin(b *access.Guard, first uint64) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if ids.first == 0 {
		ids.beginLocked(first, 1, func(op core.Op) core.Reply {
			return core.DoOnce(b.Unguarded(), core.Internal, op)[0]
		})
	}
}

// beginLocked stores a prefix by calling do.
func (ids *batchIDs) beginLocked(first, tag uint64, do func(core.Op) core.Reply) core.Reply {
	prefix := strings.ToLower(rand.Text())[:16]
	value := frontends.ToJSON(storedBIDs{Prefix: prefix, First: first})
	stored := do(&core.WriteMeta{Tag: tag, Entries: []core.MetaEntry{{Name: bidsMeta, Value: value}}})
	if stored.Kind != core.Failed {
		ids.prefix, ids.first = prefix, first
	}
	return stored
}
