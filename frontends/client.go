package frontends

import "broker/core"

// ClientOptions describe the broker's client for a connection.
func ClientOptions(p core.Protocol, c Conn) core.ClientOptions {
	o := core.ClientOptions{Protocol: p, Wake: c.Wake, Close: c.Abort}
	if a := c.RemoteAddr(); a != nil {
		o.Address = a.String()
	}
	return o
}
