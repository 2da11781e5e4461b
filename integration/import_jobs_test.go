package integration_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"testing"
	"time"

	"broker/integration/harness"
)

// importedJob is the part of a job that the tests look at.
type importedJob struct {
	ID, Queue, Type, State, Body string
	Priority, Fails              int
	Args                         []any
	RunAt                        time.Time `json:"run_at"`
	LeaseForS                    float64   `json:"lease_for_s"`
	FailureGroup                 string    `json:"failure_group"`
	Failure                      *struct {
		Type, Message string
		Count         int
		FailedAt      time.Time `json:"failed_at"`
	}
}

// brokerJSON is the output of a command.
func brokerJSON(t *testing.T, b *harness.Broker, args ...string) *json.Decoder {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), harness.Binary(t),
		append([]string{args[0], "-o", "json", "--server", "http://" + b.HTTP}, args[1:]...)...).Output()
	check(t, err)
	return json.NewDecoder(bytes.NewReader(out))
}

// listedJobs lists jobs of the broker.
func listedJobs(t *testing.T, b *harness.Broker, flags ...string) []importedJob {
	t.Helper()
	var page struct{ Jobs []importedJob }
	check(t, brokerJSON(t, b, append([]string{"jobs", "--limit", "0"}, flags...)...).Decode(&page))
	return page.Jobs
}

// importedJobs lists jobs of the broker, with their bodies.
func importedJobs(t *testing.T, b *harness.Broker, flags ...string) (jobs []importedJob) {
	t.Helper()
	for chunk := range slices.Chunk(listedJobs(t, b, flags...), 500) {
		args := []string{"job", "--"}
		for _, j := range chunk {
			args = append(args, j.ID)
		}
		shown := brokerJSON(t, b, args...)
		for range chunk {
			var j importedJob
			check(t, shown.Decode(&j))
			jobs = append(jobs, j)
		}
	}
	return jobs
}
