package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"broker/operate/service"
)

type auditList struct {
	Entries []service.AuditEntry `json:"entries"`
}

type settingList struct {
	Settings []service.Setting `json:"settings"`
}

// backupPath makes a copy of the store, with GET too.
const backupPath = apiPath + "/backup"

// backupDone is the response after a backup has completed.
type backupDone struct {
	Dir   string  `json:"dir"`
	TookS float64 `json:"took_s"`
}

func (s *Server) registerBroker(api huma.API) {
	register(s, api, operation("get-summary", http.MethodGet, "/summary", "broker", "Show the broker in numbers"),
		s.getSummary)
	register(s, api, operation("list-audit", http.MethodGet, "/audit", "broker", "List who changed what, newest first"),
		s.listAudit)
	undo := operation("undo-change", http.MethodPost, "/audit/{number}/undo", "broker",
		"Undo a change of a setting: a pause, a limit, a policy, a schedule", http.StatusNotFound, http.StatusConflict,
		http.StatusGatewayTimeout)
	undo.Description = "Possible for an hour, also after a restart, unless the setting has changed since."
	register(s, api, undo, s.undoChange)
	register(s, api, operation("list-settings", http.MethodGet, "/settings", "broker", "List the settings in force",
		http.StatusNotImplemented), s.listSettings)
	register(s, api,
		operation("reload", http.MethodPost, "/reload", "broker", "Read the settings again", http.StatusNotImplemented),
		s.reload)
	register(s, api, operation("get-drain", http.MethodGet, "/drain", "broker", "Show whether the broker is draining"),
		s.getDrain)
	register(s, api, operation("drain", http.MethodPost, "/drain", "broker", "Stop handing out jobs"), s.startDrain)
	register(s, api, operation("resume", http.MethodPost, "/resume", "broker", "Hand out jobs again"), s.endDrain)
	backup := operation("backup", http.MethodPost, "/backup", "broker",
		"Copy the store to a new folder of the broker's host",
		http.StatusConflict, http.StatusNotImplemented)
	backup.Description = "The answer comes when the copy is complete; with background at once, and it is an operation."
	backup.Responses = map[string]*huma.Response{"202": {Description: "The operation, with background"}}
	register(s, api, backup, s.backup)
	send := operation("send-backup", http.MethodGet, "/backup", "broker", "Send a copy of the store",
		http.StatusConflict, http.StatusNotImplemented)
	send.Description = "A tar file with the files of the copy. Unpacked into an empty folder it is a store. The answer has a Content-Length: a " +
		"shorter one is incomplete."
	send.Responses = map[string]*huma.Response{"200": {
		Description: "The copy",
		Content: map[string]*huma.MediaType{"application/x-tar": {Schema: &huma.Schema{
			Type: huma.TypeString, Format: "binary",
		}}},
	}}
	register(s, api, send, s.sendBackup)
}

func (s *Server) sendBackup(ctx context.Context, _ *LongCall) (*huma.StreamResponse, error) {
	b, err := serviceOf(ctx).SendBackup(ctx, callerOf(ctx))
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		_, w := humago.Unwrap(hc)
		w.Header().Set("Content-Type", "application/x-tar")
		w.Header().Set("Content-Length", strconv.FormatInt(b.Size(), 10))
		_, err := b.WriteTo(&patientWriter{w, http.NewResponseController(w)})
		_ = b.Close() // the next backup removes the rest of this copy
		if err != nil {
			panic(http.ErrAbortHandler) // the client sees that the response is incomplete
		}
	}}, nil
}

// patientWriter extends the deadline before each write.
type patientWriter struct {
	http.ResponseWriter

	deadlines *http.ResponseController
}

// Write implements io.Writer.
func (w *patientWriter) Write(b []byte) (int, error) {
	_ = w.deadlines.SetReadDeadline(time.Time{}) // a test's writer has no deadlines
	_ = w.deadlines.SetWriteDeadline(deadlineIn(writeTimeout))
	return w.ResponseWriter.Write(b)
}

func (s *Server) getSummary(ctx context.Context, _ *struct{}) (*output[service.Summary], error) {
	return bodyOf(serviceOf(ctx).Summary(ctx, callerOf(ctx)))
}

func (s *Server) listAudit(ctx context.Context, in *struct {
	Before uint64 `query:"before" doc:"only entries with a smaller number"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
},
) (*output[auditList], error) {
	entries, err := serviceOf(ctx).Audit(callerOf(ctx), in.Before, in.Limit)
	return bodyOf(auditList{entries}, err)
}

func (s *Server) undoChange(ctx context.Context, in *struct {
	Number uint64 `path:"number" doc:"of the entry of the audit log"`
},
) (*struct{}, error) {
	return nil, serviceOf(ctx).UndoChange(ctx, callerOf(ctx), in.Number)
}

func (s *Server) listSettings(ctx context.Context, _ *struct{}) (*output[settingList], error) {
	settings, err := serviceOf(ctx).Settings(callerOf(ctx))
	return bodyOf(settingList{settings}, err)
}

func (s *Server) reload(ctx context.Context, _ *struct{}) (*struct{}, error) {
	return nil, serviceOf(ctx).Reload(ctx, callerOf(ctx))
}

func (s *Server) getDrain(ctx context.Context, _ *struct{}) (*output[service.Drain], error) {
	return bodyOf(serviceOf(ctx).DrainState(callerOf(ctx)))
}

func (s *Server) startDrain(ctx context.Context, in *struct {
	Body *struct {
		RefuseJobs *bool `json:"reject_new_jobs,omitempty" doc:"refuse new jobs too; default: the setting drain_rejects_new_jobs"`
	}
},
) (*output[service.Drain], error) {
	var refuse *bool
	if in.Body != nil {
		refuse = in.Body.RefuseJobs
	}
	return bodyOf(serviceOf(ctx).SetDrain(ctx, callerOf(ctx), true, refuse))
}

func (s *Server) endDrain(ctx context.Context, _ *struct{}) (*output[service.Drain], error) {
	return bodyOf(serviceOf(ctx).SetDrain(ctx, callerOf(ctx), false, nil))
}

// backupInput holds the target directory. A backup may take long, so it has the deadline of a long wait.
type backupInput struct {
	LongCall
	Body struct {
		Dir        string `json:"dir" doc:"absolute path of a folder that does not exist yet"`
		Background bool   `json:"background,omitempty" doc:"do not wait for the end"`
	}
}

type backupOutput struct {
	Status int
	Body   any
}

func (s *Server) backup(ctx context.Context, in *backupInput) (*backupOutput, error) {
	if in.Body.Background {
		op, err := serviceOf(ctx).StartBackup(ctx, callerOf(ctx), in.Body.Dir)
		if err != nil {
			return nil, err
		}
		return &backupOutput{http.StatusAccepted, op}, nil
	}
	took, err := serviceOf(ctx).Backup(ctx, callerOf(ctx), in.Body.Dir)
	if err != nil {
		return nil, err
	}
	return &backupOutput{http.StatusOK, backupDone{in.Body.Dir, took.Seconds()}}, nil
}
