package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/frontends/shared/httpserver"
	"broker/migrate/switchover"
	"broker/migrate/wiretap"
)

const (
	shadowPage     = "127.0.0.1:7430"
	shadowMemory   = 256 // MiB
	shadowSayEvery = 10 * time.Second

	shadowRead  = 10 * time.Second // of a request of its page
	shadowWrite = time.Minute      // of the response
)

// shadowFlags are the flags of broker shadow.
type shadowFlags struct {
	protocol, upstream, listen, http, report string

	to, password, against string

	cutOver, rollBack []string

	memory   uint64 // MiB
	patience time.Duration
}

// shadowCommand compares a server with a broker in memory.
func shadowCommand() *cobra.Command {
	var f shadowFlags
	cmd := &cobra.Command{
		Use:   "shadow --protocol NAME --upstream HOST:PORT --listen HOST:PORT",
		Short: "run a proxy in front of another server, and compare its replies with the broker's",
		Long: "Pass all bytes between clients and their server unchanged, send the same requests to a broker in memory, and compare the\n" +
			"replies. Clients only see the replies of their server. If the comparison falls behind, it skips requests and starts\n" +
			"anew; if it fails, clients are still served. The last line is about jobs: those that only one of both delivered. Prints\n" +
			"differences and counts, and serves them as a page (--http) and as JSON (/report there). The protocols are\n" +
			strings.Join(wiretap.Protocols(), ", ") + ".\n\n" +
			"With --to, queues of " + strings.Join(switchover.Protocols(), ", ") +
			" can be cut over to a broker while clients work, and\n" +
			"rolled back: broker shadow cut-over QUEUE, or broker shadow --cut-over QUEUE, changes the shadow that runs on this machine.",
		Example: "  broker shadow --protocol gearman --upstream old-host:4730 --listen :4730 --report shadow.json\n" +
			"  broker shadow --protocol gearman --upstream old-host:4730 --listen :4730 --to 127.0.0.1:4740",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.protocol, "protocol", "", "protocol of the clients and the server")
	flags.StringVar(&f.upstream, "upstream", "", "`HOST:PORT` of the server")
	flags.StringVar(&f.listen, "listen", "", "`HOST:PORT` for the clients")
	flags.StringVar(&f.http, "http", shadowPage, "`HOST:PORT` of the page, or off")
	flags.StringVar(&f.report, "report", "",
		"write the report to `FILE` as JSON, and to FILE.html as a page, every ten seconds and at the end")
	flags.Uint64Var(&f.memory, "memory", shadowMemory,
		"`MIB` of memory for the jobs of the broker in memory, above which the comparison starts anew")
	flags.DurationVar(&f.patience, "patience", wiretap.DefaultPatience,
		"time in which a server must reply: then a reply or job that only one has given is a difference, and the broker of --to lost")
	flags.StringVar(&f.against, "against", "",
		"the way back: --upstream is a broker; compare it with the empty old server at `HOST:PORT`")
	flags.StringVar(&f.to, "to", "", "`HOST:PORT` of the broker to which queues can be cut over")
	flags.StringVar(&f.password, "to-password", "", "the broker's `PASSWORD` for Faktory; also FAKTORY_PASSWORD")
	flags.StringSliceVar(&f.cutOver, "cut-over", nil,
		"with --to: cut these `QUEUES` over from the start, separated by commas; alone: of the running shadow")
	flags.StringSliceVar(&f.rollBack, "roll-back", nil,
		"with --to: `QUEUES` of which the broker may still have jobs; alone: roll back queues of the running shadow")
	flags.SortFlags = false
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.protocol+f.upstream+f.listen+f.to == "" && len(f.cutOver)+len(f.rollBack) > 0 {
			return changeShadow(cmd, &f)
		}
		if err := f.check(); err != nil {
			return cli.UsageError(err)
		}
		return cli.Failed(runShadow(cmd, &f))
	}
	cmd.AddCommand(cli.ShadowCommands(shadowPage)...)
	return cmd
}

