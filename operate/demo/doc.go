// Package demo is a simulated shop. Its clients of Workq, Gearman, Faktory and HTTP submit and process jobs all the
// time, so that the console has something to show. Some jobs fail, some wait, some take long.
//
//	demo.go      the clients and their rates
//	produce.go   the jobs
//	work.go      the workers
//	faktory.go, gearman.go, workq.go, http.go   the parts of each protocol that the demo needs
package demo
