//go:build generated

// Package main is a client of the HTTP API on code that oapi-codegen makes from the broker's own document. The test
// that generates that code builds it.
package main

import (
	"context"
	"fmt"
	"os"

	_ "github.com/oapi-codegen/runtime" // what is generated needs it; this keeps it in go.mod
)

// main pushes a job to the broker at the address of its argument, finds it, leases it and finishes it.
func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string) error {
	c, err := NewClientWithResponses(url)
	if err != nil {
		return err
	}
	queue, args, key := "generated", []any{"x", 1}, "once"
	for range 2 { // the second one is answered with the job of the first
		pushed, err := c.SubmitJobsWithResponse(ctx, &SubmitJobsParams{IdempotencyKey: &key},
			SubmitJobsJSONRequestBody{Queue: &queue, Args: &args})
		if err != nil || pushed.StatusCode() != 201 {
			return fmt.Errorf("push: %d %s, %w", pushed.StatusCode(), pushed.Body, err)
		}
	}
	found, err := c.ListJobsWithResponse(ctx, &ListJobsParams{Queue: &[]string{queue}, State: &[]string{"ready"}})
	if err != nil || found.JSON200 == nil || len(*found.JSON200.Jobs) != 1 {
		return fmt.Errorf("find: %d %s, %w", found.StatusCode(), found.Body, err)
	}
	id := (*found.JSON200.Jobs)[0].Id
	wait := "10s"
	lease, err := c.LeaseJobWithResponse(ctx, queue, &LeaseJobParams{Wait: &wait}, LeaseJobJSONRequestBody{})
	if err != nil || lease.JSON200 == nil || lease.JSON200.Job.Id != id {
		return fmt.Errorf("lease: %d %s, %w", lease.StatusCode(), lease.Body, err)
	}
	done, err := c.CompleteJobWithResponse(ctx, lease.JSON200.Lease, CompleteJobJSONRequestBody{})
	if err != nil || done.StatusCode() != 204 {
		return fmt.Errorf("complete: %d %s, %w", done.StatusCode(), done.Body, err)
	}
	gone, err := c.GetJobWithResponse(ctx, id)
	if err != nil || gone.StatusCode() != 404 || gone.ApplicationproblemJSON404 == nil ||
		gone.ApplicationproblemJSON404.Code != "job_not_found" {
		return fmt.Errorf("get after the end: %d %s, %w", gone.StatusCode(), gone.Body, err)
	}
	fmt.Println("finished", id)
	return nil
}
