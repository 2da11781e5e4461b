// Package resp holds the code shared by front-ends that speak RESP, the protocol of Redis. Connection is the common
// part of their sessions: it reads commands, and serves those that Redis libraries send when they connect (AUTH,
// CLIENT, PING, SELECT...). Command is a row of a table of commands, and Find refuses a command in the words of Redis.
// Hub passes messages to subscribers and bounds their memory. The package does not know the commands of the front-ends.
// They write replies with redcon.
package resp
