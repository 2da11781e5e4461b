package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"broker/integration/harness"
)

// TestAnEmptyStoreShowsProgramsThatWork copies the programs of each language from the overview, and runs them where it
// is installed.
func TestAnEmptyStoreShowsProgramsThatWork(t *testing.T) {
	t.Parallel()
	programs := map[string]string{
		"broker": "bash", "curl": "bash", "python": "python3", "node": "node", "ruby": "ruby", "php": "php",
	}
	for name, program := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := harness.Start(t, harness.Options{})
			b := openBrowser(t, "http://"+broker.HTTP)
			b.open("/?with=" + name)
			b.wants(broker.Gearman[strings.LastIndexByte(broker.Gearman, ':'):])
			var copied []string
			b.eval(`[...document.querySelectorAll('#first [data-copy]')].map((e) => e.dataset.copy)`, &copied)
			if len(copied) != 2 {
				t.Fatalf("the page has %d programs", len(copied))
			}
			b.clean("an empty store")
			harness.Need(t, program)
			submit, work := copied[0], strings.Replace(copied[1], "-- cat", "--drain -- cat", 1)
			dir := t.TempDir()
			for i, text := range []string{submit, work} {
				file := filepath.Join(dir, []string{"submit", "work"}[i])
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				shell(t, broker, program+" "+file)
			}
			q := api(t, broker, "GET", "/queues/greet", "")
			if totals, ok := q["totals"].(map[string]any); !ok || totals["submitted"] != 1.0 || totals["done"] != 1.0 {
				t.Errorf("after both programs, the queue is %v", q)
			}
			b.open("/")
			if b.lacks("Connect a client") == "" {
				t.Error("the page still shows how to begin")
			}
		})
	}
}
