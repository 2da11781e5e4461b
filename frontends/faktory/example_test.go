package faktory_test

import (
	"fmt"

	"broker/access"
	"broker/core"
	"broker/core/engine"
	"broker/frontends"
	"broker/frontends/faktory"
)

// The event loop calls the front-end. The HTTP API reads INFO and the list of workers from it.
func ExampleNew() {
	broker, err := engine.Open(engine.Options{Durability: engine.None})
	if err != nil {
		panic(err)
	}
	defer broker.Shutdown() //nolint:errcheck // nothing is stored
	front := faktory.New(access.Unrestricted(broker, core.Faktory), faktory.Options{Options: frontends.Options{
		Password:  "secret",
		Namespace: "ruby.", // FETCH mail leases from the core's queue ruby.mail
	}})
	fmt.Println(front.Name(), len(front.Workers()), len(front.Info()) > 0)
	// Output: faktory 0 true
}
