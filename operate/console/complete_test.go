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

		"preview=filter&q=state:asleep":                     `["state: \"asleep\" is not one of scheduled, blocked, ready, leased, retrying, done, dead"]`,
		"preview=filter&q=state:dead&queue=mail":            `null`,
		"preview=filter&q=&created_from=yesterday":          `["created from: \"yesterday\" is not a time such as 2026-01-31T14:05, or a span such as 90m or 2d"]`,
		"preview=limit&rate=fast":                           `["rate_per_s must be a number a second, 0 to 1000000"]`,
		"preview=share&key=tag":                             `["name the tag that holds the key, such as tenant for tenant:acme"]`,
		"preview=share&key=tag&tag=t&weights=a":             `["\"a\" is not a key, = and its turns, such as acme = 3"]`,
		"preview=share&key=tag&tag=t&mode=fair&weights=a=3": `null`,
		"preview=job&max_fails=-1":                          `["\"-1\" is not a number of failures"]`,
		"preview=job&max_fails=3&priority=-7":               `null`,
		"preview=submit&cost=-1":                            `["\"-1\" is not a number of 0 or more"]`,
		"preview=submit&unique_until=window":                `["on_duplicate, unique_for_s and unique_until need unique_key"]`,
		"preview=submit&unique_key=k&cost=2":                `null`,
		"preview=policy&lease_for=90s":                      `null`,
		"preview=policy&lease_for=long":                     `["\"long\" is not a time such as 90s, 15m or 2d"]`,
	} {
		if got := f.get("/complete?" + asked); got != want {
			t.Errorf("%s: got %s, want %s", asked, got, want)
		}
	}
}
