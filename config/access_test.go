package config

import "testing"

func TestFaktorysPasswordDoesNotOpenHTTP(t *testing.T) {
	t.Parallel()
	for text, locked := range map[string]bool{
		"":                            false,
		"[faktory]\npassword = 'p'\n": true,
		"[faktory]\npassword = 'p'\n[http]\npassword = 'q'\n":                                               false,
		"[faktory]\npassword = 'p'\n[[principal]]\nname = 'a'\nfaktory_password = 'b'\nroles = ['admin']\n": false,
	} {
		c, err := Load(Sources{File: write(t, "broker.toml", text)})
		if err != nil || c.HTTPLocked() != locked || c.HTTP.Password == "p" {
			t.Errorf("%q: locked %v, password %q, %v", text, c.HTTPLocked(), c.HTTP.Password, err)
		}
	}
}
