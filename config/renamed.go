package config

// Old names are refused with the new one. An old name that were ignored would silently put the default into force.
var (
	renamed = map[string]string{
		"disk_floor":         "min_free_disk",
		"drain_refuses_jobs": "drain_rejects_new_jobs",
	}
	renamedInRoute = map[string]string{
		"name":     "match.queue",
		"type":     "match.type (from faktory) or set.type",
		"queue":    "set.queue",
		"new_type": "set.type",
	}
)
