// Package faultfs makes the first failure of a store final. Pebble would end the process after many kinds of failed
// writes, in some cases by unlocking an unlocked mutex, which cannot be recovered from. So Pebble never sees the error:
// its file system trips a latch and blocks the goroutine that met the failure, and later every other goroutine that
// tries to change the folder. Nothing is half repaired either: the folder stays as the failure left it, and recovery is
// built and tested for that.
//
// The same file system sees every write, so it also records the data about logs and manifests for integrity.Guard.
package faultfs
