#!/usr/bin/env bash
# test.sh PART ARGUMENT... runs go test with the arguments and prints the packages and every failure. The complete output, with
# the times of all tests, is in .cache/test/log/PART.json. DIR is the folder of the module; default: the top.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
part=$1
shift
mkdir -p .cache/test/log
cd "${DIR:-.}"
exec "$top/bin/tools/gotestsum" --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary output \
	--jsonfile "$top/.cache/test/log/$part.json" -- "$@"
