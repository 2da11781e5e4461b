package config

// Old names are refused with the new one. If they were ignored, the broker would run with the defaults.
var (
	renamed = map[string]string{
		"disk_floor":         "min_free_disk",
		"drain_refuses_jobs": "drain_rejects_new_jobs",
	}
	renamedInRoute = map[string]string{
		"name":     "match.queue",
		"type":     "match.type (from Faktory) or set.type",
		"queue":    "set.queue",
		"new_type": "set.type",
	}
)
