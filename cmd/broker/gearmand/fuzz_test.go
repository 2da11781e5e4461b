package gearmand

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// FuzzGearmandArguments: no command line makes the parser panic, and accepted options are accepted again when each is
// written with its long name and its argument in the next word.
func FuzzGearmandArguments(f *testing.F) {
	for _, seed := range []string{
		"-d -p 4731 -l stderr", "-Rp4731", "--port=1 --port=2", "--verbose=INFO\n# no option\n--threads 4", "-p=5",
		"--", "-- x", "-", "--ssl=1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = parse(configFileArgs(text), func(string) {}) // as in a file; it must not panic
		o, err := parse(strings.Split(text, " "), nil)
		if err != nil || o.check() != nil {
			return
		}
		var words []string
		for _, name := range slices.Sorted(maps.Keys(o)) {
			words = append(words, "--"+name)
			if option, _ := findOption(func(o option) bool { return o.long == name }); option.arg != "" {
				words = append(words, o[name])
			}
		}
		again, err := parse(words, nil)
		if err != nil || !maps.Equal(o, again) {
			t.Errorf("%q: %v, written anew %q: %v, %v", text, o, words, again, err)
		}
		for _, name := range []string{"threads", "job-retries", "worker-wakeup"} {
			o.number(name) // check has validated it
		}
	})
}
