package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

// submitInput is one job or several.
type submitInput struct {
	Wait
	Trace
	Key  string `header:"Idempotency-Key" maxLength:"255" doc:"makes the submission safe to repeat: within a day, another submission with this key returns the jobs of the first"`
	Body struct {
		service.Submission
		Jobs []service.Submission `json:"jobs,omitempty" maxItems:"1000" doc:"several jobs, admitted in one commit, all or none; excludes the other members"`
	}
}

// submitOutput is the submitted job or jobs.
type submitOutput struct {
	Location string `header:"Location" doc:"of a single job"`
	ETag     string `header:"ETag"`
	Body     any
}

// jobList is a page of jobs.
type jobList struct {
	Jobs   []service.Job `json:"jobs"`
	Cursor string        `json:"cursor,omitempty" doc:"cursor of the next page; none on the last page. Other pages may be short or empty if the search takes long"`

	Count      *int  `json:"count,omitempty" doc:"number of matching jobs, with count"`
	CountExact *bool `json:"count_exact,omitempty" doc:"false: there are more than count"`

	Groups []service.FailureCount `json:"groups,omitempty" doc:"failed jobs by failure group and type"`
}

type jobOutput struct {
	ETag string `header:"ETag" doc:"the job's epoch"`
	Body service.Job
}

// etag is the ETag of a job.
func etag(j *service.Job) string { return `"` + strconv.FormatUint(uint64(j.Epoch), 10) + `"` }

func (s *Server) registerJobs(api huma.API) {
	submit := operation("submit-jobs", http.MethodPost, "/jobs", "jobs", "Submit one job or many",
		http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusGatewayTimeout)
	submit.DefaultStatus = http.StatusCreated
	submit.MaxBodyBytes = s.options.MaxBodyBytes
	submit.Description = "The answer to a single job is the job, to many {\"jobs\": […]}. With wait it comes once the outcome is " +
		"known or the time is over, and the job then has its outcome."
	submit.Responses = map[string]*huma.Response{"201": {
		Description: "The job, or the jobs",
		Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{OneOf: []*huma.Schema{
			api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[service.Job](), true, ""),
			api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[jobList](), true, ""),
		}}}},
	}}
	register(s, api, submit, s.submitJobs)
	list := operation("list-jobs", http.MethodGet, "/jobs", "jobs", "List jobs")
	register(s, api, list, s.listJobs)
	describeFilter(api.OpenAPI().Paths[list.Path].Get)
	register(s, api, operation("get-job", http.MethodGet, "/jobs/{id}", "jobs", "Show a job", http.StatusNotFound),
		s.getJob)
	readLog := operation("read-job-log", http.MethodGet, "/jobs/{id}/log", "jobs", "Read the log of a job",
		http.StatusNotFound)
	readLog.Description = "The lines that its workers have appended: the first and the last ones, with one that says how many are missing between."
	register(s, api, readLog, s.readLog)
	register(s, api, operation("update-job", http.MethodPatch, "/jobs/{id}", "jobs", "Change a job",
		http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed,
		http.StatusGatewayTimeout), s.updateJob)
	register(s, api, operation("delete-job", http.MethodDelete, "/jobs/{id}", "jobs", "Remove a job in any state",
		http.StatusNotFound, http.StatusPreconditionFailed, http.StatusGatewayTimeout), s.deleteJob)
}

func (s *Server) submitJobs(ctx context.Context, in *submitInput) (*submitOutput, error) {
	subs, many := in.Body.Jobs, in.Body.Jobs != nil
	if !many {
		subs = []service.Submission{in.Body.Submission}
	} else if !reflect.DeepEqual(in.Body.Submission, service.Submission{}) {
		return nil, &service.Error{
			Code: service.CodeInvalid, Field: "jobs", Detail: "jobs excludes the members of a single job",
		}
	}
	jobs, err := serviceOf(ctx).Submit(ctx, callerOf(ctx), subs,
		service.SubmitOptions{Wait: in.span, Key: in.Key, Trace: in.context, Many: many})
	if err != nil {
		return nil, err
	}
	if many {
		return &submitOutput{Body: jobList{Jobs: jobs}}, nil
	}
	return &submitOutput{Location: apiPath + "/jobs/" + jobPath(&jobs[0]), ETag: etag(&jobs[0]), Body: jobs[0]}, nil
}

func (s *Server) listJobs(ctx context.Context, in *struct {
	Page
	FilterQuery
	Sort  string `query:"sort" doc:"created, queue (the order of hand-out), due, leased, died or finished; with - in front the reverse order" example:"-created"`
	Count bool   `query:"count" doc:"count all jobs that match"`

	Groups int `query:"groups" minimum:"0" maximum:"1000" doc:"most groups to count failed jobs by"`
},
) (*output[jobList], error) {
	f, err := in.filter(serviceOf(ctx).Now().Time())
	if err != nil {
		return nil, err
	}
	l, err := serviceOf(ctx).Jobs(ctx, callerOf(ctx), f, service.JobPage{
		Sort: in.Sort, Limit: in.Limit, Cursor: in.Cursor, Count: in.Count, Failures: in.Groups,
	})
	out := jobList{Jobs: l.Jobs, Cursor: l.Cursor, Groups: l.Failures}
	if in.Count {
		out.Count, out.CountExact = &l.Count, &l.CountExact
	}
	return bodyOf(out, err)
}

// jobAnswer is the response with a job.
func jobAnswer(job service.Job, err error) (*jobOutput, error) {
	return &jobOutput{ETag: etag(&job), Body: job}, err
}

func (s *Server) getJob(ctx context.Context, in *JobName) (*jobOutput, error) {
	return jobAnswer(serviceOf(ctx).Job(ctx, callerOf(ctx), in.ID))
}

func (s *Server) readLog(ctx context.Context, in *struct {
	JobName
	Cursor string `query:"cursor" doc:"continue after the answer with this cursor"`
},
) (*output[service.JobLog], error) {
	return bodyOf(serviceOf(ctx).JobLog(ctx, callerOf(ctx), in.ID, in.Cursor))
}

func (s *Server) updateJob(ctx context.Context, in *struct {
	JobName
	IfMatch
	Body service.JobUpdate
},
) (*jobOutput, error) {
	return jobAnswer(serviceOf(ctx).Update(ctx, callerOf(ctx), in.ID, in.Body, in.epoch))
}

func (s *Server) deleteJob(ctx context.Context, in *struct {
	JobName
	IfMatch
},
) (*struct{}, error) {
	return nil, serviceOf(ctx).Act(ctx, callerOf(ctx), in.ID, service.Action{Action: service.ActionDelete}, in.epoch)
}

// jobPath is the path of a job.
func jobPath(j *service.Job) string { return url.PathEscape(j.ID) }
