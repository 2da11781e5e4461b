#!/usr/bin/env bash
# licenses.sh write   renews NOTICE: the libraries in the released program and its console, with their licenses
# licenses.sh check   fails if NOTICE is out of date or names a license that is not allowed below
# licenses.sh texts   prints the license texts, which packages and images carry
# It needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."
allowed="Apache-2.0 MIT BSD-2-Clause BSD-3-Clause ISC 0BSD MPL-2.0"
tool=bin/tools/go-licenses
vendored=operate/console/static/vendor.json

# The tool was compiled without the toolchain's paths, and needs them to tell the standard library from others.
GOROOT=$(go env GOROOT)
export GOROOT

# The released program: other platforms and cgo bring other libraries.
export GOFLAGS=-trimpath CGO_ENABLED=0 GOOS=linux GOARCH=amd64

# report prints the libraries by a template. It hides the tool's warnings, about assembly and about web addresses that it could not
# look up, unless the tool fails.
report() {
	local template errors failed=0
	template=$(mktemp)
	errors=$(mktemp)
	printf '%s' "$1" >"$template"
	"$tool" report ./cmd/broker --ignore broker --template "$template" 2>"$errors" || failed=1
	[ "$failed" = 0 ] || cat "$errors" >&2
	rm -f "$template" "$errors"
	return "$failed"
}

notice() {
	cat <<-END
		broker
		Licensed under the Apache License 2.0, see LICENSE.

		The program contains these libraries (package, version, license):

		Go standard library $(go env GOVERSION | sed 's/^go\([0-9]*\.[0-9]*\).*/\1/') BSD-3-Clause
	END
	report '{{range .}}{{.Name}} {{.Version}} {{.LicenseName}}{{"\n"}}{{end}}' | LC_ALL=C sort
	cat <<-END

		The web console contains these (package, version, license; checksums in $vendored):

	END
	vendored_packages
}

# vendored_packages prints package, version and license of the console's files.
vendored_packages() {
	sed -n 's/.*"package": "\([^"]*\)", "version": "\([^"]*\)", "license": "\([^"]*\)".*/\1 \2 \3/p' "$vendored" | LC_ALL=C sort -u
}

# refused prints the libraries of a NOTICE on standard input whose license is not allowed.
refused() {
	awk -v allowed="$allowed" '
		BEGIN { n = split(allowed, names, " "); for (i = 1; i <= n; i++) ok[names[i]] = 1 }
		/:$/ { listing = 1; next }
		listing && NF && !($NF in ok) { print "license not allowed: " $0 }'
}

check() {
	local now bad failed=0
	now=$(notice)
	bad=$(refused <<<"$now")
	if [ -n "$bad" ]; then
		echo "$bad" >&2
		failed=1
	fi
	if ! diff -u NOTICE - <<<"$now" >&2; then
		echo "NOTICE is out of date: make notice" >&2
		failed=1
	fi
	return "$failed"
}

# texts keeps what it printed for the libraries at hand: reading all of them takes a while.
texts() {
	local kept
	kept=.cache/licenses/$(cat go.mod go.sum "$vendored" packaging/licenses/* .ci/licenses.sh | sha256sum | cut -c1-16)
	if [ ! -e "$kept" ]; then
		mkdir -p .cache/licenses
		print_texts >"$kept.new"
		mv "$kept.new" "$kept"
	fi
	cat "$kept"
}

print_texts() {
	printf '==== Go standard library (BSD-3-Clause)\n\n'
	cat "$(go env GOROOT)/LICENSE"
	printf '\n'
	report '{{range .}}==== {{.Name}} {{.Version}} ({{.LicenseName}}){{"\n\n"}}{{.LicenseText}}{{"\n\n"}}{{end}}'
	vendored_packages | while read -r package version license; do
		printf '==== %s %s (%s)\n\n' "$package" "$version" "$license"
		cat "packaging/licenses/${package##*/}.txt"
		printf '\n'
	done
}

case "${1:-}" in
write)
	notice >NOTICE.new
	mv NOTICE.new NOTICE
	;;
check) check ;;
texts) texts ;;
*)
	echo "usage: licenses.sh write|check|texts" >&2
	exit 2
	;;
esac
