// Package remote carries operations and replies between the nodes of a cluster.
//
//	coder.go     numbers, texts, bytes
//	values.go    jobs, grants, failures, errors
//	ops.go       operations
//	replies.go   replies
package remote
