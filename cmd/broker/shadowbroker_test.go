package main

import (
	"testing"

	"broker/migrate/wiretap"
)

func TestEveryRecordedProtocolHasAShadowBroker(t *testing.T) {
	t.Parallel()
	for _, protocol := range wiretap.Protocols() {
		b, err := openShadowBroker(protocol)
		if err != nil {
			t.Errorf("%s: %v", protocol, err)
			continue
		}
		b.close()
	}
}
