package config

import (
	"fmt"
	"slices"
)

// Policy holds defaults for the jobs of a queue or type.
type Policy struct {
	Name string // of the queue or type

	// Members are the members of the policy in the API, in JSON. The program checks them, not this package.
	Members []byte
}

// Names of the lists of policies in the file.
const (
	QueuePolicy = "queue_policy"
	TypePolicy  = "type_policy"
)

// policies reads [[queue_policy]] or [[type_policy]]; key is the member with the name of the queue or type.
func (l *loader) policies(list, key string, v any, source string) (all []Policy) {
	for i, table := range l.tables(list, v, source) {
		at := fmt.Sprintf("%s[%d]", list, i)
		name, ok := take(table, key).(string)
		if !ok || name == "" {
			l.complain(at+"."+key, "the name of the %s is missing (%s)", key, source)
		}
		if slices.ContainsFunc(all, func(o Policy) bool { return o.Name == name }) && name != "" {
			l.complain(at+"."+key, "%q has another policy (%s)", name, source)
		}
		if len(table) == 0 {
			l.complain(at, "has no members (%s)", source)
		}
		all = append(all, Policy{Name: name, Members: l.members(at, table, source)})
	}
	return all
}
