// Package beanstalkd gives the broker the command line of beanstalkd 1.12, for scripts and services that start it. It turns the
// options into settings and has the caller run the broker.
package beanstalkd
