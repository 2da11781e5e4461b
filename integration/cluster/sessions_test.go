package cluster_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"broker/integration/beanstalkclient"
	"broker/integration/harness"
	"broker/integration/server"
	"broker/integration/sqsclient"
)

// tube is a Beanstalk client.
type tube struct {
	*beanstalkclient.Client
	numbers map[string]string // by the id of the test
}

func dialTube(address string) (*tube, error) {
	c, err := beanstalkclient.Dial(address)
	return &tube{c, map[string]string{}}, err
}

func (b *tube) submit(id string) error {
	_, err := b.Put(beanstalkclient.Job{Body: []byte(id), TTR: time.Hour})
	return err
}

func (b *tube) lease() (string, error) {
	r, err := b.Reserve(leaseWait)
	if err != nil {
		if errors.Is(err, beanstalkclient.Refusal("TIMED_OUT")) {
			return "", nil
		}
		return "", err
	}
	b.numbers[string(r.Body)] = r.ID
	return string(r.Body), nil
}

func (b *tube) finish(id string) (bool, error) {
	err := b.Do("DELETED", "delete "+b.numbers[id])
	return err == nil, err
}

// messages is a client of SQS.
type messages struct {
	*sqs.Client
	t       *testing.T
	url     *string
	handles map[string]*string // by the id of the test
}

func dialSQS(t *testing.T, address string) (*messages, error) {
	t.Helper()
	c := sqsclient.New(address)
	made, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("cluster"), Attributes: map[string]string{"VisibilityTimeout": "3600"},
	})
	if err != nil {
		return nil, err
	}
	return &messages{c, t, made.QueueUrl, map[string]*string{}}, nil
}

func (m *messages) submit(id string) error {
	_, err := m.SendMessage(m.t.Context(), &sqs.SendMessageInput{QueueUrl: m.url, MessageBody: &id})
	return err
}

func (m *messages) lease() (string, error) {
	r, err := m.ReceiveMessage(m.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: m.url, WaitTimeSeconds: 2})
	if err != nil || len(r.Messages) == 0 {
		return "", err
	}
	id := *r.Messages[0].Body
	m.handles[id] = r.Messages[0].ReceiptHandle
	return id, nil
}

func (m *messages) finish(id string) (bool, error) {
	_, err := m.DeleteMessage(m.t.Context(), &sqs.DeleteMessageInput{QueueUrl: m.url, ReceiptHandle: m.handles[id]})
	return err == nil, err
}

// Close implements session. The client has connections of its own.
func (m *messages) Close() error { return nil }

// linked starts a cluster whose followers are linked to the leader, with ports of Beanstalk and SQS. HTTP is last.
func linked(t *testing.T) (c *cluster, all []protocol) {
	t.Helper()
	tubes, queues := make(map[*server.BrokerServer]string), make(map[*server.BrokerServer]string)
	c = prepare(t, nil, loggedIn)
	for _, n := range c.nodes {
		for setting, of := range map[string]map[*server.BrokerServer]string{"BEANSTALK": tubes, "SQS": queues} {
			at, err := server.FreeAddr()
			check(t, err)
			n.Env("BROKER_" + setting + "_LISTEN=" + at)
			of[n] = at
		}
	}
	c.start().awaitLinks()
	return c, []protocol{
		{"gearman", false, dialGearman},
		{"workq", true, dialWorkq},
		{"faktory", true, dialFaktory},
		{"sqs", true, func(n *server.BrokerServer) (session, error) { return dialSQS(t, queues[n]) }},
		{"beanstalk", false, func(n *server.BrokerServer) (session, error) { return dialTube(tubes[n]) }},
		{"http", true, dialHTTP},
	}
}

// awaitLinks waits until the followers are linked to the leader.
func (c *cluster) awaitLinks() {
	c.t.Helper()
	leader := c.leader()
	harness.Eventually(c.t, func() string {
		for i := range c.nodes {
			if n := c.metric(i, "broker_cluster_links"); i != leader && n != 1 || i == leader && n != size-1 {
				return fmt.Sprintf("n%d has %v links", i+1, n)
			}
		}
		return ""
	})
}

