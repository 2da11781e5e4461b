module github.com/hashicorp/go-metrics

go 1.26.0
