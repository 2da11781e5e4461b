// Package service is the broker as people and programs see it over HTTP: blocking calls with a context over
// [core.Broker], with the rights of the caller checked, changes durable before they return, and an audit log of who
// changed what. The HTTP API, the web pages and other front-ends that are not sessions on the event loop share it.
//
// Every call takes a [Caller]. Errors that are the caller's to know are [*Error] with a stable code; any other error is
// a fault of the broker. The types with JSON tags (Job, Queue, …) are the shapes of the HTTP API and of the command line.
package service
