package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// settings are the values of the flags.
type settings struct {
	rounds, jobs int
	modes        []string
	groups       []string
	durabilities []string
	dir          string
	before       string         // an earlier program of the broker, which takes part as a peer
	servers      *regexp.Regexp // names of the contenders that take part; nil: all

	deep, queues, scheduled, keys, payloads, sleepers numbers
	idle, wakes, polls, fan                           int
}

func main() {
	serveSelf()
	var s settings
	var letters, names, durabilities string
	flag.IntVar(&s.rounds, "rounds", 3, "how often each measurement is taken")
	s.jobs = 200_000
	flag.Var((*number)(&s.jobs), "jobs", "jobs a measurement; some modes and slow peers take a part of them")
	flag.StringVar(&letters, "modes", "a,b,c,d,w,e", "which loads to run")
	flag.StringVar(&names, "protocols", "gearman,workq,faktory,http,qless,beanstalk,conveyor,sqs",
		"which protocols to run")
	flag.StringVar(&durabilities, "durability", "sync,none", "with which durabilities the broker takes part")
	flag.IntVar(&usual.clients, "clients", usual.clients, "producers, and as many workers")
	flag.IntVar(&usual.inHand, "in-hand", usual.inHand, "jobs that a Gearman worker has at a time")
	flag.StringVar(&s.dir, "dir", "", "where the servers' data lies for the time of the run; must be on a real disk")
	flag.StringVar(&s.before, "before", "",
		"an earlier program of the broker to compare with; today's then runs twice, to show the noise")
	flag.Func("servers", "which servers to run, a regular expression such as 'limit|before|again|broker'",
		func(text string) (err error) {
			s.servers, err = regexp.Compile(text)
			return err
		})
	flag.Float64Var(&share, "share", 0, "processors that each node of a cluster gets, 0.1 or more, with clients at "+
		"all nodes, over TLS too; 0: no limit; needs root")
	flag.StringVar(&profiles, "profiles", "",
		"folder for processor profiles of each broker in modes that compare, which peers then take no part in")
	studyFlags(&s)
	flag.Parse()
	s.modes, s.groups = strings.Split(letters, ","), strings.Split(names, ",")
	s.durabilities = strings.Split(durabilities, ",")
	runtime.GOMAXPROCS(2 + runtime.NumCPU()) // two are the loops' own
	cleanUpOnSignal()
	err := run(s)
	if stopping.Load() {
		select {} // the signal's goroutine ends the program
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// studyFlags declares the sizes for the modes that measure the broker alone.
func studyFlags(s *settings) {
	for _, f := range []struct {
		numbers               *numbers
		name, normally, usage string
	}{
		{&s.deep, "deep", "10k,100k,1M", "f: waiting jobs"},
		{&s.sleepers, "sleepers", "10,100,1k,2k", "g: workers that wait for one queue"},
		{&s.queues, "queues", "1,10,100,1k,10k,100k", "h: queues"},
		{&s.scheduled, "scheduled", "0,10k,100k,1M", "h: scheduled jobs that wait for their time"},
		{&s.keys, "keys", "0,10k,100k,1M", "h: jobs that wait with a coalescing key"},
		{&s.payloads, "payloads", "16,256,4Ki,64Ki,1Mi", "h: bytes of a job"},
	} {
		if err := f.numbers.Set(f.normally); err != nil {
			panic(err) // the defaults are constants
		}
		flag.Var(f.numbers, f.name, f.usage)
	}
	s.idle, s.wakes, s.polls, s.fan = 20_000, 3000, 5000, 300_000
	flag.Var((*number)(&s.idle), "idle", "g: idle connections")
	flag.Var((*number)(&s.wakes), "wakes", "g, p: wake-ups a measurement")
	flag.Var((*number)(&s.polls), "polls", "p: long polls of SQS")
	flag.Var((*number)(&s.fan), "fan", "j: jobs that wait for one job")
}

// check refuses settings that would measure nothing.
func (s *settings) check() error {
	var letters, names []string
	for _, m := range modes() {
		letters = append(letters, m.letter)
	}
	for _, m := range studies() {
		letters = append(letters, m.letter)
	}
	for _, p := range protocols() {
		names = append(names, p.name)
	}
	names = append(append(names, httpName), optionalNames()...)
	for _, c := range []struct {
		flag         string
		given, known []string
	}{
		{"modes", s.modes, letters},
		{"protocols", s.groups, names},
		{"durability", s.durabilities, []string{"sync", "relaxed", "none"}},
	} {
		for _, given := range c.given {
			if !slices.Contains(c.known, given) {
				return fmt.Errorf("-%s: %q is none of %s", c.flag, given, strings.Join(c.known, ", "))
			}
		}
	}
	return nil
}

func run(s settings) error {
	if err := s.check(); err != nil {
		return err
	}
	dir, remove, err := scratch(s.dir)
	if err != nil {
		return err
	}
	defer remove()
	built, missing := prepare(dir, &s)
	built.before = s.before
	for name, why := range missing {
		_, _ = fmt.Fprintf(screen{}, "missing: %s: %s\n", name, why)
	}
	syncs, err := syncRate(dir)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(screen{}, "%d rounds, medians; data on %s, which syncs 4 KiB %s times a second\n", s.rounds,
		filesystem(dir), thousands(syncs))
	found := &results{missing: missing}
	if err := compareAll(s, dir, built, found); err != nil {
		return err
	}
	if err := studyAll(s, dir, built, found); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(screen{}, "\ntargets\n\n")
	goalTable(found).print(screen{})
	return nil
}

// compareAll runs the modes that compare the broker with peers.
func compareAll(s settings, dir string, built programs, found *results) error {
	for _, m := range modes() {
		if !slices.Contains(s.modes, m.letter) {
			continue
		}
		_, _ = fmt.Fprintf(screen{}, "\n(%s) %s\n\n", m.letter, m.title)
		out := newTable(m)
		for _, g := range groups(built, found.missing, s.durabilities) {
			if !slices.Contains(s.groups, g.name) {
				continue
			}
			results, err := runInTurns(s, dir, m, g)
			if err != nil {
				return err
			}
			out.add(g, results)
			found.note(out, g, results)
		}
		out.print(screen{})
	}
	return nil
}

// studyAll runs the modes that measure the broker alone.
func studyAll(s settings, dir string, built programs, found *results) error {
	l := &lab{settings: s, scratch: dir, binary: built.broker, facts: found}
	for _, m := range studies() {
		if !slices.Contains(s.modes, m.letter) || built.broker == "" {
			continue
		}
		_, _ = fmt.Fprintf(screen{}, "\n(%s) %s\n\n", m.letter, m.title)
		if err := m.run(l, screen{}); err != nil {
			return fmt.Errorf("mode %s: %w", m.letter, err)
		}
	}
	return nil
}

// runInTurns runs the contenders of a group in turns. The order is reversed every other round, so that no contender
// always follows the same one.
func runInTurns(s settings, dir string, m mode, g group) ([][]figures, error) {
	results := make([][]figures, len(g.contenders))
	for round := range s.rounds {
		for i := range g.contenders {
			if round%2 == 1 {
				i = len(g.contenders) - 1 - i
			}
			c := g.contenders[i]
			if c.missing != "" || !m.fits(c.dialect) || (profiles != "" && !c.ours) || !s.names(c.name) {
				continue
			}
			f, err := measure(dir, m, c, max(int(float64(s.jobs)*m.share*c.share), 1))
			if err != nil {
				return nil, fmt.Errorf("mode %s, %s over %s: %w", m.letter, c.name, g.name, err)
			}
			results[i] = append(results[i], f)
		}
	}
	return results, nil
}

// names reports that the user has not left a contender out.
func (s *settings) names(contender string) bool {
	return s.servers == nil || s.servers.MatchString(contender)
}

// measure runs one load on a new server of a contender.
func measure(dir string, m mode, c contender, jobs int) (figures, error) {
	data, remove, err := scratch(dir)
	if err != nil {
		return figures{}, err
	}
	defer remove()
	r, err := c.start(data)
	if err != nil {
		return figures{}, err
	}
	defer cleanup.add(r.stop)()
	done := r.profile(m.letter + "-" + strings.ReplaceAll(c.name, " ", "-"))
	f, err := m.run(r, c.dialect, jobs)
	done()
	if err != nil {
		err = fmt.Errorf("%w\nthe server's log: %s", err, r.tail())
	}
	return f, err
}
