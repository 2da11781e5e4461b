package machine

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"broker/core"
)

// BenchmarkFairKeysUnderLimit submits, leases and completes jobs of many keys that take turns below a limit that is
// reached: by type, or shared with other queues. The time for a job must not grow with the number of keys.
func BenchmarkFairKeysUnderLimit(b *testing.B) {
	const leased = 10
	for _, limit := range []string{"none", "type", "shared"} {
		for _, keys := range []int{150, 15_000, 40_000} {
			b.Run(fmt.Sprint(limit, "/", keys), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 1))
				m := New(Options{Random: rng, StartedAt: 1, DefaultLease: time.Hour})
				c := m.OpenClient(0, core.ClientOptions{Protocol: core.Internal})
				do := func(op core.Op) core.Reply {
					m.Apply(1, c, []core.Op{op})
					r := m.Take(c, nil)
					return r[len(r)-1]
				}
				do(&core.ShareQueue{Sharing: core.Sharing{Queue: "q", Key: byCustomer.Key, Fair: true}})
				switch throttle := (core.Throttle{Leased: leased}); limit {
				case "type":
					do(&core.PutLimit{Limit: core.Limit{
						Selector: core.InQueue("q", core.ScopeType, ""), Throttle: throttle,
					}})
				case "shared":
					types := []string{"T"}
					do(&core.PutLimit{Limit: core.Limit{
						Name: "s", Selector: core.Selector{Types: types}, Throttle: throttle,
					}})
				}
				submit := func(i int) {
					tags := []string{fmt.Sprint("customer:", i%keys)}
					do(&core.Submit{Job: &core.Job{Queue: "q", Type: "T", Tags: tags}})
				}
				for i := range keys {
					submit(i)
				}
				lease := &core.Lease{Queues: []string{"q"}, Holder: core.HeldByNobody}
				var held []uint64
				for range leased {
					held = append(held, do(lease).Seq)
				}
				i := 0
				for b.Loop() {
					submit(i)
					if limit != "none" {
						if r := do(lease); r.Kind != core.NothingReady {
							b.Fatalf("a lease beyond the limit: %v", r.Kind)
						}
					}
					do(&core.Complete{Ref: core.Ref{Seq: held[i%leased]}, Authority: core.ByLeased})
					r := do(lease)
					if r.Kind != core.Assigned {
						b.Fatalf("got %v", r.Kind)
					}
					held[i%leased] = r.Seq
					i++
				}
			})
		}
	}
}
