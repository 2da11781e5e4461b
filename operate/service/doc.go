// Package service offers the broker as blocking calls with a context, on top of [core.Broker]. It checks the rights of
// the caller, makes changes durable before it returns, and keeps an audit log. The HTTP API and the web pages share it.
//
// Every call takes a [Caller]. Errors for the caller are [*Error] with a stable code. Any other error is a fault of the
// broker. The types with JSON tags (Job, Queue, …) define the format of the HTTP API and of the command line.
package service
