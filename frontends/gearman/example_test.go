package gearman_test

import (
	"fmt"
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
	"broker/frontends/gearman"
)

// A front-end on a broker, and a client that sends text commands.
func ExampleNew() {
	stage := frontendtest.Open(new(testing.T), func(b core.Broker) frontends.Frontend {
		return gearman.New(access.Unrestricted(b, core.Gearman), gearman.Options{Version: "1.1.20", JobRetries: 3})
	}, frontendtest.InMemory)
	client := stage.Dial("operator")
	client.Send("create function resize\r\nstatus\r\n")
	fmt.Printf("%q\n", client.ReadUntil(".\n"))
	// Output: "OK\r\nresize\t0\t0\t0\n.\n"
}
