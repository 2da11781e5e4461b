package machine

import (
	"encoding/json"
	"strings"

	"broker/core/internal/batch"
	"broker/core/internal/limit"
	"broker/core/internal/policy"
	"broker/core/internal/schedule"
)

// ContentOf names the data that a metadata entry of the core belongs to, for people; empty: users would not miss it. Users would
// not miss counters, measurements and names of unused queues.
func ContentOf(name string, value []byte) string {
	switch {
	case strings.HasPrefix(name, queueMetaPrefix):
		var k queueMeta
		if json.Unmarshal(value, &k) == nil && k == (queueMeta{Kept: true}) {
			return ""
		}
		return "settings of queues"
	case IsPolicy(name), strings.HasPrefix(name, limit.SharedPrefix):
		return "limits of queues"
	case strings.HasPrefix(name, policy.Prefix):
		return "policies of queues and types"
	case strings.HasPrefix(name, schedule.Prefix), strings.HasPrefix(name, schedule.PositionPrefix):
		return "schedules"
	case strings.HasPrefix(name, batch.Prefix):
		return "batches"
	}
	return ""
}
