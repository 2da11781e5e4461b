// Package wire is the client side of the protocols, for what talks to servers as their clients do: imports, cut-overs
// and the demonstration. It reads replies with bounded memory and makes greetings; it knows no job and keeps no
// connection. gearman.go has Gearman's packets and text, faktory.go Faktory's greeting, resp.go the replies of Faktory
// and Redis, beanstalk.go beanstalkd's replies.
//
// RESP is read here for clients, and by frontends/shared/resp for servers: requests are cut from what has arrived, and
// replies are waited for. Faktory's requests are lines, which its front-end reads.
package wire
