#!/usr/bin/env bash
# Runs every fuzz target of the module, each for as long as the first argument says (default 5s).
set -euo pipefail
cd "$(dirname "$0")/.."
for_each="${1:-5s}"

targets=0
for package in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "fuzz $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$for_each" "$package"
		targets=$((targets + 1))
	done
done
echo "$targets fuzz targets"
[ "$targets" -gt 0 ]
