package main

import (
	"testing"

	"broker/migrate/wiretap"
)

func TestEveryRecordedProtocolHasAShadowFrontend(t *testing.T) {
	t.Parallel()
	for _, protocol := range wiretap.Protocols() {
		if shadowFrontends[protocol] == nil {
			t.Errorf("%s has none", protocol)
		}
	}
}
