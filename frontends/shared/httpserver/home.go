package httpserver

// Home is where a request is served in a cluster.
type Home uint8

// Where. AtNode: a node that follows serves it too, if it is linked to the leader.
const (
	AtLeader Home = iota
	AtNode
	AtEach // each node answers for itself
)
