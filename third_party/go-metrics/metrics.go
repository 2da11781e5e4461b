// Package metrics has the functions of github.com/hashicorp/go-metrics that raft calls. They do nothing: the broker measures its
// cluster itself (docs/metrics.md), and never gave the real package a place to send raft's numbers to.
package metrics

import "time"

// Label is a name and a value.
type Label struct{ Name, Value string }

// SetGauge does nothing.
func SetGauge([]string, float32) {}

// AddSample does nothing.
func AddSample([]string, float32) {}

// IncrCounter does nothing.
func IncrCounter([]string, float32) {}

// IncrCounterWithLabels does nothing.
func IncrCounterWithLabels([]string, float32, []Label) {}

// MeasureSince does nothing.
func MeasureSince([]string, time.Time) {}

// MeasureSinceWithLabels does nothing.
func MeasureSinceWithLabels([]string, time.Time, []Label) {}
