package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// TestListHasLinkedModules lists this test program, which contains the library that writes the list.
func TestListHasLinkedModules(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	notice := filepath.Join(t.TempDir(), "NOTICE")
	lines := "The program contains:\n\ngithub.com/google/uuid v1.6.0 BSD-3-Clause\ngithub.com/CycloneDX/cyclonedx-go/part v1 Apache-2.0\n"
	if err := os.WriteFile(notice, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := run(program, "v1.2.0", notice, "../../operate/console/static/vendor.json", w); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two lists of one program differ")
	}

	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(&first, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != cdx.BOMFormat || bom.Metadata.Component.Version != "v1.2.0" {
		t.Errorf("format %q, component %+v", bom.BOMFormat, bom.Metadata.Component)
	}
	got := make(map[string]string) // the license by the name
	refs := make(map[string]bool)
	for _, c := range *bom.Components {
		if refs[c.BOMRef] || c.Version == "" {
			t.Errorf("%s: listed twice or without a version", c.BOMRef)
		}
		refs[c.BOMRef] = true
		got[c.Name] = ""
		if c.Licenses != nil {
			got[c.Name] = (*c.Licenses)[0].License.ID
		}
	}
	for name, license := range map[string]string{
		"std": "BSD-3-Clause", "github.com/google/uuid": "BSD-3-Clause",
		"github.com/CycloneDX/cyclonedx-go": "Apache-2.0", "uplot": "MIT",
	} {
		if found, ok := got[name]; !ok || found != license {
			t.Errorf("%s: listed %v, license %q; want %q", name, ok, found, license)
		}
	}
}
