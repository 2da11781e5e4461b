package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"broker/operate/service"
)

type leaseManyInput struct {
	WorkerVersion

	Body struct {
		LeaseBody
		Queues []string `json:"queues" nullable:"false" minItems:"1" maxItems:"1000" doc:"queues, in the order in which they are emptied"`
		Max    int      `json:"max,omitempty" minimum:"1" maximum:"1000" default:"1" doc:"maximum number of jobs; fewer if their bodies together are larger than 32 MiB"`
		Min    int      `json:"min,omitempty" minimum:"0" maximum:"1000" doc:"wait until this many jobs are ready, or wait_s is over; more than 1 only with at most 32 queues"`
		WaitS  float64  `json:"wait_s,omitempty" minimum:"0" maximum:"600" doc:"longest wait for min jobs; default: no wait"`
	}
}

// Resolve implements huma.Resolver.
func (in *leaseManyInput) Resolve(ctx huma.Context) []error {
	if in.Body.WaitS > 0 {
		_, writer := humago.Unwrap(ctx)
		extendDeadlines(writer, seconds(in.Body.WaitS))
	}
	return nil
}

type leaseManyOutput struct {
	Body struct {
		Leases []service.Lease `json:"leases" nullable:"false" doc:"empty if there was no job"`
	}
}

// LeaseName is a lease in a body.
type LeaseName struct {
	Lease string `json:"lease" doc:"the lease's token"`
}

type completedLease struct {
	LeaseName
	CompleteBody
}

type completeManyInput struct {
	Body struct {
		Leases []completedLease `json:"leases" nullable:"false" minItems:"1" maxItems:"1000"`
	}
}

type failedLease struct {
	LeaseName
	FailBody
}

type failManyInput struct {
	Body struct {
		Leases []failedLease `json:"leases" nullable:"false" minItems:"1" maxItems:"1000"`
	}
}

type extendedLease struct {
	LeaseName
	HeartbeatBody
}

type heartbeatManyInput struct {
	Body struct {
		Leases []extendedLease `json:"leases" nullable:"false" minItems:"1" maxItems:"1000"`
	}
}

type releaseManyInput struct {
	Body struct {
		Leases []LeaseName `json:"leases" nullable:"false" minItems:"1" maxItems:"1000"`
	}
}

// leaseResults are in the order of the request.
type leaseResults struct {
	Body struct {
		Results []service.LeaseResult `json:"results" nullable:"false"`
	}
}

func (s *Server) registerManyLeases(api huma.API) {
	lease := operation("lease-jobs", http.MethodPost, "/leases", "leases", "Lease several jobs of several queues")
	lease.Description = "The answer is an empty list if there was none within wait_s. Each lease must be completed, failed, released or " +
		"extended before lease_until of its job."
	register(s, api, lease, s.leaseMany)
	report := func(verb, summary string, maxBody int64) huma.Operation {
		o := operation(verb+"-jobs", http.MethodPost, "/leases/"+verb, "leases", summary, http.StatusGatewayTimeout)
		o.Description = "All in one commit, each on its own merit: ok is false, with a code, where the lease is lost, the token is none, or " +
			"the caller may not. A malformed request changes nothing."
		o.MaxBodyBytes = maxBody
		return o
	}
	const maxTokens = 4 << 20
	register(s, api, report("complete", "End leased jobs as done", s.options.MaxBodyBytes), s.completeMany)
	register(s, api, report("fail", "Report the failures of leased jobs", s.options.MaxBodyBytes), s.failMany)
	register(s, api, report("heartbeat", "Extend leases", maxTokens), s.heartbeatMany)
	register(s, api, report("release", "Give leased jobs back as if they had not been leased", maxTokens),
		s.releaseMany)
}

func (s *Server) leaseMany(ctx context.Context, in *leaseManyInput) (*leaseManyOutput, error) {
	b := &in.Body
	var out leaseManyOutput
	var err error
	out.Body.Leases, err = serviceOf(ctx).LeaseMany(ctx, callerOf(ctx), service.LeaseOptions{
		Queues: b.Queues, Wait: seconds(b.WaitS), Worker: b.Worker, LeaseFor: seconds(b.LeaseForS), Max: b.Max,
		Min: b.Min, Version: in.Version,
	})
	return &out, err
}

func (s *Server) completeMany(ctx context.Context, in *completeManyInput) (*leaseResults, error) {
	tokens, results := make([]string, len(in.Body.Leases)), make([]service.Result, len(in.Body.Leases))
	for i := range in.Body.Leases {
		l := &in.Body.Leases[i]
		tokens[i], results[i] = l.Lease, l.result()
	}
	return resultsOf(serviceOf(ctx).CompleteMany(ctx, callerOf(ctx), tokens, results))
}

func (s *Server) failMany(ctx context.Context, in *failManyInput) (*leaseResults, error) {
	tokens, failures := make([]string, len(in.Body.Leases)), make([]service.FailOptions, len(in.Body.Leases))
	for i := range in.Body.Leases {
		l := &in.Body.Leases[i]
		tokens[i], failures[i] = l.Lease, l.options(serviceOf(ctx).Now())
	}
	return resultsOf(serviceOf(ctx).FailMany(ctx, callerOf(ctx), tokens, failures))
}

func (s *Server) heartbeatMany(ctx context.Context, in *heartbeatManyInput) (*leaseResults, error) {
	tokens, extend := make([]string, len(in.Body.Leases)), make([]time.Duration, len(in.Body.Leases))
	for i := range in.Body.Leases {
		l := &in.Body.Leases[i]
		tokens[i], extend[i] = l.Lease, seconds(l.ExtendS)
	}
	return resultsOf(serviceOf(ctx).HeartbeatMany(ctx, callerOf(ctx), tokens, extend))
}

func (s *Server) releaseMany(ctx context.Context, in *releaseManyInput) (*leaseResults, error) {
	tokens := make([]string, len(in.Body.Leases))
	for i, l := range in.Body.Leases {
		tokens[i] = l.Lease
	}
	return resultsOf(serviceOf(ctx).ReleaseMany(ctx, callerOf(ctx), tokens))
}

// resultsOf makes the response for several leases.
func resultsOf(results []service.LeaseResult, err error) (*leaseResults, error) {
	var out leaseResults
	out.Body.Results = results
	return &out, err
}
