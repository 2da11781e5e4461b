package httpapi

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"broker/core"
)

// A job of any protocol must match the API document, and filters must accept the protocol's name.
func TestDescriptionListsAllProtocols(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	lists := 0
	eachEnum(document, func(values []string) {
		if !slices.Contains(values, core.Gearman.String()) {
			return
		}
		lists++
		for _, name := range core.ProtocolNames() {
			if !slices.Contains(values, name) {
				t.Errorf("%v lacks %s", values, name)
			}
		}
	})
	if lists < 4 {
		t.Errorf("%d lists of protocols were found", lists)
	}
}

// eachEnum calls fn for every list of allowed values.
func eachEnum(of any, fn func([]string)) {
	switch of := of.(type) {
	case map[string]any:
		for key, value := range of {
			if values, ok := value.([]any); ok && key == "enum" {
				var names []string
				for _, v := range values {
					if name, text := v.(string); text {
						names = append(names, name)
					}
				}
				fn(names)
			}
			eachEnum(value, fn)
		}
	case []any:
		for _, value := range of {
			eachEnum(value, fn)
		}
	}
}
