package console

import (
	"fmt"
	"testing"

	"broker/operate/service"
)

func TestStateOfTheBrokerIsMarked(t *testing.T) {
	t.Parallel()
	as := func(role string) *service.Cluster {
		return &service.Cluster{Numbers: func() service.ClusterNumbers { return service.ClusterNumbers{Role: role} }}
	}
	for _, one := range []struct {
		sum     service.Summary
		cluster *service.Cluster
		want    string
	}{
		{service.Summary{}, nil, "[{ok serving}]"},
		{service.Summary{Draining: true, DiskFull: true}, nil, "[{failed disk nearly full: new jobs are refused} {draining draining}]"},
		{service.Summary{Stopped: true}, nil, "[{failed the store has failed}]"},
		{service.Summary{}, as("leader"), "[{ok serving} {leader leads the cluster}]"},
		{service.Summary{}, as("follower"), "[{ok serving} {ready follower in the cluster}]"},
		{service.Summary{}, as(""), "[{ok serving} {draining not in the cluster yet}]"},
	} {
		if got := fmt.Sprint(marks(&one.sum, one.cluster)); got != one.want {
			t.Errorf("got %s, want %s", got, one.want)
		}
	}
}
