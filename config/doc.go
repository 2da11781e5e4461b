// Package config holds every setting of the broker: its name, its default, what it means and what it may be.
//
// A setting is named by its path in the TOML file, such as gearman.listen. The environment names it in capitals behind
// BROKER_ with underscores for dots: BROKER_GEARMAN_LISTEN. Flags name it by its path too; which flag means which path
// is the command line's matter. File, then environment, then flags: the last wins.
//
// Load reports every problem it finds at once, each with the name of the setting.
package config
