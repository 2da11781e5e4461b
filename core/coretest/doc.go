// Package coretest helps to test the core and what stands on it: a clock that moves when told, and scripts of commands
// with what must come of them. It knows neither machine nor engine, so that the tests of both may use it.
package coretest
