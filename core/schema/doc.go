// Package schema is the written form of what operators set for queues and types.
//
// The fields of Policy and of Throttle are the schema. Their tags name each setting and say its bounds, its help and
// its label, and PolicyRows and ThrottleRows list them for whoever reads or shows settings: the settings file, the API
// and its description, the forms of the console, the flags of the command line, and the tables of the documentation.
//
//	row.go        a setting: name, unit, bounds, help
//	form.go       the fields of a form
//	text.go       values as texts, for forms, flags and people
//	backoff.go    waits between tries: of a policy in JSON and as text, of a job
//	exhausted.go  what happens after the last try
//	policy.go     policies
//	throttle.go   what limits limit
package schema
