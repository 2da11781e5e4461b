package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience limits every wait of these tests. It is long because the machine may be busy.
const patience = 2 * time.Minute

// built is the folder of programs; empty until a test needs one.
var built string

// programs is a folder with broker and gearmand, built once for all tests of this package.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "broker-cmd-")
	if err != nil {
		return "", err
	}
	built = dir
	if out, err := exec.Command("../../packaging/program.sh", runtime.GOARCH,
		filepath.Join(dir, "broker")).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return dir, os.Symlink("broker", filepath.Join(dir, "gearmand"))
})

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built) // leftovers in the temporary folder do no harm
	}
	os.Exit(code)
}

func program(t *testing.T, name string) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// nextPort is the number of ports that were tried, from a random one on.
var nextPort = func() *atomic.Int64 {
	var n atomic.Int64
	n.Store(mathrand.Int64N(2000))
	return &n
}()

// freeAddress returns an unused address, below the ports that the kernel uses for outgoing connections and those of the
// integration tests. It returns each once: a test may take its time until its program listens.
func freeAddress(t *testing.T) (address, port string) {
	t.Helper()
	for range 1000 {
		port = strconv.FormatInt(10_000+nextPort.Add(1)%2000, 10)
		address = net.JoinHostPort("127.0.0.1", port)
		if ln, err := net.Listen("tcp", address); err == nil {
			_ = ln.Close() // another process will listen on it
			return address, port
		}
	}
	t.Fatal("no free port")
	return "", ""
}

// gearmanClient implements the part of Gearman that these tests need.
type gearmanClient struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func newGearmanClient(t *testing.T, c net.Conn) *gearmanClient {
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &gearmanClient{t: t, Conn: c, r: bufio.NewReader(c)}
}

// dialGearman retries until the connection succeeds.
func dialGearman(t *testing.T, address string) *gearmanClient {
	t.Helper()
	var c net.Conn
	eventually(t, "listening on "+address, func() bool {
		var err error
		c, err = net.Dial("tcp", address)
		return err == nil
	})
	return newGearmanClient(t, c)
}

// ask sends a text command and returns the first line of the answer.
func (c *gearmanClient) ask(command string) string {
	c.t.Helper()
	if _, err := io.WriteString(c, command+"\n"); err != nil {
		c.t.Fatal(err)
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%s: %v", command, err)
	}
	return strings.TrimSpace(line)
}

// submit sends a background job and returns its handle.
func (c *gearmanClient) submit(function, data string) string {
	c.t.Helper()
	const submitJobBg = 18
	body := function + "\x00\x00" + data
	p := binary.BigEndian.AppendUint32([]byte("\x00REQ"), submitJobBg)
	p = append(binary.BigEndian.AppendUint32(p, uint32(len(body))), body...)
	if _, err := c.Write(p); err != nil {
		c.t.Fatal(err)
	}
	head := make([]byte, 12)
	if _, err := io.ReadFull(c.r, head); err != nil {
		c.t.Fatal(err)
	}
	handle := make([]byte, binary.BigEndian.Uint32(head[8:]))
	if _, err := io.ReadFull(c.r, handle); err != nil {
		c.t.Fatal(err)
	}
	return string(handle)
}

