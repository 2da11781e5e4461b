package push

import (
	"context"

	"broker/core"
	"broker/core/client"
)

// openClient registers a client that lists leave out, because a target has its own row.
func openClient(b core.Broker) *client.Client {
	return client.Open(b, client.Options{ClientOptions: core.ClientOptions{Protocol: core.HTTP, Unlisted: true}})
}

// lease waits for jobs whose leases are durable. After an error, all of them have been released.
func lease(ctx context.Context, c *client.Client, op *core.Lease) ([]core.Reply, error) {
	c.Do(op)
	jobs, err := c.Leased(ctx)
	if err == nil {
		err = makeDurable(ctx, c, jobs)
	}
	if err != nil {
		c.Release(jobs)
		return nil, err
	}
	return jobs, nil
}

// makeDurable waits until the leases of jobs are on disk.
func makeDurable(ctx context.Context, c *client.Client, jobs []core.Reply) error {
	looks := make([]core.Op, len(jobs))
	for i := range jobs {
		looks[i] = &core.Inspect{Ref: core.Ref{Seq: jobs[i].Seq}, Brief: true}
	}
	return c.Committed(ctx, max(client.Latest(jobs), client.Latest(c.AskAll(looks...))))
}
