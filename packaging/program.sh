#!/usr/bin/env bash
# program.sh ARCH FILE builds the broker as it is released: static, stripped, the same bytes for the same sources.
# VERSION is the version that it reports.
set -euo pipefail
cd "$(dirname "$0")/.."

# Code that runs seldom is compiled without inlining, which makes the program 2 MB smaller: packages that take less than
# 0.2 % of the time in cmd/broker/default.pgo, unless other packages inline their functions. On amd64 functions start at
# multiples of 16 bytes, as on arm64, and not of 32: 0.3 MB less.
cold=(
	archive/... broker/cmd/broker/... broker/config broker/core/crontab broker/core/replica broker/frontends/console/...
	broker/frontends/docsite broker/frontends/httpapi/... broker/frontends/otlp broker/frontends/service/... charm.land/...
	compress/gzip compress/zlib context crypto/dsa crypto/ecdh crypto/ecdsa crypto/elliptic crypto/hpke crypto/rsa crypto/tls
	crypto/x509/... encoding/asn1 encoding/base64 encoding/csv encoding/gob encoding/pem encoding/xml flag fmt
	github.com/BurntSushi/... github.com/DataDog/... github.com/RaduBerinde/... github.com/beorn7/...
	github.com/charmbracelet/... github.com/clipperhouse/... github.com/cockroachdb/pebble/v2/internal/humanize
	github.com/cockroachdb/pebble/v2/internal/keyspan/... github.com/cockroachdb/pebble/v2/internal/manifest
	github.com/cockroachdb/pebble/v2/internal/overlap github.com/cockroachdb/pebble/v2/internal/problemspans
	github.com/cockroachdb/pebble/v2/internal/rangedel github.com/cockroachdb/pebble/v2/internal/rangekey
	github.com/cockroachdb/pebble/v2/internal/rangekeystack github.com/cockroachdb/pebble/v2/objstorage/...
	github.com/cockroachdb/pebble/v2/sstable/blob github.com/cockroachdb/pebble/v2/sstable/rowblk
	github.com/cockroachdb/pebble/v2/vfs/... github.com/cockroachdb/pebble/v2/wal github.com/cockroachdb/redact/...
	github.com/coreos/... github.com/danielgtaylor/... github.com/fatih/... github.com/hashicorp/go-hclog/...
	github.com/hashicorp/go-msgpack/... github.com/hashicorp/raft github.com/lucasb-eyer/... github.com/mattn/...
	github.com/muesli/... github.com/prometheus/... github.com/rivo/... github.com/robfig/... github.com/schollz/...
	github.com/spf13/... github.com/tidwall/match github.com/xo/... github.com/yuin/... go.opentelemetry.io/... go.uber.org/...
	go/... golang.org/x/text/... google.golang.org/... gopkg.in/natefinch/... html/... image/... internal/profile log/...
	math/big mime/... net net/http/... net/mail net/netip net/rpc net/textproto net/url os/... path/... regexp/... runtime/pprof
	text/... vendor/golang.org/x/crypto/cryptobyte/... vendor/golang.org/x/net/... vendor/golang.org/x/text/...
)
flags=()
for pattern in "${cold[@]}"; do
	flags+=("-gcflags=$pattern=-l")
done

CGO_ENABLED=0 GOOS=linux GOARCH="$1" go build -trimpath -buildvcs=false -ldflags "-s -w -funcalign=16 -X main.version=${VERSION:-unknown}" \
	"${flags[@]}" -o "$2" ./cmd/broker
