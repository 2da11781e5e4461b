module github.com/prometheus/client_model

go 1.26.0

require google.golang.org/protobuf v1.36.12
