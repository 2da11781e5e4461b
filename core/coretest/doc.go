// Package coretest has helpers for tests of the core and of packages above it: a clock under the control of the test,
// and scripts of commands with their expected results. It knows neither machine nor engine, so that the tests of both
// can use it.
package coretest
