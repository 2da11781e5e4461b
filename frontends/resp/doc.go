// Package resp holds the code shared by front-ends that speak RESP, the protocol of Redis. Reader splits the input of a
// connection into commands. Hub passes messages to subscribers and bounds their memory. Credentials checks AUTH. Other
// functions write errors in the words of Redis. The package does not know the commands of the front-ends. They write replies
// with redcon.
package resp
