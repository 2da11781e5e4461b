#!/bin/sh
# Greets the name in a JSON array of one string.
set -eu
name=$(sed 's/^\["\(.*\)"\]$/\1/')
echo "Hello, $name" >&2
echo "greeted $name"
