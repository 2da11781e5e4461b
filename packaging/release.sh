#!/usr/bin/env bash
# release.sh [DIR] builds everything that a release consists of in DIR, bin/release unless told otherwise: programs, packages,
# images and lists of what they contain (CycloneDX), for amd64 and arm64, with SHA256SUMS. It publishes and tags nothing. At the end it
# prints the size of the programs, and how much they have grown since the last release, which it builds to compare.
#   ARCHS, VERSION  as for build.sh
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-bin/release}")
export ARCHS=${ARCHS:-amd64 arm64}
export VERSION=${VERSION:-$(git describe --tags --always --dirty)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

rm -rf "$out"
mkdir -p "$out"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

packaging/build.sh "$out" >/dev/null
.ci/licenses.sh texts >"$stage/third-party-licenses.txt"
GOFLAGS=-trimpath CGO_ENABLED=0 go run -tags man ./cmd/broker man "$stage"
for arch in $ARCHS; do
	name=broker-$VERSION-linux-$arch
	mkdir "$stage/$name"
	packaging/program.sh "$arch" "$stage/$name/broker"
	cp -r LICENSE NOTICE README.md CHANGELOG.md packaging/broker.toml packaging/systemd "$stage/third-party-licenses.txt" \
		"$stage/man" "$stage/completions" "$stage/$name/"
	tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$stage" -c "$name" | gzip -n9 >"$out/$name.tar.gz"
	go run -C packaging ./image -program "$stage/$name/broker" -arch "$arch" -version "$VERSION" -out "$out/$name.image.tar"
	go run -C packaging ./sbom -program "$stage/$name/broker" -version "$VERSION" >"$out/$name.cdx.json"
done
(cd "$out" && sha256sum -- * >"$stage/SHA256SUMS" && mv "$stage/SHA256SUMS" .)
cat "$out/SHA256SUMS"

# sizes prints the size of each program, and that of the last release.
sizes() {
	local last arch size before
	if last=$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null); then
		mkdir "$stage/last"
		git archive "$last" | tar -xf - -C "$stage/last"
	fi
	for arch in $ARCHS; do
		size=$(stat -c %s "$stage/broker-$VERSION-linux-$arch/broker")
		if [ -z "$last" ]; then
			echo "program for $arch: $size bytes; there is no release before it"
			continue
		fi
		"$stage/last/packaging/program.sh" "$arch" "$stage/last.$arch"
		before=$(stat -c %s "$stage/last.$arch")
		echo "program for $arch: $size bytes, $((size - before)) more than in $last"
	done
}
sizes
