package console

import (
	"testing"

	"broker/operate/service"
)

func TestSearchesAreCompleted(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, queue := range []string{"mail", "email", "two words"} {
		if _, err := f.service.Submit(t.Context(), f.caller, []service.Submission{{Queue: queue}},
			service.SubmitOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for asked, want := range map[string]string{
		"q=err":                     `["error:"]`,
		"q=state:dead+qu":           `["state:dead queue:"]`,
		"q=queue:mai":               `["queue:email","queue:mail"]`,
		"q=text+queue:two":          `["text queue:\"two words\""]`,
		"q=state:de":                `["state:dead"]`,
		"q=nosuch:x":                `[]`,
		"q=%22an+open+quote+queue:": `[]`,
		"q=mail":                    `[]`,
		"jump=yes&q=mail":           `["email","mail"]`,
		"jump=yes&q=state:dead+ma":  `[]`,
	} {
		if got := f.get("/complete?" + asked); got != want {
			t.Errorf("%s: got %s, want %s", asked, got, want)
		}
	}
}
