package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"broker/access"
	"broker/core"
	"broker/operate/service"
)

type queueList struct {
	Queues []service.Queue `json:"queues"`
	Cursor string          `json:"cursor,omitempty" doc:"cursor of the next page; none on the last page"`
}

// removed is the response with the number of removed jobs.
type removed struct {
	Removed int `json:"removed" doc:"number of jobs"`
}

func (s *Server) registerQueues(api huma.API) {
	register(s, api, operation("list-queues", http.MethodGet, "/queues", "queues", "List queues"), s.listQueues)
	register(s, api,
		operation("get-queue", http.MethodGet, "/queues/{name}", "queues", "Show a queue", http.StatusNotFound),
		s.getQueue)
	keys := operation("list-keys", http.MethodGet, "/queues/{name}/keys", "queues", "List the keys of a queue")
	keys.Description = "Such as its tenants: what their jobs do, for the 1,000 keys with most ready jobs. Empty unless keys take turns or have limits."
	register(s, api, keys, s.listKeys)
	register(s, api, operation("change-queue", http.MethodPatch, "/queues/{name}", "queues",
		"Pause, resume or limit a queue, or set its policy",
		http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests, http.StatusGatewayTimeout), s.changeQueue)
	register(s, api,
		operation("clear-queue", http.MethodPost, "/queues/{name}/clear", "queues", "Remove jobs of a queue by state",
			http.StatusNotFound, http.StatusGatewayTimeout), s.clearQueue)
	register(s, api, operation("remove-queue", http.MethodDelete, "/queues/{name}", "queues",
		"Remove the ready jobs of a queue, its pause and its limits", http.StatusNotFound,
		http.StatusGatewayTimeout), s.removeQueue)
}

func (s *Server) listQueues(ctx context.Context, in *struct {
	Page
	Prefix string `query:"prefix" doc:"only names that begin with this"`
	Search string `query:"search" doc:"only names that contain this"`
	Only   string `query:"only" enum:"paused,unserved,limited,stuck" doc:"only queues in this condition: unserved: jobs wait and there is no worker; limited: a limit holds back the next job; stuck: jobs have waited for more than a minute, and none runs"`
	Sort   string `query:"sort" doc:"name, ready, scheduled, leased, retrying, blocked, done, dead or latency; with - in front the largest first" example:"-ready"`
},
) (*output[queueList], error) {
	caller := callerOf(ctx)
	if err := caller.RequireSome(access.Read); err != nil { // an empty list would look like a broker without queues
		return nil, err
	}
	queues, cursor, err := serviceOf(ctx).Queues(ctx, caller, service.QueueFilter{
		Prefix: in.Prefix, Search: in.Search, Only: in.Only, Sort: in.Sort, Limit: in.Limit, Cursor: in.Cursor,
	})
	return bodyOf(queueList{Queues: queues, Cursor: cursor}, err)
}

func (s *Server) getQueue(ctx context.Context, in *QueueName) (*output[service.Queue], error) {
	return bodyOf(serviceOf(ctx).Queue(ctx, callerOf(ctx), in.Name))
}

type keyList struct {
	Keys []service.QueueKey `json:"keys"`
}

func (s *Server) listKeys(ctx context.Context, in *QueueName) (*output[keyList], error) {
	keys, err := serviceOf(ctx).Keys(ctx, callerOf(ctx), in.Name)
	return bodyOf(keyList{keys}, err)
}

func (s *Server) changeQueue(ctx context.Context, in *struct {
	QueueName
	Body service.QueueChange
},
) (*output[service.Queue], error) {
	return bodyOf(serviceOf(ctx).ChangeQueue(ctx, callerOf(ctx), in.Name, in.Body))
}

func (s *Server) clearQueue(ctx context.Context, in *struct {
	QueueName
	Body struct {
		States []string `json:"states" minItems:"1" enum:"scheduled,blocked,ready,leased,retrying,done,dead" doc:"of the jobs to be removed"`
	}
},
) (*output[removed], error) {
	states, err := service.ParseStates(in.Body.States)
	if err != nil {
		return nil, err
	}
	return s.purge(ctx, in.Name, states, false)
}

func (s *Server) removeQueue(ctx context.Context, in *QueueName) (*output[removed], error) {
	return s.purge(ctx, in.Name, []core.State{core.Ready}, true)
}

func (s *Server) purge(ctx context.Context, queue string, states []core.State, drop bool) (*output[removed], error) {
	n, err := serviceOf(ctx).ClearQueue(ctx, callerOf(ctx), queue, states, drop)
	return bodyOf(removed{n}, err)
}
