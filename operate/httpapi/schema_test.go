package httpapi

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"broker/core/schema"
)

// TestDescriptionHasTheSettings compares the description of the API with the settings of policies and limits.
func TestDescriptionHasTheSettings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Description string   `json:"description"`
					Maximum     float64  `json:"maximum"`
					Enum        []string `json:"enum"`
				} `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for name, rows := range map[string][]schema.Row{
		"Policy": schema.PolicyRows, "Throttle": schema.ThrottleRows, "ThrottleChange": schema.ThrottleRows,
		"Limit": schema.ThrottleRows, "LimitSpec": schema.ThrottleRows,
	} {
		members := document.Components.Schemas[name].Properties
		for _, r := range rows {
			m, there := members[r.Name]
			if !there || m.Description != r.Help || m.Maximum != r.High || !slices.Equal(m.Enum, r.Words) {
				t.Errorf("%s.%s is described as %+v, want %+v", name, r.Name, m, r)
			}
			delete(members, r.Name)
		}
		if name == "Throttle" || name == "ThrottleChange" || name == "Policy" {
			delete(members, "from_config")
			if len(members) > 0 {
				t.Errorf("%s has more members: %v", name, slices.Sorted(maps.Keys(members)))
			}
		}
	}
}
