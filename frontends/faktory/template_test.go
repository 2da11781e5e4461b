package faktory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/core"
)

func TestScheduledJobEqualsAPushedOne(t *testing.T) {
	t.Parallel()
	s := setup(t)
	unit := `{"jobtype":"T","queue":"q","args":[1,"a<b"],"retry":3,"reserve_for":600,` +
		`"custom":{"unique_for":60,"expires_in":30,"x":1}}`
	retry, reserve := int64(3), int64(600)
	job, err := s.Front.(*Frontend).Template(&JobTemplate{
		Type: "T", Queue: "q", Args: []byte(`[1,"a<b"]`), Retry: &retry, ReserveFor: &reserve,
		Custom: []byte(`{"unique_for":60,"expires_in":30,"x":1}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	n := newOtherClient(s, core.Internal)
	n.do(&core.PutSchedule{Schedule: core.Schedule{Name: "s", Every: time.Hour, Job: job}})
	if r := n.do(&core.RunSchedule{Name: "s"}); len(r) != 1 || r[0].Kind != core.Submitted {
		t.Fatalf("run: %+v", r)
	}
	info := n.do(&core.Find{})[0].Jobs[0]
	if until := info.Job.UniqueUntil.Sub(info.Job.CreatedAt); until != time.Minute {
		t.Errorf("unique for %v", until)
	}
	if before := info.Job.StartBefore.Sub(info.Job.CreatedAt); before != 30*time.Second {
		t.Errorf("expires in %v", before)
	}
	pushed := strings.Replace(unit, "{", `{"jid":"12345678",`, 1)
	w := dial(s, "worker", "w1")
	w.Send("PUSH " + pushed + "\r\n")
	w.Want("-NOTUNIQUE Job not unique\r\n")
	w.Send("FETCH q\r\n")
	got := object(t, w)
	for name, want := range map[string]any{"jobtype": "T", "queue": "q", "retry": "3", "reserve_for": "600"} {
		if text := fmt.Sprint(got[name]); text != want {
			t.Errorf("%s is %s, not %s", name, text, want)
		}
	}
	if jid := fmt.Sprint(got["jid"]); len(jid) < minJID || fmt.Sprint(at(got, "custom", "x")) != "1" ||
		got["created_at"] == nil {
		t.Errorf("fetched %v", got)
	}
}

func TestTemplatesAreCheckedWithoutABroker(t *testing.T) {
	t.Parallel()
	day := int64(90000)
	custom := func(text string) JobTemplate {
		return JobTemplate{Type: "T", Args: []byte("[]"), Custom: []byte(text)}
	}
	for _, c := range []struct {
		template JobTemplate
		want     string
	}{
		{JobTemplate{Type: "T", Args: []byte("[]")}, ""},
		{JobTemplate{Args: []byte("[]")}, "jobtype"},
		{JobTemplate{Type: "T", Queue: "a b", Args: []byte("[]")}, "queue names"},
		{JobTemplate{Type: "T", Args: []byte("[]"), ReserveFor: &day}, "one day"},
		{custom(`{"unique_for":"x"}`), "unique_for"},
		{custom(`{"after":["12345678"]}`), "cannot be linked"},
		{custom(`{"parent":"12345678"}`), "cannot be linked"},
		{custom(`{"expires_in":1}`), ""},
		{custom(`{}`), ""},
		{custom(`{"expires_at":"2099-01-01T00:00:00Z"}`), "only expires_in"},
	} {
		err := c.template.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, not %q", c.template, err, c.want)
		}
	}
}
