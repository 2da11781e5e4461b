package packet

import (
	"slices"
	"testing"
)

func TestEveryTypeHasALayout(t *testing.T) {
	t.Parallel()
	for typ := CanDo; typ < NumTypes; typ++ {
		l := typ.Layout()
		if l.Name == "" || l.Fields > MaxFields || !l.Request && l.Fields != 0 {
			t.Errorf("type %d has layout %+v", typ, l)
		}
	}
}

func TestAppendWritesHeaderAndFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		magic  string
		typ    Type
		fields []string
		want   string
	}{
		{RequestMagic, GrabJob, nil, "\x00REQ\x00\x00\x00\x09\x00\x00\x00\x00"},
		{RequestMagic, SubmitJobBg, []string{"f", "", "x"}, "\x00REQ\x00\x00\x00\x12\x00\x00\x00\x04f\x00\x00x"},
		{AnswerMagic, WorkFail, []string{"H:a:1"}, "\x00RES\x00\x00\x00\x0e\x00\x00\x00\x05H:a:1"},
	} {
		got := Append([]byte("before"), c.magic, c.typ, c.fields...)
		if string(got) != "before"+c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		typ, size, ok := Header([]byte(c.want), c.magic)
		if typ != c.typ || int(size) != len(c.want)-HeaderBytes || !ok {
			t.Errorf("%q: type %d, size %d, %v", c.want, typ, size, ok)
		}
	}
	if got, want := End(append(BeginAnswer(nil, JobCreated), "H:a:1"...),
		0), Append(nil, AnswerMagic, JobCreated, "H:a:1"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if _, _, ok := Header([]byte("\x00RES\x00\x00\x00\x0e\x00\x00\x00\x05"), RequestMagic); ok {
		t.Error("an answer has the magic of a request")
	}
}
