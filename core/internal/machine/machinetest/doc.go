// Package machinetest compares machines, for tests.
package machinetest
