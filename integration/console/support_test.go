package console

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cdbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"broker/integration/harness"
)

// TestSupportBundleIsDownloaded looks into the archive that the button of the settings sends.
func TestSupportBundleIsDownloaded(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{
		Password: "s3cret-of-the-test",
		Config:   "[[principal]]\nname = \"reader\"\nfaktory_password = \"0ther-secret\"\nroles = [\"read\"]\n",
	})
	pushJob(t, broker, `{"queue":"letters","body":"the private text of a job"}`)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/settings")
	b.run(chromedp.SendKeys(`input[name="secret"]`, "s3cret-of-the-test\r"),
		chromedp.WaitVisible(`form[action="support"] button`))
	folder := t.TempDir()
	b.run(cdbrowser.SetDownloadBehavior(
		cdbrowser.SetDownloadBehaviorBehaviorAllow,
	).WithDownloadPath(folder).WithBrowserContextID(b.window),
		chromedp.Click(`form[action="support"] button`))
	var found []string
	harness.Eventually(t, func() string {
		if found, _ = filepath.Glob(filepath.Join(folder, "broker-support-*.tar.gz")); len(found) == 0 {
			return "nothing is downloaded"
		}
		return ""
	})
	files := unpack(t, found[0])
	for name, want := range map[string]string{
		"summary.json": `"ready": 1`, "settings.json": `"http.listen"`, "storage.json": `"levels"`,
		"operations.json": `[`,
		"queues.json":     `"letters"`, "series.json": `"points"`, "goroutines.txt": "goroutine profile",
		"build.txt":   "path\tbroker",
		"version.txt": "processors", "metrics.txt": "broker_jobs", "log.txt": "ready",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s does not hold %q: %.300s", name, want, files[name])
		}
	}
	for name, text := range files {
		for _, secret := range []string{"s3cret-of-the-test", "0ther-secret", "private text"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %q", name, secret)
			}
		}
	}
	b.open("/audit")
	b.wants("support")
	b.clean("the support bundle")
}

// unpack reads an archive into memory, by the names below its folder.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // read
	plain, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files, archive := map[string]string{}, tar.NewReader(plain)
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(head.Name)] = string(text)
	}
}
