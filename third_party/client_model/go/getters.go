package io_prometheus_client //nolint:revive // the name of the published package

import "google.golang.org/protobuf/types/known/timestamppb"

// Each getter returns the zero value if its receiver is nil or the field is not set, as those of protobuf messages do.

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// GetName returns the field Name.
func (x *LabelPair) GetName() (v string) {
	if x != nil {
		v = value(x.Name)
	}
	return v
}

// GetValue returns the field Value.
func (x *LabelPair) GetValue() (v string) {
	if x != nil {
		v = value(x.Value)
	}
	return v
}

// GetValue returns the field Value.
func (x *Gauge) GetValue() (v float64) {
	if x != nil {
		v = value(x.Value)
	}
	return v
}

// GetValue returns the field Value.
func (x *Counter) GetValue() (v float64) {
	if x != nil {
		v = value(x.Value)
	}
	return v
}

// GetExemplar returns the field Exemplar.
func (x *Counter) GetExemplar() (v *Exemplar) {
	if x != nil {
		v = x.Exemplar
	}
	return v
}

// GetCreatedTimestamp returns the field CreatedTimestamp.
func (x *Counter) GetCreatedTimestamp() (v *timestamppb.Timestamp) {
	if x != nil {
		v = x.CreatedTimestamp
	}
	return v
}

// GetQuantile returns the field Quantile.
func (x *Quantile) GetQuantile() (v float64) {
	if x != nil {
		v = value(x.Quantile)
	}
	return v
}

// GetValue returns the field Value.
func (x *Quantile) GetValue() (v float64) {
	if x != nil {
		v = value(x.Value)
	}
	return v
}

// GetSampleCount returns the field SampleCount.
func (x *Summary) GetSampleCount() (v uint64) {
	if x != nil {
		v = value(x.SampleCount)
	}
	return v
}

// GetSampleSum returns the field SampleSum.
func (x *Summary) GetSampleSum() (v float64) {
	if x != nil {
		v = value(x.SampleSum)
	}
	return v
}

// GetQuantile returns the field Quantile.
func (x *Summary) GetQuantile() (v []*Quantile) {
	if x != nil {
		v = x.Quantile
	}
	return v
}

// GetCreatedTimestamp returns the field CreatedTimestamp.
func (x *Summary) GetCreatedTimestamp() (v *timestamppb.Timestamp) {
	if x != nil {
		v = x.CreatedTimestamp
	}
	return v
}

// GetValue returns the field Value.
func (x *Untyped) GetValue() (v float64) {
	if x != nil {
		v = value(x.Value)
	}
	return v
}

// GetSampleCount returns the field SampleCount.
func (x *Histogram) GetSampleCount() (v uint64) {
	if x != nil {
		v = value(x.SampleCount)
	}
	return v
}

// GetSampleCountFloat returns the field SampleCountFloat.
func (x *Histogram) GetSampleCountFloat() (v float64) {
	if x != nil {
		v = value(x.SampleCountFloat)
	}
	return v
}

// GetSampleSum returns the field SampleSum.
func (x *Histogram) GetSampleSum() (v float64) {
	if x != nil {
		v = value(x.SampleSum)
	}
	return v
}

// GetBucket returns the field Bucket.
func (x *Histogram) GetBucket() (v []*Bucket) {
	if x != nil {
		v = x.Bucket
	}
	return v
}

// GetCreatedTimestamp returns the field CreatedTimestamp.
func (x *Histogram) GetCreatedTimestamp() (v *timestamppb.Timestamp) {
	if x != nil {
		v = x.CreatedTimestamp
	}
	return v
}

// GetSchema returns the field Schema.
func (x *Histogram) GetSchema() (v int32) {
	if x != nil {
		v = value(x.Schema)
	}
	return v
}

// GetZeroThreshold returns the field ZeroThreshold.
func (x *Histogram) GetZeroThreshold() (v float64) {
	if x != nil {
		v = value(x.ZeroThreshold)
	}
	return v
}

// GetZeroCount returns the field ZeroCount.
func (x *Histogram) GetZeroCount() (v uint64) {
	if x != nil {
		v = value(x.ZeroCount)
	}
	return v
}

// GetZeroCountFloat returns the field ZeroCountFloat.
func (x *Histogram) GetZeroCountFloat() (v float64) {
	if x != nil {
		v = value(x.ZeroCountFloat)
	}
	return v
}

// GetNegativeSpan returns the field NegativeSpan.
func (x *Histogram) GetNegativeSpan() (v []*BucketSpan) {
	if x != nil {
		v = x.NegativeSpan
	}
	return v
}

// GetNegativeDelta returns the field NegativeDelta.
func (x *Histogram) GetNegativeDelta() (v []int64) {
	if x != nil {
		v = x.NegativeDelta
	}
	return v
}

