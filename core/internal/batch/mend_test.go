package batch

import (
	"fmt"
	"testing"
)

func TestBatchThatMayHaveLostMembersCannotSucceed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, key, stored, want string }{
		{
			"lost members", "20",
			`{"created_at":1,"total":3,"complete_job":21,"success_job":22,"complete":0,"success":0}`,
			`{"created_at":1,"total":3,"complete_job":21,"success_job":22,"complete":0,"success":0,"callback_lost":true}`,
		},
		{
			"lost callbacks", "20",
			`{"created_at":1,"total":3,"complete_job":51,"success_job":52,"complete":0,"success":0}`,
			`{"created_at":1,"total":3,"complete":2,"success":2,"callback_lost":true,"complete_lost":1,"success_lost":1}`,
		},
		{"a batch that has succeeded", "20", `{"created_at":1,"total":3,"complete":2,"success":2}`, ""},
		{"a batch that began after the lost jobs", "60", `{"created_at":1,"total":3,"complete":0,"success":0}`, ""},
		{"an entry that cannot be read", "20", `{`, ""},
		{"a name without a number", "x", `{"created_at":1,"total":3,"complete":0,"success":0}`, ""},
	} {
		if c.want == "" {
			c.want = c.stored
		}
		got := Mend(Prefix+c.key, []byte(c.stored),
			func(seq uint64) bool { return seq > 50 && seq < 60 }, func(seq uint64) bool { return seq < 59 })
		if fmt.Sprint(decoded(t, c.key, got)) != fmt.Sprint(decoded(t, c.key, []byte(c.want))) {
			t.Errorf("%s: %s becomes %s, want %s", c.name, c.stored, got, c.want)
		}
	}
	other := []byte("any")
	if got := Mend("core/window/1", other, nil, nil); string(got) != "any" {
		t.Errorf("an entry of another package becomes %s", got)
	}
}

// decoded returns a stored batch for comparison, or the value itself if it is not a batch.
func decoded(t *testing.T, number string, value []byte) any {
	t.Helper()
	g, err := decode(Prefix+number, value)
	if err != nil {
		return string(value)
	}
	return g.batchMeta
}
