// Package index builds the machine from a store. A start reads the whole store once. A node that follows a leader reads
// the jobs that have changed from time to time, so that its machine is ready when the node becomes the leader. The
// package knows the store and the machine, and neither locks nor replies. The engine calls it.
package index
