package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rs/zerolog"

	"broker/core"
	"broker/operate/service"
)

// Problem is the body of every error, as defined in RFC 9457.
type Problem struct {
	Title  string         `json:"title" doc:"meaning of the status" example:"Not Found"`
	Status int            `json:"status" example:"404"`
	Detail string         `json:"detail" doc:"the error, for people" example:"no such job"`
	Code   string         `json:"code" doc:"the error, for programs; codes do not change" example:"job_not_found"`
	Errors []ProblemField `json:"errors,omitempty" doc:"the invalid parts of the request"`

	retryAfterS int
}

// ProblemField is an error in one part of a request.
type ProblemField struct {
	Message  string `json:"message" example:"expected number"`
	Location string `json:"location,omitempty" example:"body.jobs[3].priority"`
	Value    any    `json:"value,omitempty" doc:"what stands there"`
}

// problemType is the media type of a Problem.
const problemType = "application/problem+json"

// Codes of errors that do not come from the service.
const (
	codeStarting          = "starting"
	codeUnauthorized      = "unauthorized"
	codeTooManyLogins     = "too_many_failed_logins"
	codeUnknownHost       = "unknown_host"
	codeCrossOrigin       = "cross_origin"
	codeRouteNotFound     = "route_not_found"
	codeMethodNotAllowed  = "method_not_allowed"
	codeTooManyConns      = "too_many_connections"
	codeInternal          = "internal_error"
	codeUnsupportedType   = "unsupported_media_type"
	codeTimeout           = "request_timeout"
	codeInvalidJSON       = "invalid_json"
	codeInvalid           = string(service.CodeInvalid)
	codeBodyTooLarge      = string(service.CodeTooLarge)
	internalProblemDetail = "the broker could not do this; its log says why"
)

// statuses of the service's codes. All other codes are 409.
var statuses = map[service.Code]int{
	service.CodeInvalid:           http.StatusUnprocessableEntity,
	service.CodeForbidden:         http.StatusForbidden,
	service.CodeJobNotFound:       http.StatusNotFound,
	service.CodeQueueNotFound:     http.StatusNotFound,
	service.CodeBatchNotFound:     http.StatusNotFound,
	service.CodeWorkerNotFound:    http.StatusNotFound,
	service.CodeScheduleNotFound:  http.StatusNotFound,
	service.CodeLimitNotFound:     http.StatusNotFound,
	service.CodeOperationNotFound: http.StatusNotFound,
	service.CodeMarkNotFound:      http.StatusNotFound,
	service.CodeNodeNotFound:      http.StatusNotFound,
	service.CodeLeaseLost:         http.StatusGone,
	service.CodeBadLease:          http.StatusNotFound,
	service.CodeConflict:          http.StatusPreconditionFailed,
	service.CodeQueueFull:         http.StatusTooManyRequests,
	service.CodeDiskFull:          http.StatusServiceUnavailable,
	service.CodeStoreFailed:       http.StatusServiceUnavailable,
	service.CodeDraining:          http.StatusServiceUnavailable,
	service.CodeShutdown:          http.StatusServiceUnavailable,
	service.CodeCommitTimeout:     http.StatusGatewayTimeout,
	service.CodeOutcomeUnknown:    http.StatusGatewayTimeout,
	service.CodeKeyReused:         http.StatusUnprocessableEntity,
	service.CodeUnsupported:       http.StatusNotImplemented,
	service.CodeClusterRefused:    http.StatusConflict,
	service.CodeNoLeader:          http.StatusServiceUnavailable,
	service.CodeTooMany:           http.StatusTooManyRequests,
	service.CodeTooLarge:          http.StatusRequestEntityTooLarge,
}

// problem makes a Problem.
func problem(status int, code, detail string) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return problemType }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	h := make(http.Header)
	if p.retryAfterS > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfterS))
	}
	return h
}

// write sends the problem as a response.
func (p *Problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // text and numbers
	}
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", problemType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Del("Content-Length")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // fails only if the client has disconnected
}

// problemOf is the Problem for an error of the service to a request with the given places. It logs internal errors and
// hides them from the caller.
func (s *Server) problemOf(err error, at places) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var e *service.Error
	if !errors.As(err, &e) {
		if kind := coreProblem(err); kind != nil {
			return kind
		}
		level := zerolog.ErrorLevel
		if errors.Is(err, context.Canceled) { // the client has disconnected and does not see the response
			level = zerolog.DebugLevel
		}
		s.options.Log.WithLevel(level).Err(err).Msg("http request failed")
		return problem(http.StatusInternalServerError, codeInternal, internalProblemDetail)
	}
	if e.Code == service.CodeForbidden {
		s.options.Access.CountRefusal(core.HTTP)
	}
	status := s.Status(e)
	p = problem(status, string(e.Code), e.Detail)
	if location := at.location(e.Field); location != "" && (e.Field != "" || e.Code == service.CodeInvalid) {
		p.Errors = []ProblemField{{Message: e.Detail, Location: location}}
	}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		p.retryAfterS = max(1, int(math.Ceil(e.RetryAfter.Seconds())))
	}
	return p
}

// coreProblem is for errors of functions that cmd passes to the service.
func coreProblem(err error) *Problem {
	if errors.Is(err, core.ErrStopped) {
		return problem(http.StatusServiceUnavailable, string(service.CodeStoreFailed), err.Error())
	}
	return nil
}

// useProblems turns huma's own errors into Problems. It sets variables of the library, so once is enough.
var useProblems = sync.OnceFunc(func() {
	huma.NewErrorWithContext = sayLimit
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		p := problem(status, codeInvalid, msg)
		switch status {
		case http.StatusRequestEntityTooLarge:
			p.Code = codeBodyTooLarge
		case http.StatusUnsupportedMediaType:
			p.Code = codeUnsupportedType
		case http.StatusRequestTimeout:
			p.Code = codeTimeout
		case http.StatusBadRequest:
			p.Code = codeInvalidJSON
		case http.StatusInternalServerError:
			return problem(status, codeInternal, internalProblemDetail)
		}
		for _, err := range errs {
			field := ProblemField{}
			if d, ok := err.(huma.ErrorDetailer); ok {
				detail := d.ErrorDetail()
				field = ProblemField{
					Message: detail.Message, Location: detail.Location, Value: shortValue(detail.Value),
				}
			} else if err != nil {
				field.Message = err.Error()
			}
			p.Errors = append(p.Errors, field)
		}
		if len(p.Errors) > 0 && p.Errors[0].Location != "" {
			p.Detail = msg + ": " + p.Errors[0].Location + ": " + p.Errors[0].Message
		}
		return p
	}
})

// sayLimit says in the Problem for a body that is too large how large it may be.
func sayLimit(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
	err := huma.NewError(status, msg, errs...)
	if p, is := err.(*Problem); is && p.Code == codeBodyTooLarge && ctx != nil {
		p.Detail = fmt.Sprintf("the body of this request must not be larger than %d bytes", ctx.Operation().MaxBodyBytes)
	}
	return err
}

// shortValue drops values that are too long to repeat in an error.
func shortValue(v any) any {
	const limit = 200
	switch v := v.(type) {
	case string:
		if len(v) > limit {
			return nil
		}
	case []any, map[string]any:
		return nil
	}
	return v
}
