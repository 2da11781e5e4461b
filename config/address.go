package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Address is an address to listen on.
type Address struct {
	Network string // "tcp" or "unix"
	Address string
}

func (a Address) String() string {
	if a.Network == "unix" {
		return "unix:" + a.Address
	}
	return a.Address
}

// Loopback reports whether only this host can reach the address.
func (a Address) Loopback() bool {
	if a.Network == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(a.Address)
	if err != nil || host == "localhost" {
		return err == nil
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// parse implements parser. An empty text is no address.
func (a *Address) parse(v any) error {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("%v is not a string", v)
	}
	if text == "" {
		*a = Address{}
		return nil
	}
	address, err := parseAddress(text)
	if err == nil && address.Network != "tcp" {
		err = fmt.Errorf("%q is not host:port", text)
	}
	if err == nil {
		*a = address
	}
	return err
}

// Addresses are the addresses of a port; none: the port is off.
type Addresses []Address

func (a Addresses) String() string {
	if len(a) == 0 {
		return "off"
	}
	texts := make([]string, len(a))
	for i, address := range a {
		texts[i] = address.String()
	}
	return strings.Join(texts, ",")
}

// Off reports that nothing listens.
func (a Addresses) Off() bool { return len(a) == 0 }

// Port is the first TCP port; empty: there is none.
func (a Addresses) Port() string {
	for _, address := range a {
		if address.Network == "tcp" {
			_, port, _ := net.SplitHostPort(address.Address) // parsed before
			return port
		}
	}
	return ""
}

// parse implements parser.
func (a *Addresses) parse(v any) error {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("%v is not a string", v)
	}
	all, err := ParseAddresses(text)
	if err == nil {
		*a = all
	}
	return err
}

// ParseAddresses parses a listen setting.
func ParseAddresses(text string) (Addresses, error) {
	if text == "off" {
		return nil, nil
	}
	var all Addresses
	for part := range strings.SplitSeq(text, ",") {
		address, err := parseAddress(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		all = append(all, address)
	}
	return all, nil
}

// tcp is a default address.
func tcp(address string) Addresses { return Addresses{{Network: "tcp", Address: address}} }

// Networks are the networks whose clients may connect; none: all of them.
type Networks []netip.Prefix

func (n Networks) String() string { return strings.Join(n.Texts(), ",") }

// Texts returns each network; one of a single address is written as the address.
func (n Networks) Texts() []string {
	texts := make([]string, len(n))
	for i, p := range n {
		if texts[i] = p.String(); p.IsSingleIP() {
			texts[i] = p.Addr().String()
		}
	}
	return texts
}

// parse implements parser. An address without a prefix length means this single address.
func (n *Networks) parse(v any) error {
	list, err := parseList(v)
	if err != nil {
		return err
	}
	var all Networks
	for _, text := range list {
		if ip, err := netip.ParseAddr(text); err == nil {
			all = append(all, netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("%q is not an address or a network such as 10.1.0.0/16", text)
		}
		all = append(all, p.Masked())
	}
	*n = all
	return nil
}

func parseAddress(text string) (Address, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if path == "" {
			return Address{}, errors.New("unix socket without a path")
		}
		const longest = 107 // the kernel's limit for socket paths
		if len(path) > longest {
			return Address{}, fmt.Errorf("socket path is longer than %d bytes", longest)
		}
		return Address{Network: "unix", Address: path}, nil
	}
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return Address{}, fmt.Errorf("%q is not host:port, unix:/path or off", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return Address{}, fmt.Errorf("port %q is not a number from 0 to 65535", port)
	}
	return Address{Network: "tcp", Address: text}, nil
}