// jobID is an id that every protocol takes.
func jobID(n int) string { return fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012d", n) }

func (c *cluster) dial(p protocol, i int) session {
	c.t.Helper()
	s, err := p.dial(c.nodes[i])
	check(c.t, err)
	c.t.Cleanup(func() { _ = s.Close() }) // may be closed
	return s
}

// await waits for a job.
func await(s session) (id string, err error) {
	if g, is := s.(*gearman); is { // it sleeps
		return g.leased(g.Grab(harness.Patience))
	}
	for end := time.Now().Add(harness.Patience); id == "" && err == nil && time.Now().Before(end); {
		id, err = s.lease()
	}
	return id, err
}

// nowLeased leases a job that is ready.
func nowLeased(s session) (id string, err error) {
	if g, is := s.(*gearman); is { // it would sleep until there is a job
		return g.leased(g.GrabNow(harness.Patience))
	}
	return s.lease()
}

// A job that one node takes is leased at another, and a worker that waits at a third is woken. The sessions are at the
// node of each client.
func TestClientsOfFollowersAreServedByTheirNodes(t *testing.T) {
	t.Parallel()
	c, all := linked(t)
	leader := c.leader()
	first, second := (leader+1)%size, (leader+2)%size
	for k, p := range all {
		t.Run(p.name, func(t *testing.T) {
			at := map[int]session{leader: c.dial(p, leader), first: c.dial(p, first), second: c.dial(p, second)}
			for n, way := range [][2]int{{first, second}, {second, leader}, {leader, first}, {first, first}} {
				id := jobID(10*k + n)
				check(t, at[way[0]].submit(id))
				got, err := await(at[way[1]])
				if err != nil || got != id {
					t.Fatalf("from n%d to n%d: leased %q, %v", way[0]+1, way[1]+1, got, err)
				}
				_, err = at[way[1]].finish(id)
				check(t, err)
			}
			woken := make(chan error, 1)
			go func() {
				id, err := await(at[second])
				if err == nil && id != jobID(10*k+9) {
					err = errors.New("leased " + strconv.Quote(id))
				}
				woken <- err
			}()
			time.Sleep(leaseWait / 2)
			check(t, at[first].submit(jobID(10*k+9)))
			check(t, <-woken)
			_, err := at[second].finish(jobID(10*k + 9))
			check(t, err)
			name, least := fmt.Sprintf("broker_connections{protocol=%q}", p.name), 1.0
			if p.name == "http" { // it has no event loop
				name, least = "broker_cluster_proxied_requests_total", 0
			}
			if n := c.metric(first, name); n < least || p.name == "http" && n > 0 {
				t.Errorf("n%d, %s: %s is %v", first+1, p.name, name, n)
			}
		})
	}
	if n := c.metric(first, "broker_cluster_proxied_connections"); n != 0 {
		t.Errorf("n%d passes %v connections on", first+1, n)
	}
	if n := c.metric(leader, "broker_cluster_link_clients"); n < 2 {
		t.Errorf("the leader counts %v clients of other nodes", n)
	}
}

// The leases of clients end with their node, as with their connection, and go on at the next leader.
func TestLeasesEndWithTheNodeOfTheirClient(t *testing.T) {
	t.Parallel()
	c, all := linked(t)
	leader := c.leader()
	lost, other := (leader+1)%size, (leader+2)%size
	held := map[string]session{}
	for _, p := range all {
		if p.exclusive {
			continue
		}
		check(t, c.dial(p, other).submit("held"))
		s := c.dial(p, lost)
		if id, err := await(s); err != nil || id != "held" {
			t.Fatalf("%s: leased %q, %v", p.name, id, err)
		}
		held[p.name] = c.dial(p, other)
	}
	c.nodes[lost].Process.Kill()
	for name, s := range held {
		if id, err := await(s); err != nil || id != "held" {
			t.Errorf("%s after the end of the node: leased %q, %v", name, id, err)
		}
	}
	c.restart(lost)
	c.nodes[leader].Process.Kill()
	c.awaitLeaderOtherThan(leader)
	for _, p := range all {
		if p.exclusive {
			continue
		}
		if id, err := nowLeased(c.dial(p, other)); err != nil || id != "" {
			t.Errorf("%s after the end of the leader: leased %q, %v", p.name, id, err)
		}
		_, err := held[p.name].finish("held")
		check(t, err)
	}
}
