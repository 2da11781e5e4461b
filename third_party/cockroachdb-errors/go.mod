module github.com/cockroachdb/errors

go 1.26.0

require github.com/cockroachdb/redact v1.1.5
