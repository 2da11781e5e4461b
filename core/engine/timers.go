package engine

import (
	"time"

	"broker/core"
)

const (
	tickBudget   = 512                   // deadlines handled at once before the lock is released
	maxSleep     = time.Second           // to notice that the clock was set, and to check the disk
	diskInterval = time.Second           // between checks of the disk
	minSleep     = 50 * time.Microsecond // shorter sleeps are not worth it
)

// timerLoop sleeps until the earliest deadline and handles due ones, until the engine is closed.
func (e *Engine) timerLoop() {
	defer e.running.Done()
	sleep := time.NewTimer(maxSleep)
	defer sleep.Stop()
	disk := core.Instant(0)
	var failed <-chan struct{} // a store may fail in the background, between commits
	if e.store != nil {
		failed = e.store.Failed()
	}
	for {
		next := e.Tick()
		now := e.time.Now()
		if now.Sub(disk) >= diskInterval || now < disk {
			disk = now
			e.startDiskCheck()
		}
		pause := maxSleep
		if next != 0 {
			pause = min(max(next.Sub(now), minSleep), maxSleep)
		}
		sleep.Reset(pause)
		select {
		case <-e.done:
			return
		case <-failed:
			failed = nil
			e.fail(e.store.Err())
		case <-e.ticks:
		case <-sleep.C:
		}
	}
}

// Tick handles all due deadlines and returns the next one, or zero.
func (e *Engine) Tick() core.Instant {
	for {
		var buf [64]func()
		e.mu.Lock()
		now := e.nowLocked()
		more := e.machine.Tick(now, tickBudget)
		next := e.machine.NextDeadline()
		e.deadline = next
		wakes, s := e.afterLocked(buf[:0])
		e.mu.Unlock()
		e.notify(wakes, signals{commit: s.commit, runs: s.runs})
		e.reportClock()
		if !more {
			return next
		}
	}
}
