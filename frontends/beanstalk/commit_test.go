package beanstalk

import (
	"strings"
	"testing"
)

// A commit wakes the client whose replies depend on it. Had a command asked as another client, nothing would wake the
// connection, and the held answer would wait for the next input.
func TestEachCommandAsksAsTheClientOfItsConnection(t *testing.T) {
	t.Parallel()
	s, calls := setupCounting(t, Options{}, unrestricted)
	c := s.Dial("client")
	c.Send("put 0 0 60 1\r\nx\r\n")
	c.ReadUntil("\r\n")
	opened := calls.opened
	for _, command := range []string{
		"stats", "stats-tube default", "list-tubes", "pause-tube default 0", "pause-tube none 5", "kick 1",
		"peek-ready",
		"peek-delayed", "peek-buried", "stats-job 1", "kick-job 1", "peek 1",
	} {
		c.Send(command + "\r\n")
		line := c.ReadUntil("\r\n")
		if strings.HasPrefix(line, "OK ") || strings.HasPrefix(line, "FOUND ") {
			c.ReadUntil("\r\n")
		}
		if calls.opened != opened {
			t.Errorf("%s opens %d clients", command, calls.opened-opened)
			opened = calls.opened
		}
	}
}

func TestStatsNameTheVersionOfBeanstalkd(t *testing.T) {
	t.Parallel()
	s, _ := setupCounting(t, Options{Version: "a10513ac"}, unrestricted)
	c := s.Dial("client")
	c.Send("stats\r\n")
	c.ReadUntil("\r\n")
	stats := c.ReadUntil("\r\n")
	for _, line := range []string{"\nversion: \"1.12\"\n", "\nbroker-version: \"a10513ac\"\n"} {
		if !strings.Contains(stats, line) {
			t.Errorf("%q is missing in %s", line, stats)
		}
	}
}

func TestSpacesBeforeArguments(t *testing.T) {
	t.Parallel()
	s, _ := setupCounting(t, Options{}, unrestricted)
	c := s.Dial("client")
	for _, step := range [][2]string{
		{"pause-tube  default   5\r\n", "PAUSED\r\n"},
		{"put  0   0 60  1\r\nx\r\n", "INSERTED 1\r\n"},
		{"use  x\r\n", "BAD_FORMAT\r\n"},
	} {
		c.Send(step[0])
		if line := c.ReadUntil("\r\n"); line != step[1] {
			t.Errorf("%q is answered %q, want %q", step[0], line, step[1])
		}
	}
}
