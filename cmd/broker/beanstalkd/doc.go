// Package beanstalkd gives the broker the command line of beanstalkd 1.12, for scripts and services that start it. It
// turns the options into settings; the caller runs the broker.
package beanstalkd
