#!/usr/bin/env bash
# Installs the programs of other projects that the integration tests use. If one cannot be installed, this prints its name, and its tests
# are skipped. With CI=true it fails instead.
set -euo pipefail
cd "$(dirname "$0")/.."

# Debian's packages and, for each, a command that succeeds if it is installed.
probe() {
	case "$1" in
	gearman-job-server) PATH="$PATH:/usr/sbin:/sbin" command -v gearmand ;;
	gearman-tools) command -v gearman && command -v gearadmin ;;
	libgearman-dev) [ -e /usr/include/libgearman/gearman.h ] ;;
	php-cli) command -v php ;;
	php-gearman) php -r 'exit(extension_loaded("gearman") ? 0 : 1);' ;;
	php-pda-pheanstalk) php -r "require 'Pheanstalk/autoload.php';" ;;
	php-illuminate-queue) php -r "require 'Illuminate/Queue/autoload.php';" ;;
	php-illuminate-events) php -r "require 'Illuminate/Events/autoload.php';" ;;
	ruby-beaneater) ruby -e 'require "beaneater"' ;;
	libgearman-client-perl) perl -MGearman::Client -MGearman::Worker -e 1 ;;
	redis-server) command -v redis-server ;;
	chromium-headless-shell) command -v chromium-headless-shell || command -v chromium ;;
	ruby) command -v ruby ;;
	beanstalkd) PATH="$PATH:/usr/sbin:/sbin" command -v beanstalkd ;;
	nodejs) command -v node ;;
	npm) command -v npm ;;
	python3) command -v python3 ;;
	python3-redis) /usr/bin/python3 -c 'import redis' ;;
	python3-boto3) /usr/bin/python3 -c 'import boto3' ;;
	python3-celery) /usr/bin/python3 -c 'import celery, kombu' ;;
	python3-pycurl) /usr/bin/python3 -c 'import pycurl' ;;
	curl) command -v curl ;;
	debootstrap) PATH="$PATH:/usr/sbin:/sbin" command -v debootstrap ;;
	lintian) command -v lintian ;;
	rpm) command -v rpm ;;
	qemu-user-static) command -v qemu-aarch64-static ;;
	prometheus) command -v prometheus && command -v promtool ;;
	esac >/dev/null 2>&1
}

packages=(gearman-job-server gearman-tools libgearman-dev php-cli php-gearman php-pda-pheanstalk php-illuminate-queue php-illuminate-events
	libgearman-client-perl redis-server chromium-headless-shell ruby ruby-beaneater beanstalkd nodejs npm python3 python3-redis
	python3-boto3 python3-celery python3-pycurl curl debootstrap lintian rpm prometheus qemu-user-static)

missing=()
lack() {
	for p in "${packages[@]}"; do
		probe "$p" || missing+=("$p")
	done
}

lack
if [ ${#missing[@]} -gt 0 ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	echo "install ${missing[*]}"
	# The packages of servers would start them: the tests start their own, on ports of their own.
	policy=/usr/sbin/policy-rc.d
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod +x "$policy"
		trap 'rm -f "$policy"' EXIT
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q || echo "the list of packages could not be renewed"
	install() { apt-get install -q -y --no-install-recommends "$@"; }
	if ! install "${missing[@]}"; then # apt-get installs none where it lacks one
		for p in "${missing[@]}"; do
			install "$p" || echo "$p could not be installed"
		done
	fi
	missing=()
	lack
fi

for package in faktory-worker axe-core @apidevtools/swagger-parser redis sqs-consumer jackd; do
	[ -e "integration/clients/node/node_modules/$package/package.json" ] && continue
	(cd integration/clients/node && npm ci --no-audit --no-fund) || missing+=("the packages of integration/clients/node")
	break
done

if [ ${#missing[@]} -gt 0 ]; then
	echo "missing: ${missing[*]}"
	if [ "${CI:-}" = true ]; then
		echo "nothing may be skipped where CI is true"
		exit 1
	fi
	echo "the tests that need them are skipped"
fi
