#!/usr/bin/env bash
# Lists the replace lines of every go.mod and fails if there is one: libraries are used as published, so that updates and scanners of
# vulnerabilities see what is compiled.
set -euo pipefail
cd "$(dirname "$0")/.."

found=$(git ls-files '*go.mod' | while read -r file; do
	go mod edit -json "$file" | sed -n '/^\t"Replace": \[/,/^\t\]/p' | awk -v file="$file" -F '"' '
		/"Old"/ { side = "old" } /"New"/ { side = "new" }
		/"Path"/ && side == "old" { old = $4 } /"Path"/ && side == "new" { print file ": replace " old " => " $4 }'
done)
if [ -n "$found" ]; then
	echo "$found"
	exit 1
fi
