package sqs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"broker/access"
	"broker/core"
)

// taskDocuments counts the stored move tasks.
func (f *fixture) taskDocuments() (n int) {
	f.t.Helper()
	c := f.open(caller{internal: true})
	defer c.Close()
	if err := f.eachDocument(c, taskDocs, func([]byte) error { n++; return nil }); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// redrive creates a dead-letter queue with messages and starts a task that moves one message a second.
func (f *fixture) redrive(dead string, messages int) (status int) {
	f.t.Helper()
	url := f.create(dead)
	f.create("source-of-"+dead, redrivePolicy, `{"deadLetterTargetArn":"`+f.arnOf(dead)+`","maxReceiveCount":2}`)
	for range messages {
		f.send(url, "m")
	}
	status, _, _ = f.post(context.Background(), "StartMessageMoveTask",
		object{"SourceArn": f.arnOf(dead), "MaxNumberOfMessagesPerSecond": 1})
	return status
}

// startMove starts a task that moves the three messages of a dead-letter queue to another queue.
func (f *fixture) startMove(perSecond int) (dead, other string, start object) {
	f.t.Helper()
	dead, other = f.create("dead"), f.create("other")
	f.create("q", redrivePolicy, `{"deadLetterTargetArn":"`+f.arnOf("dead")+`","maxReceiveCount":2}`)
	for range 3 {
		f.send(dead, "m")
	}
	start = object{
		"SourceArn": f.arnOf("dead"), "DestinationArn": f.arnOf("other"), "MaxNumberOfMessagesPerSecond": perSecond,
	}
	f.do("StartMessageMoveTask", start)
	return dead, other, start
}

// task is the latest move task of a queue.
func (f *fixture) task(dead string) object {
	f.t.Helper()
	return f.do("ListMessageMoveTasks", object{"SourceArn": f.arnOf(dead)})["Results"].([]any)[0].(object)
}

func TestDeletingAQueueDeletesItsMoveTasks(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, messages := range []int{0, 3} { // a task that is done, and one that runs
		dead := fmt.Sprint("dead", messages)
		want(t, "start", f.redrive(dead, messages), 200)
		want(t, "stored", f.taskDocuments(), 1)
		f.do("DeleteQueue", object{"QueueUrl": "/" + dead})
		f.done.Wait()
		want(t, "stored after the queue is deleted", f.taskDocuments(), 0)
		want(t, "known after the queue is deleted", len(f.tasks), 0)
		f.create(dead)
		want(t, "tasks of the new queue", f.do("ListMessageMoveTasks", object{"SourceArn": f.arnOf(dead)})["Results"],
			nil)
	}
}

func TestMoveTasksOfDeletedQueuesAreRemovedAtStart(t *testing.T) {
	t.Parallel()
	f := setup(t)
	c := f.open(caller{internal: true})
	for i := range 5 {
		old := &moveTask{Handle: fmt.Sprint("old-", i), Source: "gone", State: []string{taskDone, taskRunning}[i%2]}
		if _, err := f.save(c, old); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	want(t, "start", f.redrive("dead", 0), 200)
	f.done.Wait()
	f.restart()
	want(t, "stored after a restart", f.taskDocuments(), 1)
}

func TestMoveTasksOfAllQueuesAreLimited(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("dead")
	c := f.open(caller{internal: true})
	var documents []core.MetaEntry
	for i := range maxAllTasks + 50 {
		value := fmt.Sprintf(`{"handle":"old-%d","source":"dead","started_at":%d,"state":"COMPLETED"}`, i, i)
		documents = append(documents, core.MetaEntry{Name: taskDocs + fmt.Sprint("old-", i), Value: []byte(value)})
	}
	if _, err := c.Ask(&core.WriteDocuments{Tag: 1, Documents: documents}); err != nil {
		t.Fatal(err)
	}
	c.Close()
	f.restart()
	want(t, "stored after a restart", f.taskDocuments(), maxAllTasks-1)
	if first := f.tasks[0].Handle; first != "old-51" {
		t.Errorf("the oldest task is %s; the oldest were not dropped", first)
	}
	want(t, "start", f.redrive("other", 0), 200)
	want(t, "start", f.redrive("third", 0), 200)
	f.done.Wait()
	want(t, "stored", f.taskDocuments(), maxAllTasks)
}

func TestRunningMoveTasksAreLimited(t *testing.T) {
	t.Parallel()
	f := setup(t)
	want(t, "start", f.redrive("dead-0", 60), 200) // it runs for a minute, unless it is cancelled
	if err := f.running.Take(f.tasksOf("dead-0")[0].holder, maxRunningTasks-1); err != nil {
		t.Fatal(err)
	}
	want(t, "one too many", f.redrive("last", 2), 403)
	task := f.task("dead-0")
	f.do("CancelMessageMoveTask", object{"TaskHandle": task["TaskHandle"]})
	for f.tasksOf("dead-0")[0].running() { // at most for the second between two messages
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // pace uses the real time
	}
	want(t, "after a cancellation", f.redrive("last", 2), 200)
}

func TestMoveTaskEndsWhenThePrincipalLosesTheRole(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		control := &access.Control{}
		f := setupFor(t, control, "shop")
		everything := []access.Entry{{Name: "shop", Grants: []access.Grant{{Role: access.Admin}}}}
		control.Load(everything)
		want(t, "start", f.redrive("dead", 20), 200)
		control.Load([]access.Entry{
			{Name: "shop", Grants: []access.Grant{{Role: access.Operate, Queues: []string{"other"}}}}, {Name: "else"},
		})
		if restart {
			f.restart()
		}
		f.done.Wait()
		control.Load(everything)
		task := f.task("dead")
		want(t, "state", task["Status"], taskFailed)
		// one a second, on a busy machine also some before the role is lost
		if moved := task["ApproximateNumberOfMessagesMoved"].(float64); moved == 20 {
			t.Errorf("%v messages were moved", moved)
		}
	}
}

func TestMoveTaskFailsWithoutItsDestination(t *testing.T) {
	t.Parallel()
	f := setup(t)
	dead, other, _ := f.startMove(5)
	f.do("DeleteQueue", object{"QueueUrl": other})
	f.done.Wait()
	task := f.task("dead")
	want(t, "task", task["Status"], taskFailed)
	want(t, "reason", task["FailureReason"], queueDoesNotExist.code)
	status, _, _ := f.post(t.Context(), "GetQueueUrl", object{"QueueName": "other"})
	want(t, "the destination is not made again", status, 400)
	if len(f.receive(dead)) == 0 {
		t.Error("no message stays")
	}
}

func TestOnePrincipalLeavesMoveTasksToOthers(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const extra = 3
	tenant, other := access.NamedHolder("tenant", false), access.NamedHolder("other", false)
	if err := f.running.Take(tenant, maxRunningTasks/2); err != nil {
		t.Fatal(err)
	}
	c := f.open(caller{internal: true})
	defer c.Close()
	if _, err := f.addTask(c, &moveTask{Source: "q", holder: tenant}); errorOf(err).kind != overLimit {
		t.Errorf("one more task of the tenant: %v", err)
	}
	if _, err := f.addTask(c, &moveTask{Handle: "h", Source: "q", Who: "other", holder: other}); err != nil {
		t.Error(err)
	}
	f.done.Wait()
	f.mu.Lock()
	f.tasks = []*moveTask{{Handle: "first", Who: "other", State: taskDone}}
	for i := range maxAllTasks + extra {
		f.tasks = append(f.tasks, &moveTask{Handle: fmt.Sprint(i), Who: "tenant", State: taskDone})
	}
	f.mu.Unlock()
	surplus := f.surplusTasks(nil)
	want(t, "surplus", len(surplus), extra+2)
	for i, task := range surplus {
		want(t, "displaced", task.Handle, fmt.Sprint(i))
	}
}
