package sqs

import (
	"broker/core"
	"broker/core/client"
)

// open registers a client of the broker for one request; Close it. Its waits end with the front-end.
func (f *Frontend) open(from caller) *client.Client {
	return client.Open(f.broker, client.Options{Ending: f.ctx.Done(), ClientOptions: core.ClientOptions{
		Protocol: core.SQS, Address: from.address, Identity: from.identity, Name: from.name(), Unlisted: from.internal,
	}})
}
