#!/usr/bin/env bash
# summary.sh COMMAND... runs a command that tests. Then it prints how long each part took, how many tests ran, were skipped and
# failed, the reasons, and where the log of the failures is. Its exit code is that of the command.
set -uo pipefail
cd "$(dirname "$0")/.."
log=.cache/test/log
rm -rf "$log"
mkdir -p "$log"
"$@"
code=$?

for json in "$log"/*.json; do
	[ -s "$json" ] || continue
	grep -E '"Action":"(pass|fail|skip)"' "$json" | awk -v part="$(basename "$json" .json)" '
		function field(name) { return match($0, "\"" name "\":\"[^\"]*") ? substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 4) : "" }
		{ test = field("Test"); action = field("Action") }
		test != "" { n[action]++ }
		test == "" && action == "fail" && !n["fail"] { n["fail"]++; print "failed: " field("Package") > "/dev/stderr" }
		test != "" && action == "fail" { print "failed: " field("Package") " " test > "/dev/stderr" }
		END { print part, n["pass"] + n["fail"], n["skip"] + 0, n["fail"] + 0 }' 2>&1 >>"$log/counts"
done
# The reasons of the failures: what the tests said with the place in a test's file, without the logs that follow.
for json in "$log"/*.json; do
	[ -s "$json" ] || continue
	awk '
		function field(name) { return match($0, "\"" name "\":\"([^\"\\\\]|\\\\.)*") ? substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 4) : "" }
		/"Action":"output"/ && /_test\.go:[0-9]+: / { id = field("Package") " " field("Test"); if (n[id]++ < 40) line = field("Output"); sub(/\\n$/, "", line); said[id] = said[id] substr(line, 1, 300) "\n" }
		/"Action":"fail"/ { id = field("Package") " " field("Test"); if (said[id]) printf "reasons of %s:\n%s", id, said[id] }' "$json"
done
[ ! -s "$log/times" ] || awk '{ printf "%6d s  %s\n", $1, $2 }' "$log/times"
touch "$log/counts"
awk -v code="$code" -v log_folder="$log" '
	{ ran += $2; skipped += $3; failed += $4; if ($4) logs = logs " " log_folder "/" $1 ".json" }
	END {
		printf "%s: %d tests ran, %d skipped, %d failed", code ? "FAILED" : "passed", ran, skipped, failed
		if (logs) printf "; the output of the failures is in%s", logs
		print ""
	}' "$log/counts"
exit "$code"
