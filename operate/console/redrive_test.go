package console

import (
	"testing"
	"time"

	"broker/core"
	"broker/operate/service"
)

// TestPagesSayWhereAQueueMovesItsJobs reads the rule on the page of the queue, and the origin on the page of a job that
// it has moved.
func TestPagesSayWhereAQueueMovesItsJobs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	client := f.engine.Open(core.ClientOptions{Protocol: core.SQS, Wake: func() {}})
	defer f.engine.Close(client)
	f.engine.Do(client, []core.Op{
		&core.MoveSpent{Queue: "orders", Rule: core.SpentRule{Leases: 1, To: "orders-dead"}},
		&core.Submit{Job: &core.Job{Queue: "orders"}},
	}, nil)
	f.wants(f.get("/queues/orders"), `is not done after 1 lease moves to <a href="queues/orders-dead">orders-dead</a>`)

	lease := service.LeaseOptions{Queues: []string{"orders"}, LeaseFor: time.Second}
	if l, err := f.service.Lease(t.Context(), f.caller, lease); err != nil || l == nil {
		t.Fatal("no job is leased: ", err)
	}
	f.advance(2 * time.Second)
	if l, err := f.service.Lease(t.Context(), f.caller, lease); err != nil || l != nil {
		t.Fatalf("the job is leased once more: %+v, %v", l, err)
	}
	list, err := f.service.Jobs(t.Context(), f.caller, service.JobFilter{Queues: []string{"orders-dead"}},
		service.JobPage{Limit: 10})
	if err != nil || len(list.Jobs) != 1 || list.Jobs[0].MovedFrom != "orders" {
		t.Fatalf("the other queue has %+v, %v", list, err)
	}
	f.wants(f.get("/jobs/"+list.Jobs[0].ID),
		`<dt>Moved from</dt><dd><a href="queues/orders">orders</a>, by its redrive rule</dd>`)
	q, err := f.service.Queue(t.Context(), f.caller, "orders")
	if err != nil || q.Redrive == nil || *q.Redrive != (service.Redrive{Leases: 1, To: "orders-dead"}) {
		t.Errorf("the queue has %+v, %v", q.Redrive, err)
	}
}