// GetNegativeCount returns the field NegativeCount.
func (x *Histogram) GetNegativeCount() (v []float64) {
	if x != nil {
		v = x.NegativeCount
	}
	return v
}

// GetPositiveSpan returns the field PositiveSpan.
func (x *Histogram) GetPositiveSpan() (v []*BucketSpan) {
	if x != nil {
		v = x.PositiveSpan
	}
	return v
}

// GetPositiveDelta returns the field PositiveDelta.
func (x *Histogram) GetPositiveDelta() (v []int64) {
	if x != nil {
		v = x.PositiveDelta
	}
	return v
}

// GetPositiveCount returns the field PositiveCount.
func (x *Histogram) GetPositiveCount() (v []float64) {
	if x != nil {
		v = x.PositiveCount
	}
	return v
}

// GetExemplars returns the field Exemplars.
func (x *Histogram) GetExemplars() (v []*Exemplar) {
	if x != nil {
		v = x.Exemplars
	}
	return v
}

// GetCumulativeCount returns the field CumulativeCount.
func (x *Bucket) GetCumulativeCount() (v uint64) {
	if x != nil {
		v = value(x.CumulativeCount)
	}
	return v
}

// GetCumulativeCountFloat returns the field CumulativeCountFloat.
func (x *Bucket) GetCumulativeCountFloat() (v float64) {
	if x != nil {
		v = value(x.CumulativeCountFloat)
	}
	return v
}

// GetUpperBound returns the field UpperBound.
func (x *Bucket) GetUpperBound() (v float64) {
	if x != nil {
		v = value(x.UpperBound)
	}
	return v
}

// GetExemplar returns the field Exemplar.
func (x *Bucket) GetExemplar() (v *Exemplar) {
	if x != nil {
		v = x.Exemplar
	}
	return v
}

// GetOffset returns the field Offset.
func (x *BucketSpan) GetOffset() (v int32) {
	if x != nil {
		v = value(x.Offset)
	}
	return v
}

// GetLength returns the field Length.
func (x *BucketSpan) GetLength() (v uint32) {
	if x != nil {
		v = value(x.Length)
	}
	return v
}

// GetLabel returns the field Label.
func (x *Exemplar) GetLabel() (v []*LabelPair) {
	if x != nil {
		v = x.Label
	}
	return v
}

// GetValue returns the field Value.
func (x *Exemplar) GetValue() (v float64) {
	if x != nil {
		v = value(x.Value)
	}
	return v
}

// GetTimestamp returns the field Timestamp.
func (x *Exemplar) GetTimestamp() (v *timestamppb.Timestamp) {
	if x != nil {
		v = x.Timestamp
	}
	return v
}

// GetLabel returns the field Label.
func (x *Metric) GetLabel() (v []*LabelPair) {
	if x != nil {
		v = x.Label
	}
	return v
}

// GetGauge returns the field Gauge.
func (x *Metric) GetGauge() (v *Gauge) {
	if x != nil {
		v = x.Gauge
	}
	return v
}

// GetCounter returns the field Counter.
func (x *Metric) GetCounter() (v *Counter) {
	if x != nil {
		v = x.Counter
	}
	return v
}

// GetSummary returns the field Summary.
func (x *Metric) GetSummary() (v *Summary) {
	if x != nil {
		v = x.Summary
	}
	return v
}

// GetUntyped returns the field Untyped.
func (x *Metric) GetUntyped() (v *Untyped) {
	if x != nil {
		v = x.Untyped
	}
	return v
}

// GetHistogram returns the field Histogram.
func (x *Metric) GetHistogram() (v *Histogram) {
	if x != nil {
		v = x.Histogram
	}
	return v
}

// GetTimestampMs returns the field TimestampMs.
func (x *Metric) GetTimestampMs() (v int64) {
	if x != nil {
		v = value(x.TimestampMs)
	}
	return v
}

// GetName returns the field Name.
func (x *MetricFamily) GetName() (v string) {
	if x != nil {
		v = value(x.Name)
	}
	return v
}

// GetHelp returns the field Help.
func (x *MetricFamily) GetHelp() (v string) {
	if x != nil {
		v = value(x.Help)
	}
	return v
}

// GetType returns the field Type.
func (x *MetricFamily) GetType() (v MetricType) {
	if x != nil {
		v = value(x.Type)
	}
	return v
}

// GetMetric returns the field Metric.
func (x *MetricFamily) GetMetric() (v []*Metric) {
	if x != nil {
		v = x.Metric
	}
	return v
}

// GetUnit returns the field Unit.
func (x *MetricFamily) GetUnit() (v string) {
	if x != nil {
		v = value(x.Unit)
	}
	return v
}
