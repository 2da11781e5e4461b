#!/usr/bin/env bash
# timed.sh PART COMMAND... runs a command and notes how long it took, for summary.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
part=$1
shift
began=$SECONDS
trap 'mkdir -p .cache/test/log && echo "$((SECONDS - began)) $part" >>.cache/test/log/times' EXIT
"$@"
