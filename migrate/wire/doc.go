// Package wire is the client side of the protocols, for what talks to servers as their clients do: imports, cut-overs
// and the demonstration. It reads replies with bounded memory and makes greetings; it knows no job and keeps no
// connection. gearman.go has Gearman's packets and text, faktory.go Faktory's replies and greeting, beanstalk.go
// beanstalkd's replies.
package wire
