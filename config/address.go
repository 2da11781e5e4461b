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

// ParseAllow parses an allow setting. An address without a prefix length means this single address.
func ParseAllow(list []string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, text := range list {
		if ip, err := netip.ParseAddr(text); err == nil {
			prefixes = append(prefixes, netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not an address or a network such as 10.1.0.0/16", text)
		}
		prefixes = append(prefixes, p.Masked())
	}
	return prefixes, nil
}

// ParseListen parses a listen setting; off has no addresses.
func ParseListen(text string) ([]Address, error) {
	if text == "off" {
		return nil, nil
	}
	var addresses []Address
	for part := range strings.SplitSeq(text, ",") {
		a, err := parseAddress(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, a)
	}
	return addresses, nil
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
