package main

import (
	"path/filepath"
	"strings"
	"testing"

	"broker/core"
	"broker/core/engine"
)

// TestUnreadableQlessStateEndsTheProgram starts the broker on a store with a Qless document that cannot be read.
func TestUnreadableQlessStateEndsTheProgram(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	e, err := engine.Open(engine.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	bad := []core.MetaEntry{{Name: "qless/job/j", Value: []byte("?")}}
	core.DoOnce(e, core.Internal, &core.WriteDocuments{Documents: bad})
	if err := e.Shutdown(); err != nil {
		t.Fatal(err)
	}
	r := start(t, nil, "broker", "serve", "--data", dir, "--qless", "127.0.0.1:0", "--workq", "off", "--gearman", "off",
		"--faktory", "off", "--http", "off")
	r.wantExit(1)
	if want := `load the state of qless: document "qless/job/j"`; !strings.Contains(r.output.String(), want) {
		t.Errorf("the output lacks %s", want)
	}
}
