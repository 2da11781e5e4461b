package process

import (
	"time"

	"github.com/hashicorp/go-metrics"
	raftmetrics "github.com/hashicorp/go-metrics/prometheus"
	"github.com/prometheus/client_golang/prometheus"
)

// measureRaft adds the metrics that raft keeps of itself, which begin with raft_. The library finds their sink in a
// global variable.
func measureRaft(registry prometheus.Registerer) error {
	// A metric that did not change for a minute belongs to a role or a node of before.
	sink, err := raftmetrics.NewPrometheusSinkFrom(raftmetrics.PrometheusOpts{
		Registerer: registry, Expiration: time.Minute,
	})
	if err != nil {
		return err
	}
	options := metrics.DefaultConfig("")
	options.EnableHostname, options.EnableRuntimeMetrics = false, false
	_, err = metrics.NewGlobal(options, sink)
	return err
}