// writeCertificate writes a certificate for 127.0.0.1 and its key into dir.
func writeCertificate(t *testing.T, dir string, serial int64) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "broker"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, text := range map[string][]byte{
		certFile: certPEM, keyFile: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, roots
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

func TestGearmandServesAndStops(t *testing.T) {
	t.Parallel()
	address, port := freeAddress(t)
	pid := filepath.Join(t.TempDir(), "g.pid")
	r := start(t, nil, "gearmand", "-L", "127.0.0.1", "-p", port, "-P", pid, "-l", "stderr", "--job-handle-prefix", "X",
		"--verbose", "INFO")
	c := dialGearman(t, address)
	if got := c.ask("version"); got != "OK 1.1.20" {
		t.Errorf("version: %s", got)
	}
	if got := c.ask("verbose"); got != "OK INFO" {
		t.Errorf("verbose: %s", got)
	}
	if got := c.submit("f", "x"); !strings.HasPrefix(got, "X:") {
		t.Errorf("handle %s", got)
	}
	if text, err := os.ReadFile(pid); err != nil || strings.TrimSpace(string(text)) != strconv.Itoa(r.Process.Pid) {
		t.Errorf("pid file: %q, %v", text, err)
	}
	r.signal(syscall.SIGTERM)
	r.wantExit(0)
	if exists(pid) {
		t.Error("the pid file is still there")
	}
}

func TestGearmandInTheBackground(t *testing.T) {
	t.Parallel()
	address, port := freeAddress(t)
	dir := t.TempDir()
	pid, log := filepath.Join(dir, "g.pid"), filepath.Join(dir, "g.log")
	starter := start(t, nil, "gearmand", "--listen=127.0.0.1", "--port="+port, "--pid-file="+pid, "--daemon",
		"--log-file="+log, "--verbose=INFO")
	starter.wantExit(0)
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || number == starter.Process.Pid {
		t.Fatalf("pid file %q of the starter %d", text, starter.Process.Pid)
	}
	t.Cleanup(func() { _ = syscall.Kill(number, syscall.SIGKILL) }) // it has ended unless the test failed
	if c, err := net.Dial("tcp", address); err != nil {
		t.Errorf("the starter ended before it could be reached: %v", err)
	} else {
		_ = c.Close()
	}
	if err := os.Rename(log, log+".1"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(number, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new log file", func() bool { return exists(log) })
	if err := syscall.Kill(number, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pid file to go", func() bool { return !exists(pid) })
	for _, path := range []string{log, log + ".1"} {
		if text, err := os.ReadFile(path); err != nil || len(text) == 0 {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	eventually(t, "the port to be free", func() bool {
		ln, err := net.Listen("tcp", address)
		if err == nil {
			_ = ln.Close()
		}
		return err == nil
	})
}

func TestGearmandThatCannotStart(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }() // the test is over
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for _, test := range []struct{ args, want string }{
		{"-l stderr -L 127.0.0.1 -p " + port, "127.0.0.1:" + port + ": address already in use"},
		{"-l stderr -L 127.0.0.1 -d -p " + port, "127.0.0.1:" + port + ": address already in use"},
		{"-l stderr -p 0 -q nosuch", "Error while initializing the queue : nosuch"},
		{"-l stderr -p 0 --libsqlite3-db=/dev/null/x -q libsqlite3", "or keep them in memory with --memory"},
		{"-l stderr -p 0 -P /nowhere/g.pid", "Could not open pid file for writing: /nowhere/g.pid"},
		{"-l stderr -p 0 --ssl --ssl-certificate /nowhere/c --ssl-key /nowhere/k", "/nowhere/c"},
	} {
		r := start(t, []string{"BROKER_BIND_RETRY=0s"}, "gearmand", strings.Fields(test.args)...)
		r.wantExit(1)
		if !strings.Contains(r.output.String(), test.want) {
			t.Errorf("%s: %s", test.args, r.output)
		}
	}
}

func TestGearmandKeepsJobsAfterAKill(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]func(dir string) (args, env []string){
		"by default": func(dir string) (args, env []string) { return nil, []string{"BROKER_DATA=" + dir + "/data"} },
		"with a plug-in": func(dir string) (args, env []string) {
			return []string{"-q", "libsqlite3", "--libsqlite3-db=" + dir + "/jobs.db"}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, port := freeAddress(t)
			args, env := queue(t.TempDir())
			args = append([]string{"-l", "stderr", "-L", "127.0.0.1", "-p", port}, args...)
			r := start(t, env, "gearmand", args...)
			c := dialGearman(t, address)
			for range 10 {
				c.submit("kept", "x")
			}
			r.signal(syscall.SIGKILL)
			<-r.done
			if out := r.output.String(); !strings.Contains(out, "own store") ||
				len(env) == 0 && !strings.Contains(out, "--libsqlite3-db") {
				t.Errorf("the log does not say where the jobs are: %s", out)
			}
			r = start(t, env, "gearmand", args...)
			if got := dialGearman(t, address).ask("status"); got != "kept\t10\t0\t0" {
				t.Errorf("after the kill: %q", got)
			}
			r.signal(syscall.SIGTERM)
			r.wantExit(0)
		})
	}
}

func TestGearmandInMemoryLogsItAndMakesNoStore(t *testing.T) {
	t.Parallel()
	address, port := freeAddress(t)
	r := start(t, nil, "gearmand", "-l", "stderr", "-L", "127.0.0.1", "-p", port, "--memory")
	dialGearman(t, address).submit("lost", "x")
	eventually(t, "a word of the memory", func() bool { return strings.Contains(r.output.String(), "in memory only") })
	if exists(filepath.Join(r.Dir, "data")) {
		t.Error("there is a store")
	}
	r.signal(syscall.SIGTERM)
	r.wantExit(0)
}

func TestGearmandSpeaksTLSOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	cert, key, roots := writeCertificate(t, t.TempDir(), 1)
	for name, start := range map[string]func(port string) *startedProgram{
		"options": func(port string) *startedProgram {
			return start(t, nil, "gearmand", "-l", "stderr", "-L", "127.0.0.1", "-p", port, "--ssl", "--ssl-ca-file",
				cert,
				"--ssl-certificate", cert, "--ssl-key", key)
		},
		"environment": func(port string) *startedProgram {
			return start(t, []string{
				"GEARMAND_CA_CERTIFICATE=" + cert, "GEARMAND_SERVER_PEM=" + cert, "GEARMAND_SERVER_KEY=" + key,
			}, "gearmand", "-l", "stderr", "-L", "127.0.0.1", "-p", port, "--ssl")
		},
	} {
		address, port := freeAddress(t)
		r := start(port)
		_ = dialGearman(t, address).Close()
		tc, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := newGearmanClient(t, tc).ask("version"); got != "OK 1.1.20" {
			t.Errorf("%s: %s", name, got)
		}
		plain := dialGearman(t, address)
		if _, err := io.WriteString(plain, "version\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := plain.r.ReadString('\n'); err == nil && strings.HasPrefix(line, "OK") {
			t.Errorf("%s: answered in plain text: %q", name, line)
		}
		r.signal(syscall.SIGTERM)
		r.wantExit(0)
	}
}

func TestGearmandShutsDownGracefully(t *testing.T) {
	t.Parallel()
	address, port := freeAddress(t)
	r := start(t, nil, "gearmand", "-l", "stderr", "-L", "127.0.0.1", "-p", port)
	c := dialGearman(t, address)
	c.submit("f", "x")
	r.signal(syscall.SIGUSR1)
	eventually(t, "no new connections", func() bool {
		other, err := net.Dial("tcp", address)
		if err == nil {
			_ = other.Close()
		}
		return err != nil
	})
	if got := c.ask("status"); got != "f\t1\t0\t0" {
		t.Errorf("the old connection: %q", got)
	}
	if got := c.ask("."); !strings.HasPrefix(got, ".") {
		t.Errorf("end of status: %q", got)
	}
	if got := c.ask("drop function f"); !strings.Contains(got, "OK") && !strings.Contains(got, "ERR") {
		t.Errorf("drop: %q", got)
	}
	r.wantExit(0)
}

func TestGearmandSwitchesUser(t *testing.T) {
	t.Parallel()
	address, port := freeAddress(t)
	args := []string{"-l", "stderr", "-L", "127.0.0.1", "-p", port, "-u", "nobody"}
	dir, err := os.MkdirTemp("", "switches-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })  // leftovers in the temporary folder do no harm
	if err := os.Chmod(dir, 0o755); err != nil { // the other user must be able to enter it
		t.Fatal(err)
	}
	r := start(t, []string{"BROKER_DATA=" + filepath.Join(dir, "new", "data")}, "gearmand", args...)
	if os.Geteuid() != 0 {
		r.wantExit(1)
		if !strings.Contains(r.output.String(), "Must be root to switch users.") {
			t.Errorf("%s", r.output)
		}
		return
	}
	if got := dialGearman(t, address).ask("version"); got != "OK 1.1.20" {
		t.Errorf("version: %s", got)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(status), "\nUid:\t0\t") {
		t.Error("still root")
	}
	r.signal(syscall.SIGTERM)
	r.wantExit(0)
	lost := start(t, nil, "gearmand", "-l", "stderr", "-p", "0", "-u", "no-such-user")
	lost.wantExit(1)
	if !strings.Contains(lost.output.String(), "Could not find user : no-such-user") {
		t.Errorf("%s", lost.output)
	}
}

func TestHUPReloadsCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, _ := writeCertificate(t, dir, 1)
	address, _ := freeAddress(t)
	r := start(t, []string{"BROKER_WORKQ_TLS_CERT=" + cert, "BROKER_WORKQ_TLS_KEY=" + key},
		"broker", "serve", "--durability", "none", "--workq", address, "--gearman", "off", "--faktory", "off", "--http",
		"off")
	serial := func() int64 {
		c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return 0
		}
		defer func() { _ = c.Close() }() // only the certificate is needed
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	eventually(t, "the first certificate", func() bool { return serial() == 1 })
	writeCertificate(t, dir, 2)
	r.signal(syscall.SIGHUP)
	eventually(t, "the second certificate", func() bool { return serial() == 2 })
	if err := os.WriteFile(cert, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.signal(syscall.SIGHUP)
	eventually(t, "a word of the broken certificate", func() bool {
		return strings.Contains(r.output.String(), "failed to reload certificate, keeping the old one")
	})
	r.signal(syscall.SIGTERM)
	r.wantExit(0)
}
