#!/usr/bin/env bash
# Runs every fuzz target of the module, each for as long as the first argument says (default 5s).
set -euo pipefail
cd "$(dirname "$0")/.."
for_each="${1:-5s}"
export GOFLAGS=-pgo=off # it would have every package compiled once more

# What was found to be interesting in earlier runs, here or elsewhere, is where this one begins: make corpus keeps it.
cache="$(go env GOCACHE)/fuzz"
mkdir -p "$cache"
tar -xzf .ci/corpus.tgz -C "$cache" --skip-old-files

# Making an interesting input smaller may take the fuzzer a minute, more than a short run has; it gets a second.
#
# The fuzzer sometimes takes the end of its own time for a failure of the target: then it names no failing input.
fuzz() {
	local out
	if out=$(go test -run '^$' -fuzz "^$2\$" -fuzztime "$for_each" -fuzzminimizetime 1s "$1" 2>&1); then
		tail -n 1 <<<"$out"
		return
	fi
	if grep -q 'context deadline exceeded' <<<"$out" && ! grep -q 'Failing input' <<<"$out"; then
		echo "out of time, nothing found"
		return
	fi
	echo "$out"
	exit 1
}

targets=0
for package in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "fuzz $package $target"
		fuzz "$package" "$target"
		targets=$((targets + 1))
	done
done
echo "$targets fuzz targets"
[ "$targets" -gt 0 ]
