#!/usr/bin/env bash
# Fuzzes the decoders and the sessions.
#
#   .ci/fuzz.sh all TIME          every target of the module, each for TIME (such as 30s)
#   .ci/fuzz.sh changed TARGETS   the targets of the packages that a change touches, 5 s each; if there are more than
#                                 TARGETS of them, that many chosen at random
#
# Only all is guided by coverage. It takes minutes to compile for that and makes a session forty times slower, while 5 s are too
# short for coverage to lead anywhere.
#
# The change is what differs from FUZZ_BASE if that is set; else, on a branch, from where it left main; else from the tag
# before this commit, or from twenty commits ago. Without any of them (a shallow clone, no repository) all targets count.
#
# Each run begins with the seeds in testdata/fuzz; go test replays them too. A failing input is written there. Interesting inputs of
# long runs are kept in .cache/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
mode="${1:?all or changed}"
export GOFLAGS=-trimpath CGO_ENABLED=0 # as the program and its tests are compiled
root=$PWD
work="$root/.cache/fuzz"
mkdir -p "$work"

# targets prints "package-folder target" of every fuzz target.
targets() {
	grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's|^\./(.*)/[^/]+:func |\1 |' | sort
}

# Seeds whose target was renamed or moved away would never be replayed again.
find . -path '*/testdata/fuzz/*' -type d | sed -E 's|^\./(.*)/testdata/fuzz/|\1 |' | sort | comm -23 - <(targets) |
	if read -r orphans; then
		echo "seeds without a target: $orphans"
		exit 1
	fi

# base prints the commit that the change is measured from; it fails if there is none.
base() {
	local at ref
	if [ -n "${FUZZ_BASE:-}" ]; then
		git rev-parse --verify -q "$FUZZ_BASE^{commit}"
		return
	fi
	for ref in origin/HEAD origin/main main; do
		at=$(git merge-base HEAD "$ref" 2>/dev/null) || continue
		[ "$at" = "$(git rev-parse HEAD)" ] && break # this is main itself
		echo "$at"
		return
	done
	at=$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null) || at=HEAD~20
	git rev-parse --verify -q "$at^{commit}"
}

# touched prints the targets of the packages with a file that differs from the base.
touched() {
	local from
	if ! from=$(base); then
		echo "no commit to compare with: all targets" >&2
		targets
		return
	fi
	echo "changed since $(git log -1 --format='%h %s' "$from")" >&2
	{ git diff --name-only "$from"; git ls-files --others --exclude-standard; } |
		grep -E '\.go$|/testdata/fuzz/' | sed -E 's|/testdata/fuzz/.*||; s|/[^/]+\.go$||' | sort -u |
		join - <(targets) || true
}

# build compiles the tests of a package, once for all of its targets.
build() {
	local out
	out="$work/$(tr / _ <<<"$1").test"
	[ -n "${built[$1]:-}" ] || GOGC=400 go test -c $guided -o "$out" "./$1" # the compiler is faster with a larger heap
	built[$1]=$out
}
declare -A built

# Making an interesting input smaller may take the fuzzer a minute, more than a short run has; it gets a second.
#
# The fuzzer sometimes takes the end of its own time for a failure of the target: then it names no failing input.
fuzz() {
	local package=$1 target=$2 for_each=$3 out
	build "$package"
	if out=$(cd "$package" && "${built[$package]}" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$for_each" \
		-test.fuzzminimizetime 1s -test.fuzzcachedir "$work/$package" 2>&1); then
		grep 'elapsed:' <<<"$out" | tail -n 1 || true
		return
	fi
	if grep -q 'context deadline exceeded' <<<"$out" && ! grep -q 'Failing input' <<<"$out"; then
		echo "out of time, nothing found"
		return
	fi
	echo "$out"
	exit 1
}

case "$mode" in
all) list=$(targets) time="${2:?a time}" guided=-fuzz=Fuzz ;;
changed) list=$(touched | shuf -n "${2:?a number}") time=5s guided= ;;
*) echo "all or changed, not $mode" && exit 2 ;;
esac
if [ -z "$list" ]; then
	echo "the change touches no package with a fuzz target"
	exit
fi
while read -r package target; do
	echo "fuzz $package $target for $time"
	fuzz "$package" "$target" "$time"
done <<<"$list"
