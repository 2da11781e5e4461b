package gearman

import (
	"strings"

	"broker/frontends/frontendtest"
	"broker/frontends/gearman/packet"
)

// commandNames are the names of the packets and text commands that clients send.
func commandNames() (names []string) {
	for typ, run := range commands {
		if run != nil {
			names = append(names, packet.Type(typ).Layout().Name)
		}
	}
	for _, c := range textCommands {
		names = append(names, c.word)
	}
	return names
}

// packetExchanges are lines for encodeLine. Packets that are early have no answer.
var packetExchanges = []struct {
	before, send string
	early        bool
}{
	{send: "CAN_DO suite"},
	{before: "CAN_DO suite", send: "CANT_DO suite"},
	{before: "CAN_DO suite", send: "RESET_ABILITIES"},
	{before: "CAN_DO suite", send: "PRE_SLEEP"},
	{send: "SUBMIT_JOB suite||x"},
	{before: "CAN_DO suite", send: "GRAB_JOB"},
	{before: "CAN_DO suite\nGRAB_JOB", send: "WORK_STATUS H:host:1|1|2", early: true},
	{before: "CAN_DO suite\nGRAB_JOB", send: "WORK_COMPLETE H:host:1|x", early: true},
	{before: "CAN_DO suite\nGRAB_JOB", send: "WORK_FAIL H:host:1", early: true},
	{send: "GET_STATUS H:host:1"},
	{send: "GET_STATUS H:host:9"},
	{send: "ECHO_REQ x"},
	{send: "SUBMIT_JOB_BG suite||x"},
	{send: "SUBMIT_JOB_HIGH suite||x"},
	{send: "SET_CLIENT_ID x"},
	{send: "CAN_DO_TIMEOUT suite|9"},
	{before: "CAN_DO suite\nGRAB_JOB", send: "WORK_EXCEPTION H:host:1|x", early: true},
	{send: "OPTION_REQ exceptions"},
	{before: "CAN_DO suite\nGRAB_JOB", send: "WORK_DATA H:host:1|x", early: true},
	{before: "CAN_DO suite\nGRAB_JOB", send: "WORK_WARNING H:host:1|x", early: true},
	{before: "CAN_DO suite", send: "GRAB_JOB_UNIQ"},
	{send: "SUBMIT_JOB_HIGH_BG suite||x"},
	{send: "SUBMIT_JOB_LOW suite||x"},
	{send: "SUBMIT_JOB_LOW_BG suite||x"},
	{send: "SUBMIT_JOB_SCHED suite||1|1|1|1|1|x"},
	{send: "SUBMIT_JOB_EPOCH suite||1900000000|x"},
	{send: "SUBMIT_REDUCE_JOB suite||reducer||x"},
	{send: "SUBMIT_REDUCE_JOB_BACKGROUND suite||reducer||x"},
	{before: "CAN_DO suite", send: "GRAB_JOB_ALL"},
	{send: "GET_STATUS_UNIQUE unique-1"},
	{send: "status\n"},
	{send: "prioritystatus\n"},
	{send: "workers\n"},
	{send: "version\n"},
	{send: "verbose\n"},
	{send: "getpid\n"},
	{send: "show jobs\n"},
	{send: "show unique jobs\n"},
	{send: "cancel job H:host:1\n"},
	{send: "create function x\n"},
	{send: "drop function suite\n"},
	{send: "maxqueue suite 9\n"},
	{send: "shutdown\n"},
}

// exchanges are those of the shared suite. An echo follows each packet, because some have no answer.
func exchanges() (all []frontendtest.Exchange) {
	for _, e := range packetExchanges {
		name, _, _ := strings.Cut(strings.TrimSpace(e.send), " ")
		x := frontendtest.Exchange{Command: name, Early: e.early}
		for line := range strings.SplitSeq(e.before, "\n") {
			x.Before += encoded(line)
		}
		x.Send = encoded(e.send)
		if x.Send[0] == 0 {
			x.Send += string(request(packet.EchoReq, "answered"))
		}
		all = append(all, x)
	}
	return all
}

func encoded(line string) string {
	b, err := encodeLine(line)
	if err != nil {
		panic(err)
	}
	return string(b)
}
