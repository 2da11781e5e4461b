// Package wire is the client side of the protocols, for what talks to servers as their clients do: imports, cut-overs,
// comparisons and the demonstration. It reads replies with bounded memory and makes greetings; it knows no job and
// keeps no connection. gearman.go has Gearman's packets and text, faktory.go Faktory's greeting, resp.go the values
// that Faktory and Redis reply with, from a connection or from bytes that have arrived, beanstalk.go beanstalkd's
// replies.
//
// frontends/shared/resp reads RESP for servers: requests, which are arrays of strings or lines of words. Faktory's
// requests are lines, which its front-end reads.
package wire