// check validates the flags of a new shadow.
func (f *shadowFlags) check() error {
	for _, flag := range []struct{ name, value string }{
		{"protocol", f.protocol}, {"upstream", f.upstream}, {"listen", f.listen},
	} {
		if flag.value == "" {
			return fmt.Errorf("--%s is required", flag.name)
		}
	}
	if f.patience <= 0 {
		return errors.New("--patience must be above zero")
	}
	f.protocol = wiretap.ProtocolNamed(f.protocol)
	if err := wiretap.CheckProtocol(f.protocol); err != nil {
		return err
	}
	if err := cli.CheckAddress("upstream", f.upstream); err != nil {
		return err
	}
	switch {
	case f.against != "" && f.to != "":
		return errors.New("--against and --to exclude each other")
	case f.against != "":
		return cli.CheckAddress("against", f.against)
	case f.to != "":
		return errors.Join(cli.CheckAddress("to", f.to), switchover.CheckProtocol(f.protocol))
	case len(f.cutOver) > 0:
		return errors.New("--cut-over needs --to")
	case len(f.rollBack) > 0:
		return errors.New("--roll-back needs --to")
	}
	return nil
}

// changeShadow changes queues of the shadow that runs.
func changeShadow(cmd *cobra.Command, f *shadowFlags) error {
	for _, change := range []struct {
		action string
		queues []string
	}{{switchover.ActionCutOver, f.cutOver}, {switchover.ActionRollBack, f.rollBack}} {
		if len(change.queues) == 0 {
			continue
		}
		if err := cli.ChangeShadow(cmd, f.http, change.action, change.queues); err != nil {
			return err
		}
	}
	return nil
}

// runShadow serves until a signal.
func runShadow(cmd *cobra.Command, f *shadowFlags) (err error) {
	out := cmd.OutOrStdout()
	ln, err := net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	defer func() { _ = ln.Close() }() // closed already, but after an error
	compare, closeSecond, err := openComparer(f, out)
	if err != nil {
		return err
	}
	defer closeSecond()
	defer compare.Close()
	switches, err := openSwitch(f, compare, out)
	if err != nil {
		return err
	}
	stopPage, err := serveShadowPage(f, compare, switches, out)
	if err != nil {
		return err
	}
	defer stopPage()
	if err := writeShadowReport(f.report, compare); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { _ = ln.Close() }) // ends Serve
	var watch sync.WaitGroup
	watch.Go(func() { watchShadow(ctx, compare, closeSecond, out, f) })
	cli.Say(out, "%s clients at %s, their server at %s\nready\n", f.protocol, ln.Addr(), f.upstream)
	proxy := wiretap.Proxy{
		Server: f.upstream, Watcher: compare,
		Unreachable: func(err error) { cli.Say(out, "the server cannot be reached: %v\n", err) },
		Restarted:   func() { compare.Anew("the server was restarted") },
	}
	if switches != nil {
		proxy.Join = switches.Join
	}
	err = proxy.Serve(ln)
	watch.Wait()
	report := compare.Finish()
	cli.Say(out, "%s\n%s\n", report.Summary(), report.Verdict())
	return errors.Join(err, writeShadowReport(f.report, compare))
}

// openComparer starts the comparison with a broker in memory, or with another server. closeSecond ends that broker.
func openComparer(f *shadowFlags, out io.Writer) (c *wiretap.Comparer, closeSecond func(), err error) {
	o := wiretap.Options{
		Protocol: f.protocol, Server: f.upstream, Patience: f.patience,
		Different: func(d wiretap.Difference) { cli.Say(out, "%s\n", d.String()) },
		Gap:       func(g wiretap.Gap) { cli.Say(out, "%s\n", g.String()) },
	}
	if f.against != "" {
		var dialer net.Dialer
		o.Server, o.Reversed, o.Dial = f.against, true, func(ctx context.Context) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", f.against)
		}
		c, err = wiretap.NewComparer(o)
		return c, func() {}, err
	}
	broker, err := openShadowBroker(f.protocol)
	if err != nil {
		return nil, nil, err
	}
	o.Dial, o.Renew = broker.dial, broker.renew
	if c, err = wiretap.NewComparer(o); err != nil {
		broker.close()
	}
	return c, broker.close, err
}

