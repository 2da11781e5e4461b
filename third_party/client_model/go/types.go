// Package io_prometheus_client has the types of Prometheus' data model as plain structs. The published package has the same ones as
// protobuf messages; the broker answers in Prometheus' text format only.
package io_prometheus_client //nolint:revive // the name of the published package

import (
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// MetricType is the kind of a MetricFamily.
type MetricType int32

// The kinds.
const (
	MetricType_COUNTER MetricType = iota
	MetricType_GAUGE
	MetricType_SUMMARY
	MetricType_UNTYPED
	MetricType_HISTOGRAM
	MetricType_GAUGE_HISTOGRAM
)

// MetricType_name has the names of the kinds, and MetricType_value the kinds of the names.
var (
	MetricType_name = map[int32]string{
		0: "COUNTER", 1: "GAUGE", 2: "SUMMARY", 3: "UNTYPED", 4: "HISTOGRAM", 5: "GAUGE_HISTOGRAM",
	}
	MetricType_value = map[string]int32{
		"COUNTER": 0, "GAUGE": 1, "SUMMARY": 2, "UNTYPED": 3, "HISTOGRAM": 4, "GAUGE_HISTOGRAM": 5,
	}
)

// Enum returns a pointer to a copy.
func (t MetricType) Enum() *MetricType { return &t }

// String is the name.
func (t MetricType) String() string { return MetricType_name[int32(t)] }

// LabelPair is a name and its value.
type LabelPair struct {
	Name  *string
	Value *string
}

// Gauge is a number that rises and falls.
type Gauge struct {
	Value *float64
}

// Counter is a number that only rises.
type Counter struct {
	Value            *float64
	Exemplar         *Exemplar
	CreatedTimestamp *timestamppb.Timestamp
}

// Quantile is a quantile of a Summary.
type Quantile struct {
	Quantile *float64
	Value    *float64
}

// Summary is a distribution with quantiles.
type Summary struct {
	SampleCount      *uint64
	SampleSum        *float64
	Quantile         []*Quantile
	CreatedTimestamp *timestamppb.Timestamp
}

// Untyped is a number of an unknown kind.
type Untyped struct {
	Value *float64
}

// Histogram is a distribution with buckets, which are fixed ones or the spans of a native histogram.
type Histogram struct {
	SampleCount      *uint64
	SampleCountFloat *float64
	SampleSum        *float64
	Bucket           []*Bucket
	CreatedTimestamp *timestamppb.Timestamp
	Schema           *int32
	ZeroThreshold    *float64
	ZeroCount        *uint64
	ZeroCountFloat   *float64
	NegativeSpan     []*BucketSpan
	NegativeDelta    []int64
	NegativeCount    []float64
	PositiveSpan     []*BucketSpan
	PositiveDelta    []int64
	PositiveCount    []float64
	Exemplars        []*Exemplar
}

// Bucket is a fixed bucket of a Histogram.
type Bucket struct {
	CumulativeCount      *uint64
	CumulativeCountFloat *float64
	UpperBound           *float64
	Exemplar             *Exemplar
}

// BucketSpan is consecutive buckets of a native histogram.
type BucketSpan struct {
	Offset *int32
	Length *uint32
}

// Exemplar is one sample that a Counter or Bucket counts.
type Exemplar struct {
	Label     []*LabelPair
	Value     *float64
	Timestamp *timestamppb.Timestamp
}

// Metric is one set of labels and its value.
type Metric struct {
	Label       []*LabelPair
	Gauge       *Gauge
	Counter     *Counter
	Summary     *Summary
	Untyped     *Untyped
	Histogram   *Histogram
	TimestampMs *int64
}

// MetricFamily is all metrics of a name.
type MetricFamily struct {
	Name   *string
	Help   *string
	Type   *MetricType
	Metric []*Metric
	Unit   *string
}

// String names the labels and what the metric counts, for messages about a metric.
func (x *Metric) String() string {
	text := ""
	for _, l := range x.GetLabel() {
		text += fmt.Sprintf("label:{name:%q value:%q} ", l.GetName(), l.GetValue())
	}
	switch {
	case x.GetGauge() != nil:
		text += fmt.Sprintf("gauge:{value:%v}", x.GetGauge().GetValue())
	case x.GetCounter() != nil:
		text += fmt.Sprintf("counter:{value:%v}", x.GetCounter().GetValue())
	case x.GetUntyped() != nil:
		text += fmt.Sprintf("untyped:{value:%v}", x.GetUntyped().GetValue())
	case x.GetSummary() != nil:
		text += fmt.Sprintf("summary:{sample_count:%d sample_sum:%v}", x.GetSummary().GetSampleCount(), x.GetSummary().GetSampleSum())
	case x.GetHistogram() != nil:
		text += fmt.Sprintf("histogram:{sample_count:%d sample_sum:%v}", x.GetHistogram().GetSampleCount(), x.GetHistogram().GetSampleSum())
	}
	return text
}

// String names the metrics of the family.
func (x *MetricFamily) String() string {
	text := fmt.Sprintf("name:%q", x.GetName())
	for _, m := range x.GetMetric() {
		text += fmt.Sprintf(" metric:{%s}", m)
	}
	return text
}
