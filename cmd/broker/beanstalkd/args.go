package beanstalkd

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// options are the parsed options of the command line.
type options struct {
	listen  string
	port    string
	data    string // -b; empty: jobs are kept in memory
	syncMS  int    // -f; 0: each write is synced; below zero: never (-F)
	maxBody uint64
	user    string
	verbose int
	version bool
	help    bool
	warn    []string // options without an effect
}

// maxBodyBytes is the largest -z.
const maxBodyBytes = 1 << 30

// defaults are beanstalkd's defaults.
func defaults() options {
	return options{listen: "0.0.0.0", port: "11300", syncMS: 50, maxBody: 65_535}
}

// parse reads the options like beanstalkd: letters combine, and a value may be attached to its letter or be the next
// word.
func parse(args []string) (options, error) {
	o := defaults()
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		if len(word) < 2 || word[0] != '-' {
			return o, fmt.Errorf("unknown argument: %s", word)
		}
		for letters := word[1:]; letters != ""; {
			letter := letters[0]
			letters = letters[1:]
			if o.flag(letter) {
				continue
			}
			if !strings.ContainsRune("lpbfzsu", rune(letter)) {
				return o, fmt.Errorf("unknown flag: -%c", letter)
			}
			value := letters
			if letters = ""; value == "" {
				if len(args) == 0 {
					return o, fmt.Errorf("flag requires an argument: -%c", letter)
				}
				value, args = args[0], args[1:]
			}
			if err := o.set(letter, value); err != nil {
				return o, err
			}
		}
	}
	return o, nil
}

// flag sets an option without a value. It returns false if the option is unknown or needs a value.
func (o *options) flag(letter byte) bool {
	switch letter {
	case 'F':
		o.syncMS = -1
	case 'V':
		o.verbose++
	case 'v':
		o.version = true
	case 'h':
		o.help = true
	case 'c', 'n':
		o.warn = append(o.warn, fmt.Sprintf("-%c flag was removed, it has no effect", letter))
	default:
		return false
	}
	return true
}

// set sets an option with a value.
func (o *options) set(letter byte, value string) error {
	number := func(limit uint64) (uint64, error) {
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil || n > limit {
			return 0, fmt.Errorf("invalid size: %s", value)
		}
		return n, nil
	}
	var err error
	var n uint64
	switch letter {
	case 'l':
		o.listen = value
	case 'p':
		if n, err = number(math.MaxUint16); err == nil {
			o.port = strconv.FormatUint(n, 10)
		}
	case 'b':
		o.data = value
	case 'f':
		if n, err = number(math.MaxInt32); err == nil {
			o.syncMS = int(n)
		}
	case 'z':
		if n, err = number(math.MaxUint32); err == nil {
			if o.maxBody = n; n > maxBodyBytes {
				o.maxBody = maxBodyBytes
				o.warn = append(o.warn, "maximum job size was set to 1073741824")
			}
		}
	case 's':
		_, err = number(math.MaxUint64) // the store decides
	case 'u':
		o.user = value
	}
	return err
}
