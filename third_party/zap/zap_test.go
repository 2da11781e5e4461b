package zap_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func encoder() zapcore.Encoder {
	c := zap.NewDevelopmentEncoderConfig()
	c.EncodeTime, c.EncodeLevel = zapcore.RFC3339NanoTimeEncoder, zapcore.CapitalLevelEncoder
	return zapcore.NewConsoleEncoder(c)
}

func TestLogsFromALevelOn(t *testing.T) {
	var out bytes.Buffer
	enabled := zap.LevelEnablerFunc(func(l zapcore.Level) bool { return l >= zapcore.WarnLevel })
	l := zap.New(zapcore.NewCore(encoder(), zapcore.Lock(zapcore.AddSync(&out)), enabled), zap.AddCaller())
	l.Sugar().Debugf("too much")
	l.Sugar().Infof("too much")
	l.Sugar().Warnf("%d left", 7)
	l.Sugar().Errorf("none left")
	if err := l.Sync(); err != nil {
		t.Error(err)
	}
	want := regexp.MustCompile(`^20\S+T\S+\tWARN\t7 left\n20\S+T\S+\tERROR\tnone left\n$`)
	if !want.MatchString(out.String()) {
		t.Errorf("logged %q", out.String())
	}
}

func TestSyncReachesTheFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	l := zap.New(zapcore.NewCore(encoder(), zapcore.Lock(f), zapcore.DebugLevel))
	l.Sugar().Debugf("one")
	if err := l.Sync(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Sync(); err == nil {
		t.Error("Sync of a closed file has no error")
	}
	if text, err := os.ReadFile(f.Name()); err != nil || !strings.HasSuffix(string(text), "\tDEBUG\tone\n") {
		t.Errorf("the file has %q, %v", text, err)
	}
}

func TestLevelsHaveNames(t *testing.T) {
	for level, want := range map[zapcore.Level]string{-1: "debug", 0: "info", 5: "fatal", 6: "Level(6)", -2: "Level(-2)"} {
		if got := level.String(); got != want {
			t.Errorf("level %d is called %q, want %q", level, got, want)
		}
	}
}
