#!/usr/bin/env bash
# tools.sh [NAME...] installs these programs, or all, at fixed versions into bin/tools. A program of the right version in bin/tools or
# GOPATH/bin is not built again. They are compiled with the flags of the tests, so that the standard library is compiled once for all, and
# with a larger heap for the compiler, which takes a quarter less time then.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=(
	"gofumpt mvdan.cc/gofumpt v0.12.0"
	"golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint v2.15.0"
	"gotestsum gotest.tools/gotestsum v1.13.0"
	"deadcode golang.org/x/tools/cmd/deadcode v0.52.0"
	"go-licenses github.com/google/go-licenses v1.6.0"
	"oapi-codegen github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen v2.4.1"
	"helm helm.sh/helm/v3/cmd/helm v3.19.0"
	"kubeconform github.com/yannh/kubeconform/cmd/kubeconform v0.7.0"
	"nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm v2.44.0"
)

# version_of PROGRAM prints the version of the module that a Go program was built from.
version_of() {
	go version -m "$1" 2>/dev/null | awk '$1 == "mod" { print $3; exit }'
}

wanted=" ${*:-$(printf '%s\n' "${tools[@]}" | cut -d ' ' -f 1 | xargs)} "
mkdir -p bin/tools
for tool in "${tools[@]}"; do
	read -r name package version <<<"$tool"
	[[ $wanted = *" $name "* ]] || continue
	[ "$(version_of "bin/tools/$name")" = "$version" ] && continue
	elsewhere="$(go env GOPATH)/bin/$name"
	if [ "$(version_of "$elsewhere")" = "$version" ]; then
		cp "$elsewhere" "bin/tools/$name"
		continue
	fi
	echo "install $name $version"
	GOBIN="$PWD/bin/tools" GOGC=400 GOFLAGS=-trimpath CGO_ENABLED=0 go install "$package@$version"
done
