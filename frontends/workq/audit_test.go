package workq

import (
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

func TestDeletedJobsAreReportedForTheAuditLog(t *testing.T) {
	t.Parallel()
	var seen []access.Change
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return New(access.Unrestricted(b, core.Workq), Options{
			Options: frontends.Options{Audit: func(c access.Change) { seen = append(seen, c) }},
		})
	})
	c := s.Dial("operator")
	const id = "6ba7b810-9dad-41d1-80b4-00c04fd430c4"
	c.Send("delete " + id + "\r\n")
	c.Want("-NOT-FOUND\r\n")
	c.Send("add " + id + " mail 1000 60000 1\r\nx\r\ndelete " + id + "\r\n")
	c.Want("+OK\r\n+OK\r\n")
	want := access.Change{Address: c.RemoteAddr().String(), Protocol: core.Workq, Action: "job.delete", Target: id}
	if len(seen) != 1 || seen[0] != want {
		t.Errorf("reported %+v, want %+v", seen, want)
	}
}
