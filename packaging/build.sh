#!/usr/bin/env bash
# build.sh [DIR] makes the deb and rpm packages in DIR, bin/packages unless told otherwise.
#   ARCHS    the architectures: "amd64 arm64"
#   KINDS    the forms: "deb rpm"
#   PACKAGES the packages: "broker broker-gearmand broker-beanstalkd"
#   VERSION  the version that the program reports; packages have it without the leading v
# The same sources and VERSION make the same bytes: every time stamp is that of the last commit.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-bin/packages}
archs=${ARCHS:-amd64 arm64}
kinds=${KINDS:-deb rpm}
packages=${PACKAGES:-broker broker-gearmand broker-beanstalkd}
nfpm=bin/tools/nfpm

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
VERSION=${VERSION:-$(git describe --tags --always --dirty)}
# Packages sort 1.2.0~rc.1 before 1.2.0, and 1.2.0+5 after it. A version without a tag sorts before every release and after
# the versions of earlier commits.
PACKAGE_VERSION=${VERSION#v}
case "$PACKAGE_VERSION" in
[0-9]*.[0-9]*) PACKAGE_VERSION=$(sed -E 's/-(alpha|beta|rc)/~\1/; s/-/+/g' <<<"$PACKAGE_VERSION") ;;
*) PACKAGE_VERSION="0.0.0~git$(git rev-list --count HEAD).${PACKAGE_VERSION//-/.}" ;;
esac
export SOURCE_DATE_EPOCH VERSION PACKAGE_VERSION TZ=UTC

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

# changelog PACKAGE prints the changelog in Debian's form.
changelog() {
	printf '%s (%s) unstable; urgency=medium\n\n' "$1" "$PACKAGE_VERSION"
	printf '  * The changes are listed in /usr/share/doc/broker/CHANGELOG.md.gz.\n\n'
	printf ' -- The broker maintainers <maintainers@broker.example>  %s\n' "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
}

# copyright prints Debian's file of licenses.
copyright() {
	cat <<-END
		Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
		Upstream-Name: broker

		Files: *
		Copyright: 2026 the authors of broker
		License: Apache-2.0
		 On Debian systems the license is in /usr/share/common-licenses/Apache-2.0.
		 .
		 The program contains libraries under licenses of their own. The file
		 /usr/share/doc/broker/NOTICE names them, third-party-licenses.gz beside it
		 has the texts.
	END
}

# common makes what is the same for all architectures.
common() {
	GOFLAGS=-trimpath CGO_ENABLED=0 go run -tags man ./cmd/broker man "$stage/common" # with the flags of program.sh, so that this compiles once
	mkdir -p "$stage/common/doc" "$stage/common/docs"
	cp -r packaging/deb packaging/rpm "$stage/common/"
	sed -i "s/@UNITS@/$(cd packaging/systemd && echo broker.service broker-*.socket)/" "$stage/common/deb/broker."* "$stage/common/rpm/broker."*
	cp README.md SECURITY.md NOTICE CHANGELOG.md "$stage/common/doc/"
	cp docs/*.md docs/*.png "$stage/common/docs/"
	copyright >"$stage/common/doc/copyright"
	.ci/licenses.sh texts >"$stage/common/doc/third-party-licenses"
	gzip -n9 "$stage/common/doc/CHANGELOG.md" "$stage/common/doc/third-party-licenses" "$stage/common/man/"*
	printf '.so man1/broker-gearmand.1\n' | gzip -n9 >"$stage/common/gearmand.8.gz"
	printf '.so man1/broker-beanstalkd.1\n' | gzip -n9 >"$stage/common/beanstalkd.1.gz"
	for package in $packages; do
		changelog "$package" | gzip -n9 >"$stage/common/changelog.$package.gz"
	done
}

# pack PACKAGE ARCH KIND makes one package.
pack() {
	local config=$stage/nfpm.yaml
	sed -E "s#packaging/(deb|rpm)/#$stage/$2/\\1/#" "packaging/nfpm.$1.yaml" >"$config" # scripts with the names of the units
	if [ "$3" = deb ]; then
		sed -i '/^license:/d' "$config" # Debian has a file for it
	fi
	if ! ARCH=$2 STAGE=$stage/$2 "$nfpm" package --config "$config" --packager "$3" --target "$out/" >"$stage/log"; then
		cat "$stage/log" >&2
		return 1
	fi
}

mkdir -p "$out"
common
for arch in $archs; do
	cp -r "$stage/common" "$stage/$arch"
	packaging/program.sh "$arch" "$stage/$arch/broker"
	for package in $packages; do
		for kind in $kinds; do
			pack "$package" "$arch" "$kind"
		done
	done
done
ls "$out"
