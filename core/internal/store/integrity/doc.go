// Package integrity checks the folder of a store before Pebble opens it: the format, and files whose loss or damage
// Pebble would take for the end of a crash.
package integrity
