package integration_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"broker/integration/beanstalkclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// startBeanstalkPort starts a broker with a port for Beanstalk clients.
func startBeanstalkPort(t *testing.T) (*harness.Broker, string) {
	t.Helper()
	harness.BrokerOnly(t)
	addr, err := server.FreeAddr()
	check(t, err)
	return harness.Start(t, harness.Options{Args: []string{"--beanstalk", addr}}), addr
}

// beanstalkPort is the address of a broker for Beanstalk clients, or of beanstalkd itself with BROKER_REFERENCE=1.
func beanstalkPort(t *testing.T) string {
	t.Helper()
	if addr := harness.ReferenceBeanstalkd(t); addr != "" {
		return addr
	}
	_, addr := startBeanstalkPort(t)
	return addr
}

func TestBeanstalkFlowsOfPublishedClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, need, flows string
		argv              []string
	}{
		{
			"pheanstalk", "php-pheanstalk", "bodies life order tubes stats ttr",
			[]string{"php", "php/pheanstalk.php", "HOST", "PORT"},
		},
		{
			"Laravel", "php-laravel", "works retries gives-up later raw",
			[]string{"php", "php/laravel.php", "HOST", "PORT"},
		},
		{"Beaneater", "ruby-beaneater", "puts processes clears lists", []string{"ruby", "ruby/beaneater.rb", "ADDR"}},
		{"jackd", "node", "bodies life tubes waits", []string{"node", "node/jackd.js", "HOST", "PORT"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if harness.Need(t, strings.Fields(c.argv[0])[0], c.need); c.need == "node" {
				harness.NeedNode(t)
			}
			addr := beanstalkPort(t)
			host, port := server.Split(addr)
			argv := slices.Clone(c.argv)
			argv[1] = harness.Script(t, argv[1])
			for i := range argv {
				argv[i] = strings.NewReplacer("HOST", host, "PORT", port, "ADDR", addr).Replace(argv[i])
			}
			equal(t, "flows", strings.Join(strings.Fields(harness.Run(t, harness.Command{Argv: argv})), " "), c.flows)
		})
	}
}

// go-beanstalk sends use, watch and ignore in one packet with the next command.
func TestGoBeanstalk(t *testing.T) {
	t.Parallel()
	addr := beanstalkPort(t)
	c, err := beanstalk.Dial("tcp", addr)
	check(t, err)
	defer func() { _ = c.Close() }() // every reply was read
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	tube, watched := beanstalk.NewTube(c, "go"), beanstalk.NewTubeSet(c, "go", "other")
	id, err := tube.Put(all, 5, 0, time.Minute)
	check(t, err)
	got, body, err := watched.Reserve(0)
	check(t, err)
	equal(t, "job", fmt.Sprintf("%d %q", got, body), fmt.Sprintf("%d %q", id, all))
	check(t, c.Touch(id))
	check(t, c.Release(id, 6, 0))
	got, _, err = watched.Reserve(0)
	check(t, err)
	check(t, c.Bury(got, 7))
	stats, err := c.StatsJob(id)
	check(t, err)
	equal(t, "stats",
		fmt.Sprint([]string{stats["state"], stats["pri"], stats["reserves"], stats["releases"], stats["buries"]}),
		"[buried 7 2 1 1]")
	n, err := tube.Kick(9)
	check(t, err)
	equal(t, "kicked jobs", n, 1)
	got, _, err = tube.PeekReady()
	check(t, err)
	equal(t, "the next job", got, id)
	check(t, c.Delete(id))
	_, _, err = watched.Reserve(0)
	if !errors.Is(err, beanstalk.ErrTimeout) {
		t.Errorf("an empty tube: %v", err)
	}
	if err := c.Delete(id); !errors.Is(err, beanstalk.ErrNotFound) {
		t.Errorf("a deleted job: %v", err)
	}
	_, err = beanstalk.NewTube(c, "go").Put(make([]byte, 65536), 0, 0, time.Second)
	if !errors.Is(err, beanstalk.ErrJobTooBig) {
		t.Errorf("a large job: %v", err)
	}
	tubes, err := c.ListTubes()
	check(t, err)
	equal(t, "tubes", fmt.Sprint(tubes), "[default go other]")
}

// Programs keep what the broker counts over a restart: Laravel decides by the attempts of a job whether it runs it
// again.
func TestBeanstalkCountersOutliveKills(t *testing.T) {
	t.Parallel()
	b, addr := startBeanstalkPort(t)
	dial := func() *beanstalkclient.Client {
		c, err := beanstalkclient.Dial(addr)
		check(t, err)
		t.Cleanup(func() { _ = c.Close() }) // the broker may be gone
		check(t, errors.Join(c.Use("kept"), c.Watch("kept")))
		return c
	}
	c := dial()
	ids, err := c.Put(beanstalkclient.Job{Pri: 1024, TTR: time.Minute, Body: []byte("x")})
	check(t, err)
	for range 2 {
		_, err := c.Reserve(0)
		check(t, err)
		check(t, c.Do("RELEASED", "release "+ids[0]+" 77 0"))
	}
	_, err = c.Reserve(0)
	check(t, err)
	check(t, c.Do("BURIED", "bury "+ids[0]+" 88"))
	check(t, c.Do("KICKED", "kick-job "+ids[0]))
	check(t, c.Do("PAUSED", "pause-tube kept 600"))
	b.Crash()
	b.Restart()
	c = dial()
	stats, err := c.Stats("stats-job " + ids[0])
	check(t, err)
	got := ""
	for _, key := range []string{"state", "pri", "ttr", "reserves", "timeouts", "releases", "buries", "kicks"} {
		got += key + " " + stats[key] + " "
	}
	equal(t, "stats of the job", got, "state ready pri 88 ttr 60 reserves 3 timeouts 0 releases 2 buries 1 kicks 1 ")
	stats, err = c.Stats("stats-tube kept")
	check(t, err)
	equal(t, "pause", stats["pause"], "600")
	if _, err := c.Reserve(0); !errors.Is(err, beanstalkclient.TimedOut) {
		t.Errorf("reserve from a tube that is paused: %v", err)
	}
	next, err := c.Put(beanstalkclient.Job{Body: []byte("y"), TTR: time.Minute})
	check(t, err)
	if next[0] == ids[0] {
		t.Errorf("the id %s is used again", next[0])
	}
}
