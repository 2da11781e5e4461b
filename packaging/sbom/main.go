// Program sbom lists what a built broker contains, in CycloneDX: the modules that are linked into it, as the program
// itself tells, and the files of others in its console. Licenses come from NOTICE.
//
//	go run -C packaging ./sbom -program FILE -version V > broker.cdx.json
package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

func main() {
	program := flag.String("program", "", "the built program")
	version := flag.String("version", "unknown", "its version")
	notice := flag.String("notice", "../NOTICE", "file with the licenses")
	vendored := flag.String("vendored", "../operate/console/static/vendor.json", "list of the console's files")
	flag.Parse()
	if err := run(*program, *version, *notice, *vendored, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(program, version, notice, vendored string, w io.Writer) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	known, err := licenses(notice)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)

	bom := cdx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceOID, sum[:]).URN() // the same for the same program
	bom.Metadata = &cdx.Metadata{Timestamp: timestamp(), Component: &cdx.Component{
		BOMRef: "broker", Type: cdx.ComponentTypeApplication, Name: "broker", Version: version,
		Licenses: spdx("Apache-2.0"),
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}},
	}}
	components := []cdx.Component{component("golang", "std", strings.TrimPrefix(info.GoVersion, "go"), "BSD-3-Clause")}
	for _, m := range info.Deps {
		components = append(components, component("golang", m.Path, m.Version, licenseOf(known, m.Path)))
	}
	files, err := browserFiles(vendored)
	if err != nil {
		return err
	}
	components = append(components, files...)
	bom.Components = &components
	encoder := cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	return encoder.Encode(bom)
}

// timestamp is SOURCE_DATE_EPOCH, so that two runs are equal; without it there is none.
func timestamp() string {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return ""
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}

func component(kind, name, version, license string) cdx.Component {
	url := "pkg:" + kind + "/" + strings.Replace(name, "@", "%40", 1) + "@" + version
	c := cdx.Component{BOMRef: url, PackageURL: url, Type: cdx.ComponentTypeLibrary, Name: name, Version: version}
	if license != "" {
		c.Licenses = spdx(license)
	}
	return c
}

func spdx(id string) *cdx.Licenses { return &cdx.Licenses{{License: &cdx.License{ID: id}}} }

// licenses reads NOTICE: lines of package, version and license.
func licenses(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	known := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 3 {
			known[words[0]] = words[2]
		}
	}
	return known, nil
}

// licenseOf returns the license of a module. NOTICE may name its packages instead, the first of which counts.
func licenseOf(known map[string]string, module string) string {
	if license := known[module]; license != "" {
		return license
	}
	first := ""
	for name := range known {
		if strings.HasPrefix(name, module+"/") && (first == "" || name < first) {
			first = name
		}
	}
	return known[first]
}

// browserFiles lists the packages of the console's files.
func browserFiles(list string) ([]cdx.Component, error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	var files []struct{ Package, Version, License string }
	if err := json.Unmarshal(text, &files); err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	var components []cdx.Component
	for _, f := range files {
		components = append(components, component("npm", f.Package, f.Version, f.License))
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	return slices.CompactFunc(components, func(a, b cdx.Component) bool { return a.BOMRef == b.BOMRef }), nil
}
