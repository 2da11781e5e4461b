package beanstalk

import "broker/frontends/frontendtest"

// exchanges are those of the shared suite.
var exchanges = []frontendtest.Exchange{
	{Command: "put", Send: "put 0 0 60 1\r\nx\r\n"},
	{Command: "peek", Send: "peek 1\r\n"},
	{Command: "peek", Send: "peek 9\r\n"},
	{Command: "peek-ready", Before: "use suite\r\n", Send: "peek-ready\r\n"},
	{Command: "peek-delayed", Before: "use suite\r\n", Send: "peek-delayed\r\n"},
	{Command: "peek-buried", Before: "use suite\r\n", Send: "peek-buried\r\n"},
	{Command: "reserve", Before: "watch suite\r\n", Send: "reserve\r\n"},
	{Command: "reserve-with-timeout", Before: "watch suite\r\n", Send: "reserve-with-timeout 0\r\n"},
	{Command: "reserve-job", Send: "reserve-job 1\r\n"},
	{Command: "reserve-job", Send: "reserve-job 9\r\n"},
	{Command: "delete", Send: "delete 1\r\n"},
	{Command: "delete", Send: "delete 9\r\n"},
	{Command: "release", Before: "reserve-job 1\r\n", Send: "release 1 0 0\r\n"},
	{Command: "bury", Before: "reserve-job 1\r\n", Send: "bury 1 0\r\n"},
	{Command: "touch", Before: "reserve-job 1\r\n", Send: "touch 1\r\n"},
	{Command: "use", Send: "use suite\r\n"},
	{Command: "watch", Send: "watch suite\r\n"},
	{Command: "ignore", Before: "watch suite\r\n", Send: "ignore default\r\n"},
	{Command: "kick", Before: "use suite\r\nreserve-job 1\r\nbury 1 0\r\n", Send: "kick 1\r\n"},
	{Command: "kick-job", Before: "reserve-job 1\r\nbury 1 0\r\n", Send: "kick-job 1\r\n"},
	{Command: "stats", Send: "stats\r\n"},
	{Command: "stats-job", Send: "stats-job 1\r\n"},
	{Command: "stats-tube", Send: "stats-tube suite\r\n"},
	{Command: "list-tubes", Send: "list-tubes\r\n"},
	{Command: "list-tube-used", Send: "list-tube-used\r\n"},
	{Command: "list-tubes-watched", Send: "list-tubes-watched\r\n"},
	{Command: "pause-tube", Send: "pause-tube suite 5\r\n"},
	{Command: "pause-tube", Send: "pause-tube suite 0\r\n"},
	{Command: "quit", Send: "quit\r\n"},
}
