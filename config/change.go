package config

import "reflect"

// Changed lists the settings of c that differ from before. Like Settings, it does not include lists and tables.
func (c *Config) Changed(before *Config) []Setting {
	var changed []Setting
	old := Settings(before)
	for i, s := range Settings(c) {
		if !reflect.DeepEqual(s.value.Interface(), old[i].value.Interface()) {
			changed = append(changed, s)
		}
	}
	return changed
}

// TakeSources makes the sources of the settings those of from.
func (c *Config) TakeSources(from *Config) { c.sources = from.sources }

// CopyTo sets the setting of the same path in c to the value of s.
func (s Setting) CopyTo(c *Config) {
	for _, to := range Settings(c) {
		if to.Path == s.Path {
			to.value.Set(s.value)
		}
	}
}
