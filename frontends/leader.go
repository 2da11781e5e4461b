package frontends

import "encoding/json"

// What clients of all nodes of a cluster share is in the core, or else at the leader, with the front-end of the leader.
// The front-end of a node that follows asks that one.

// Leader is the front-end of the same protocol at the leader, for that of a node that follows.
type Leader interface {
	// Ask waits for the answer to a question. If the leader changes, the next one is asked again, so that twice must be
	// as once. The error means that there is no leader; all connections of clients of the core are closed before.
	Ask(question []byte) (answer []byte, err error)

	// AskOnce is Ask for what must not be asked twice. The error means that nobody knows what has become of it.
	AskOnce(question []byte) (answer []byte, err error)

	// Inform asks without waiting for an answer. The question may be lost with the link.
	Inform(question []byte)
}

// Node is a node that follows, for the front-end of the leader. It is comparable.
type Node interface {
	// Tell sends bytes to Shared.Heard of the node. They may be lost with the link.
	Tell(say []byte)
}

// Shared is a front-end with a part that clients of all nodes share. None of its methods may block.
type Shared interface {
	// Answer is called at the leader for a question. It calls answer once, at any time and from any goroutine.
	Answer(from Node, question []byte, answer func([]byte))

	// Left is called at the leader when a node has lost its link. The connections of its clients are closed.
	Left(Node)

	// Heard is called at a node that follows for what the leader's front-end tells.
	Heard(say []byte)

	// Register is called at a node that follows with each link to a leader, which may be another one, before anything
	// else is asked over it: it asks what the leader is to know of the node's clients. handle gets the answer, before
	// clients are served; if the link ends before, the next one registers all again.
	Register(ask func(question []byte, handle func(answer []byte)))
}

// AskLeader asks a question by Leader.Ask or Leader.AskOnce and reads the answer, both as JSON.
func AskLeader[A any](ask func([]byte) ([]byte, error), question any) (answer A, err error) {
	b, err := ask(ToJSON(question))
	if err == nil {
		err = json.Unmarshal(b, &answer)
	}
	return answer, err
}

// ToJSON encodes what always has a JSON form.
func ToJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a mistake in the program: the type has no JSON form
	}
	return b
}
