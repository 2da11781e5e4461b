// Package config defines every setting of the broker: its name, default, meaning and valid values.
//
// The name of a setting is its path in the TOML file, such as gearman.listen. Its environment variable is that name in
// upper case, with the prefix BROKER_ and underscores for dots: BROKER_GEARMAN_LISTEN. The command line maps flags to
// names. Flags override the environment, which overrides the file.
//
// Load reports all problems at once, each with the name of its setting.
package config
