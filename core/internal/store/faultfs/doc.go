// Package faultfs makes the first failure of a store final. Pebble would end the process after many failed writes, in some
// cases by unlocking an unlocked mutex, which nothing can recover from. So Pebble never sees the error: the file system
// that it is given trips a latch and blocks the goroutine that met the failure, and later every other one that tries to
// change the folder. Nothing is repaired halfway either: the folder stays as the failure left it, and recovery is built
// and tested for that.
//
// The same file system records what integrity.Guard needs to know of logs and manifests, since it sees every write.
package faultfs
