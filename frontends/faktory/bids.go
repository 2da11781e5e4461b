package faktory

import (
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"broker/access"
	"broker/core"
)

// batchIDs makes batch ids from batch numbers and reads them. Clients keep ids, so these forms never change:
//
//	b-q4t6zk2m0x9hc1e7-1z      the prefix of the store, and the number in base 36
//	b-000000000001z            13 digits without a prefix: batches of stores that older versions created
//
// The prefix is random, so that an id from another store never names a batch of this one. It is stored with the first
// batch of a store.
type batchIDs struct {
	mu     sync.RWMutex // guards the fields below; held while the broker stores the first prefix
	prefix string
	first  uint64 // the first batch with a prefix; zero: none yet
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
	for _, r := range core.DoOnce(b.Unguarded(), core.Internal, &core.ReadMeta{Name: bidsMeta}) {
		if json.Unmarshal(r.Data, &stored) == nil { // nothing is stored before the first batch
			ids.prefix, ids.first = stored.Prefix, stored.First
		}
	}
}

// format returns the id of a batch.
func (ids *batchIDs) format(number uint64) string {
	ids.mu.RLock()
	defer ids.mu.RUnlock()
	digits := strconv.FormatUint(number, 36)
	if ids.first == 0 || number < ids.first {
		return bidStart + strings.Repeat("0", bidDigits-len(digits)) + digits
	}
	return bidStart + ids.prefix + "-" + digits
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
	ids.mu.RLock()
	hasPrefix := ids.first != 0
	ids.mu.RUnlock()
	if hasPrefix {
		return do(op)
	}
	ids.mu.Lock()
	defer ids.mu.Unlock()
	opened := do(op)
	if opened.Kind == core.Failed || ids.first != 0 {
		return opened
	}
	prefix := strings.ToLower(rand.Text())[:16]
	value, _ := json.Marshal(storedBIDs{Prefix: prefix, First: opened.Seq}) // always has a JSON form
	stored := do(&core.WriteMeta{Tag: op.Tag, Entries: []core.MetaEntry{{Name: bidsMeta, Value: value}}})
	if stored.Kind == core.Failed {
		return stored
	}
	ids.prefix, ids.first = prefix, opened.Seq
	opened.Commit = max(opened.Commit, stored.Commit)
	return opened
}
