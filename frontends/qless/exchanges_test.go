package qless

import (
	"strings"

	"broker/frontends/frontendtest"
)

const (
	popJob   = "pop 1 suite w 1"
	recurJob = "recur 1 suite r K {} interval 60 0"
)

// exchangeLines are the commands of the exchanges, one on each line. A line that starts with an operation of the script
// calls it.
var exchangeLines = []string{
	"put 1 me suite job-9 K {} 0",
	"requeue 1 me suite job-1 K {} 0",
	"get 1 job-1",
	"get 1 job-9",
	"multiget 1 job-1",
	popJob,
	"pop 1 none w 1",
	"peek 1 suite 1",
	popJob + "\ncomplete 1 job-1 w suite {}",
	popJob + "\ncomplete 1 job-1 w suite {} next suite",
	popJob + "\nfail 1 job-1 w group message",
	popJob + "\nretry 1 job-1 suite w 0",
	popJob + "\nheartbeat 1 job-1 w",
	popJob + "\ntimeout 1 job-1",
	"cancel 1 job-1",
	"put 1 me suite job-9 K {} 0 depends [\"job-1\"]\ndepends 1 job-9 off all",
	"priority 1 job-1 5",
	"tag 1 add job-1 x",
	"track 1 track job-1",
	"failed 1",
	popJob + "\nfail 1 job-1 w group message\nunfail 1 suite group",
	popJob + "\njobs 1 running suite",
	"queues 1",
	"length 1 suite",
	"pause 1 suite",
	"pause 1 suite\nunpause 1 suite",
	"queue.forget 1 suite",
	popJob + "\nworker.deregister 1 w",
	"stats 1 suite 1",
	"workers 1",
	"config.get 1",
	"config.set 1 heartbeat 20",
	"config.set 1 heartbeat 20\nconfig.unset 1 heartbeat",
	"log 1 job-1 message",
	recurJob,
	recurJob + "\nrecur.get 1 r",
	recurJob + "\nunrecur 1 r",
	recurJob + "\nrecur.update 1 r interval 5",
	recurJob + "\nrecur.tag 1 r x",
	recurJob + "\nrecur.untag 1 r x",
	"evalsha " + scriptSHA + " 0 length 1 suite",
	"eval x 0",
	"script exists " + scriptSHA,
	"subscribe x",
	"unsubscribe",
	"psubscribe x",
	"punsubscribe",
	"publish x y",
	"ping",
	"echo x",
	"info",
	"multi",
	"multi\nevalsha " + scriptSHA + " 0 put 1 me suite job-9 K {} 0\nexec",
	"multi\ndiscard",
	"zcard ql:queues",
	"zscore ql:queues suite",
	"hello",
	"client id",
	"select 0",
	"auth x",
	"flushdb",
	"quit",
	"reset",
}

// exchanges are those of the shared suite.
func exchanges() (all []frontendtest.Exchange) {
	for _, lines := range exchangeLines {
		var x frontendtest.Exchange
		for line := range strings.Lines(lines) {
			words := strings.Fields(line)
			x.Before += x.Send
			x.Command = words[0]
			if _, operation := commands[words[0]]; operation {
				words = append([]string{"EVALSHA", scriptSHA, "0"}, words...)
			}
			x.Send = string(request(words...))
		}
		all = append(all, x)
	}
	return all
}
