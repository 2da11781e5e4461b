#!/bin/sh
# Submits a job to the queue greet: ./producer.sh [NAME]
set -eu
curl -sSf "${BROKER_URL:-http://127.0.0.1:7420}/api/v1/jobs" -H 'Content-Type: application/json' \
	-d "{\"queue\": \"greet\", \"args\": [\"${1:-shell}\"]}"
echo
