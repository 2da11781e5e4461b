// Package cluster tests clusters of the built program: three processes on loopback, clients of all protocols at all
// nodes, and faults. What the clients saw is checked afterwards: nothing acknowledged is lost, nothing finished comes
// back, no job is leased twice at once.
package cluster