// openSwitch prepares for queues to be cut over. Without a broker it is nil.
func openSwitch(f *shadowFlags, compare *wiretap.Comparer, out io.Writer) (*switchover.Switch, error) {
	if f.to == "" {
		return nil, nil
	}
	s, err := switchover.NewSwitch(switchover.Options{
		Protocol: f.protocol, Server: f.upstream, Broker: f.to, Patience: f.patience,
		Password: cmp.Or(f.password, os.Getenv("FAKTORY_PASSWORD")),
		Changed: func(queues []string, to switchover.State) {
			compare.Drop("queues were cut over")
			what := "cut over"
			if to == switchover.Returned {
				what = "rolled back"
			}
			cli.Say(out, "queues %s: %s\n", what, strings.Join(queues, ", "))
		},
	})
	if err == nil && len(f.cutOver)+len(f.rollBack) > 0 {
		err = s.CutOver(slices.Concat(f.cutOver, f.rollBack)...)
	}
	if err == nil && len(f.rollBack) > 0 {
		err = s.RollBack(f.rollBack...)
	}
	return s, err
}

// serveShadowPage serves the page until stop is called.
func serveShadowPage(
	f *shadowFlags, compare *wiretap.Comparer, switches *switchover.Switch, out io.Writer,
) (stop func(), err error) {
	if f.http == "off" {
		return func() {}, nil
	}
	ln, err := net.Listen("tcp", f.http)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	wiretap.ServePages(mux, compare.Report)
	switches.Serve(mux)
	server := httpserver.New(mux, shadowRead, shadowWrite)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(ln) // until it is closed
	}()
	cli.Say(out, "the comparison is at http://%s/\n", ln.Addr())
	return func() { _ = server.Close(); <-done }, nil
}

// watchShadow prints counts and writes the report periodically, and enforces the memory limit.
func watchShadow(ctx context.Context, compare *wiretap.Comparer, closeSecond func(), out io.Writer, f *shadowFlags) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	jobs := newHeapGrowth()
	last, said := uint64(0), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-compare.Ended():
			r := compare.Report()
			closeSecond()
			if r.Dropped != "" {
				cli.Say(out, "%s; clients are served on\n", r.Summary())
				reportShadow(f.report, compare, out)
			}
			return
		case <-tick.C:
		}
		if jobs.above(f.memory<<20 + uint64(compare.Behind())) {
			compare.Anew(fmt.Sprintf("the jobs of the broker in memory took more than %d MiB", f.memory))
		}
		if r := compare.Report(); r.Requests > last && time.Since(said) >= shadowSayEvery {
			last, said = r.Requests, time.Now()
			cli.Say(out, "%s\n%s\n", r.Summary(), r.Verdict())
			reportShadow(f.report, compare, out)
		}
	}
}

// heapGrowth measures the memory that the program has come to need since its start.
type heapGrowth struct {
	samples []metrics.Sample // with what is garbage already, and without
	base    uint64           // bytes in use at the start
}

func newHeapGrowth() *heapGrowth {
	h := &heapGrowth{samples: []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"},
	}}
	h.base = h.live()
	return h
}

// live returns the bytes in use.
func (h *heapGrowth) live() uint64 {
	runtime.GC() // the metric is of the last collection
	metrics.Read(h.samples)
	return h.samples[1].Value.Uint64()
}

// above reports whether the growth is above a limit. It collects garbage only if that decides.
func (h *heapGrowth) above(limit uint64) bool {
	metrics.Read(h.samples)
	limit += h.base
	return h.samples[0].Value.Uint64() > limit && h.live() > limit
}

// reportShadow writes the report while clients are served. A failure is only printed.
func reportShadow(path string, compare *wiretap.Comparer, out io.Writer) {
	if err := writeShadowReport(path, compare); err != nil {
		cli.Say(out, "the report cannot be written: %v\n", err)
	}
}

// writeShadowReport writes both files.
func writeShadowReport(path string, compare *wiretap.Comparer) error {
	if path == "" {
		return nil
	}
	r := compare.Report()
	text, err := json.MarshalIndent(&r, "", "  ")
	if err != nil {
		return err
	}
	page, err := r.Page(false)
	if err != nil {
		return err
	}
	return errors.Join(replaceFile(path, append(text, '\n')), replaceFile(path+".html", page))
}

// replaceFile writes a file so that readers see the old or the new content.
func replaceFile(path string, content []byte) error {
	part := path + ".part"
	if err := os.WriteFile(part, content, 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}
