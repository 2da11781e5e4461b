// Package machine makes the decisions of the broker. It applies operations of clients to the jobs of a table, and
// produces replies and records to store. It has no goroutine, lock, clock, disk or log: time and random numbers are
// arguments, so that the same operations always produce the same state.
//
// # Durability
//
// A decision marks the job as changed. Seal turns all changes since the last Seal into one record.CommitBatch in which
// each job occurs once, in its last state: a job that came and went in between costs nothing.
//
// # A job's life
//
// testdata/life.txt, as the scripts of the tests write it: what clients ask (f1 speaks Faktory, g1 Gearman), the
// replies, the moves of the job, and what each commit stores. "held" replies wait for the commit that they depend on.
//
//	f1 submit mail body=hello max-fails=3      submit.go admits the job: a new table.Entry, in the order of its queue
//	    f1: submitted 1 held                   the reply depends on the open batch
//	    1: gone > ready
//	commit                                     promise.go: Seal takes the changed jobs; the engine stores the batch
//	    new 1                                  and then lets the held replies leave
//	g1 lease mail                              lease.go: the first job of the queue that no limit or order holds back
//	    g1: assigned 1 attempt=1 body="hello"  not held: a crash gives the job back, as a lost connection does
//	    1: ready > leased
//	g1 fail 1                                  finish.go: tries are left, so policy.go says when the next one is due
//	    g1: ok held
//	    1: leased > retrying
//	commit
//	    again 1 retrying +failure +3
//	clock 1m                                   expire.go: Tick moves what is due
//	    1: retrying > ready
//	g1 lease mail
//	    g1: assigned 1 attempt=2 body="hello" fails=1
//	    1: ready > leased
//	g1 complete 1
//	    g1: ok held
//	    1: leased > gone
//	commit
//	    gone 1                                 one record deletes the job; a job that came and went since the last commit
//	                                           costs none
//
// # Files
//
// machine.go has what the machine knows of itself and of a client, and Apply; queues.go a queue and its settings;
// dispatch.go the list of operations and those that apply a list. The life of a job is in submit.go, lease.go,
// holder.go, finish.go, cancel.go, move.go, rerun.go, update.go and expire.go; what holds it back in pause.go,
// depend.go and policy.go; what is stored when, and which replies wait for it, in promise.go. What clients and their
// workers do is in client.go, consumer.go, serve.go and, at a new leader, resume.go. inspect.go, lists.go, event.go and
// watch.go show jobs to clients. parts.go has what the parts of the machine see of it, and what is counted. want.go
// gets data that only the store has; replay.go makes a machine of a store and keeps one up to date; check.go and
// effort.go verify the invariants and count the work.
package machine
