package table

// Kinds of timer owners.
const (
	TimerState    uint8 = iota // job: due, retry, end of lease
	TimerExpiry                // job: expiry or end of retention
	TimerWait                  // client: waiting lease, or a wake-up without response
	TimerWatch                 // watcher: deadline of a wait
	TimerBatch                 // batch: not committed in time, or finished long enough ago
	TimerSlot                  // job: its throttle slot becomes free
	TimerIdle                  // queue: unused for long
	TimerSchedule              // schedule: due
	TimerTrim                  // queue: it keeps too many finished jobs
	TimerBucket                // bucket: room for the next lease
	TimerTypeSlot              // job: its slot in the bucket of its type is freed
	TimerKeySlot               // job: its slot in the bucket of its key is freed
	TimerStart                 // job: StartBefore
	TimerSort                  // the next step of laneSort
	TimerPause                 // queue: its pause ends
	TimerWindow                // window: it ends
	TimerUnfit                 // queue: more of its jobs are unfit than one search drops
	TimerConsumer              // worker: it has not asked for jobs for long
	TimerLinks                 // the next step of ended and dead jobs with many dependents
	TimerSteps                 // the next step of other work

	TimerKinds // their number
)
