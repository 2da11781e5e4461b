#!/bin/sh
# Works on the queue greet until it is stopped: ./worker.sh
# gearman runs greet.sh for each job: the body on its standard input, its standard output as the result.
set -eu
server=${GEARMAN_SERVER:-127.0.0.1:4730}
exec gearman -w -h "${server%:*}" -p "${server##*:}" -f greet -- "$(dirname "$0")/greet.sh"
