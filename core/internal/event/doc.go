// Package event knows who has subscribed to which events, and delivers them: in order, at most as many as a client has room for, and with
// the number of those that it missed. It knows clients by their slots only. The machine says what happens.
package event
