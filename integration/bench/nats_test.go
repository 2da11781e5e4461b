package main

import "testing"

func TestMessagesOfNATSAreReadPieceByPiece(t *testing.T) {
	t.Parallel()
	const input = "INFO {\"a\":1}\r\nPING\r\nMSG _INBOX.7 1 $JS.ACK.x 5\r\nhello\r\nMSG _INBOX.8 2 0\r\n\r\n" +
		"HMSG _INBOX.7 1 16 16\r\nNATS/1.0 404\r\n\r\n\r\n"
	want := []struct {
		kind           natsKind
		headers        bool
		reply, payload string
	}{
		{natsOther, false, "", ""},
		{natsPing, false, "", ""},
		{natsMessage, false, "$JS.ACK.x", "hello"},
		{natsMessage, false, "", ""},
		{natsMessage, true, "", "NATS/1.0 404\r\n\r\n"},
	}
	used := 0
	for i, end := 0, 0; i < len(want); {
		m, err := nextNATS([]byte(input[used:end]))
		if err != nil {
			t.Fatal(err)
		}
		if m.size == 0 {
			if end++; end > len(input) {
				t.Fatalf("message %d is incomplete", i)
			}
			continue
		}
		if w := want[i]; m.kind != w.kind || m.headers != w.headers || string(m.reply) != w.reply ||
			string(m.payload) != w.payload {
			t.Errorf("message %d is %+v, want %+v", i, m, w)
		}
		used += m.size
		i++
	}
	if used != len(input) {
		t.Errorf("%d of %d bytes", used, len(input))
	}
	if _, err := nextNATS([]byte("-ERR 'Authorization Violation'\r\n")); err == nil {
		t.Error("an error of the server is taken for a message")
	}
}
