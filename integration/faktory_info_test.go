package integration_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"broker/integration/harness"
	"broker/integration/server"
)

func TestFaktoryInfoReportsResidentMemory(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t) // the reference server counts the memory of Redis
	b := start(t)
	c := dialFaktory(t, b)
	harness.Eventually(t, func() string { // both values are read at different times
		told := int64(fktState(t, c).Server.UsedMemoryMB)
		resident, err := server.ResidentBytes(b.PID())
		check(t, err)
		if mb := resident >> 20; told < mb-8 || told > mb+8 {
			return "INFO's number is far from what the kernel says"
		}
		return ""
	})
}

// TestFaktoryStatsAreInfo: GET /stats has the members of INFO, in the same order and with the same types.
func TestFaktoryStatsAreInfo(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	c := dialFaktory(t, b)
	check(t, c.Push(fktJob("told", 1)))
	l := linkFaktory(t, b)
	_, err := l.conn.Write([]byte("INFO\r\n"))
	check(t, err)
	info := l.reply()
	status, stats, err := b.Get("/stats")
	check(t, err)
	equal(t, "status", status, 200)
	equal(t, "shape", shapeOf(t, stats), shapeOf(t, info))
}

// shapeOf is a JSON text with its values replaced by their types.
func shapeOf(t testing.TB, text string) string {
	t.Helper()
	var shape strings.Builder
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return shape.String()
		}
		check(t, err)
		switch v := token.(type) {
		case json.Delim:
			shape.WriteString(v.String())
		case float64:
			shape.WriteString("number ")
		case string:
			if strings.ContainsAny(v, ":") { // a time
				v = "time"
			}
			shape.WriteString(v + " ")
		}
	}
}
