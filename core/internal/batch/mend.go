package batch

import (
	"strings"

	"broker/core"
	"broker/core/internal/table"
)

// Mend returns the stored value of a metadata entry for a store that has lost jobs. A batch that may have lost members
// can no longer succeed; it continues without a lost callback. Entries of other packages are not changed.
func Mend(name string, value []byte, lost, lostBehind func(seq uint64) bool) []byte {
	if !strings.HasPrefix(name, Prefix) {
		return value
	}
	g, err := decode(name, value)
	if err != nil || g.Success == core.CallbackDone || !lostBehind(g.number) {
		return value // opening the store reports an entry that cannot be decoded
	}
	g.CallbackLost = true
	if g.CompleteJob != 0 && lost(g.CompleteJob) {
		g.CompleteLost, g.Complete, g.CompleteJob = lostCallback(g.Complete)+1, core.CallbackDone, 0
	}
	if g.SuccessJob != 0 && lost(g.SuccessJob) {
		g.SuccessLost, g.Success, g.SuccessJob = lostCallback(g.Success)+1, core.CallbackDone, 0
	}
	return table.Encode(g.batchMeta)
}
