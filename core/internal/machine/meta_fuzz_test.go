package machine_test

import (
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/internal/machine"
)

// storedSchedule is the definition of a schedule of a job of queue q.
const storedSchedule = `{"every":10000000000,"job":"AQABcQ==","backlog":2,"missed":2,"max_missed":3}`

// FuzzMetaEntries: a stored entry is either refused or usable, and if it is stored again, it can be restored.
func FuzzMetaEntries(f *testing.F) {
	kinds := []string{"core/seq", "core/totals", "core/history/", "core/queue/", "core/group/", "", "core/series/"}
	for kind, seed := range []struct{ name, value string }{
		{"", "\x00\x00\x00\x00\x00\x00\x00\x07"},
		{"", "\x01\x02\x03\x80\x01"},
		{"2030-01-01", "\x01\x02\x03"},
		{"q", `{"Created":true,"Paused":true,"Kept":true,"Limits":{"MaxHigh":3}}`},
		{
			"7",
			`{"description":"d","created_at":1,"until":5,"total":3,"committed":true,"success_job":9,"success":1,"lost":1}`,
		},
		{"cron/x", "anything"},
		{"s", storedSchedule},
		{"known", `{"at":1,"next":2,"last_at":3,"last_seq":4,"runs":5,"revision":6}`},
		{
			"q",
			`{"limits":[{"leased":1},{"scope":1,"name":"YQ==","rate":0.5,"burst":2},{"scope":2,"per_worker":1,"slot_for":5}],"key":2,"fair":true,"weights":{"a":3}}`,
		},
		{"0/00/q/q", "\x07" + strings.Repeat("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d", 60)},
	} {
		f.Add(byte(kind), seed.name, []byte(seed.value))
	}
	f.Fuzz(func(t *testing.T, kind byte, name string, value []byte) {
		now := coretest.NewClock().Now()
		begin := func() *machine.Machine {
			return machine.New(machine.Options{Persist: true, Await: true, CacheBytes: 1 << 20, StartedAt: now})
		}
		m := begin()
		if err := m.RestoreMeta("core/schedule/known", []byte(storedSchedule)); err != nil {
			t.Fatal(err)
		}
		if m.RestoreMeta(kinds[int(kind)%len(kinds)]+name, value) != nil {
			return
		}
		m.Restored()
		c := m.OpenClient(0, core.ClientOptions{Protocol: core.Internal})
		m.Apply(now, c, []core.Op{
			&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}}, &core.Lease{Queues: []string{"q"}},
			&core.ReadStats{}, &core.ListQueues{}, &core.InspectQueue{Queue: "q"}, &core.InspectBatch{Batch: 7},
			&core.CloseBatch{Batch: 7}, &core.RunSchedule{Name: name}, &core.PauseSchedule{Name: name},
			&core.ListSchedules{},
			&core.ListLimits{Queue: "q"}, &core.ShareQueue{Sharing: core.Sharing{Queue: "q"}}, &core.Purge{},
			&core.PauseQueue{Queue: "q"},
		})
		for range 3 {
			now = now.Add(48 * time.Hour)
			m.Tick(now, 1000)
		}
		var sealed machine.Sealed
		m.Seal(&sealed)
		again := begin()
		if err := again.RestoreMeta("core/schedule/known", []byte(storedSchedule)); err != nil {
			t.Fatal(err)
		}
		for _, mark := range sealed.Batch.Meta {
			if mark.Value == nil {
				continue // removed
			}
			if err := again.RestoreMeta(mark.Name, mark.Value); err != nil {
				t.Errorf("written back: %v", err)
			}
		}
	})
}
