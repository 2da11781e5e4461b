// Package resp is what the front-ends share that speak Redis's protocol, RESP: it cuts commands from the input of a connection
// (Reader), passes messages to subscribers within bounds (Hub), checks AUTH (Credentials), and words refusals as Redis does. It
// knows no command of any front-end. Replies are written with redcon.
package resp
