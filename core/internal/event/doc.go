// Package event manages subscriptions and delivers events in order. A client gets at most as many events as its buffer
// holds, and the number of dropped ones. It knows clients only by their slots. The machine publishes the events.
package event
