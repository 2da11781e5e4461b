// Package core is the vocabulary of the broker: what a job is, what may be asked of it, what comes back.
//
// A front-end translates its protocol into operations ([Op]) and hands them to the [Broker]; the broker answers with
// replies ([Reply]) in the order of its decisions. Nothing here knows a protocol's bytes, a disk or a clock.
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
// A reply whose Commit is not zero must not leave the process before Broker.Committed has reached that number: the
// front-end's [frontends.Outbox] sees to it. Leases and progress are recorded too, but no reply waits for them.
//
// # Ownership
//
// A *Job handed over in an operation belongs to the core from then on, and nobody changes it any more: that is why the
// same *Job may be read by any number of sessions at once. Byte slices in replies are read-only.
package core
