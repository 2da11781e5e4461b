// Package core defines what a job is, which operations clients may request, and what they get back.
//
// A front-end translates its protocol into operations ([Op]) and passes them to the [Broker]; the broker returns
// replies ([Reply]) in the order of its decisions. This package knows no protocol, disk or clock.
//
//	           Submit
//	 ┌───────────┼────────────┐
//	 ▼           ▼            ▼
//	Scheduled ─▶ Ready ◀──── Blocked
//	 ▲    due   │ ▲  released, lease ran out, retry due
//	 │          ▼ │
//	Retrying ◀── Leased ──▶ Done   (kept while the job says so, else gone)
//	 │ limit     └───────▶ Dead  (kept for DeadFor, can be put back)
//	 └──────────────────▶ Dead
//
// # Promises
//
// A reply whose Commit is not zero must not leave the process before Broker.Committed has reached that number; the
// front-end's [frontends.Outbox] ensures that. Leases and progress are stored too, but their replies do not wait for
// the disk.
//
// # Ownership
//
// The core owns every *Job that an operation passes to it, and nothing changes it afterwards, so that any number of
// sessions may read the same *Job at the same time. Byte slices in replies are read-only.
package core
