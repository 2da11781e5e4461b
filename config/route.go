package config

import "cmp"

// Rewrite returns the function that applies the first matching route to a job of a protocol; nil if it has no routes.
func (c *Config) Rewrite(from string) func(queue, typ string) (string, string) {
	var routes []Route
	for _, r := range c.Routes {
		if r.From == from {
			routes = append(routes, r)
		}
	}
	if routes == nil {
		return nil
	}
	return func(queue, typ string) (string, string) {
		for _, r := range routes {
			if r.matches(queue, typ) {
				return r.apply(queue, typ)
			}
		}
		return queue, typ
	}
}

func (r Route) matches(queue, typ string) bool {
	return (r.Match.Queue == "" || r.Match.Queue == queue) && (r.Match.Type == "" || r.Match.Type == typ)
}

func (r Route) apply(queue, typ string) (newQueue, newType string) {
	return cmp.Or(r.Set.Queue, queue), cmp.Or(r.Set.Type, typ)
}
