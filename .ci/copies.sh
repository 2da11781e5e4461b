#!/usr/bin/env bash
# copies.sh write   makes third_party/huma from the version of huma that go.mod requires, and third_party/huma.patch
# copies.sh check   fails if it is anything else
set -euo pipefail
cd "$(dirname "$0")/.."
module=github.com/danielgtaylor/huma/v2
packages=". adapters/humago casing negotiation queryparam validation yaml" # those that the broker imports
copy=third_party/huma

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# published prints the folder of the published module. The broker's own go.mod would lead to the copy.
published() {
	local version
	version=$(go list -m -f '{{.Version}}' "$module")
	(cd "$work" && GOFLAGS=-mod=mod go mod download -json "$module@$version") | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}

# make_copy FOLDER makes the copy: non-test files of the packages, the license, the patch, our format.
make_copy() {
	local from package file
	from=$(published)
	for package in $packages; do
		mkdir -p "$1/$package"
		for file in "$from/$package"/*.go; do
			case $file in *_test.go) ;; *) install -m 644 "$file" "$1/$package/" ;; esac
		done
	done
	install -m 644 "$from/LICENSE.md" "$1/"
	sed '/^require/,$d' "$from/go.mod" | sed '$d' >"$1/go.mod" # these packages need the standard library only
	patch --quiet --no-backup-if-mismatch -d "$1" -p1 <third_party/huma.patch
	bin/tools/gofumpt -w "$1"
}

make_copy "$work/copy"
case "${1:-}" in
write)
	rm -rf "$copy"
	mv "$work/copy" "$copy"
	;;
check)
	diff -ru "$work/copy" "$copy" >&2 || {
		echo "$copy is not the published $module with third_party/huma.patch: make copies" >&2
		exit 1
	}
	;;
*)
	echo "usage: copies.sh write|check" >&2
	exit 2
	;;
esac
