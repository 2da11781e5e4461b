package config

import "reflect"

// Changed lists the settings whose value in c differs from that in before. Routes, throttles and cron entries are left
// out, as in Settings.
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

// CopyTo gives the setting of the same path in c the value of s.
func (s Setting) CopyTo(c *Config) {
	for _, to := range Settings(c) {
		if to.Path == s.Path {
			to.value.Set(s.value)
		}
	}
}
