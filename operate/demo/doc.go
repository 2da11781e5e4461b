// Package demo is a shop that never sleeps: clients of Workq, Gearman, Faktory and HTTP that submit jobs and work on them, so
// that the console has something to show. Some jobs fail, some wait, some take long.
//
//	demo.go      what runs, and how often
//	produce.go   the jobs
//	work.go      the workers
//	faktory.go, gearman.go, workq.go, http.go   just enough of each protocol
package demo
