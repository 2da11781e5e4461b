package access

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crowd enters connections and notes those that are closed.
type crowd struct {
	*Connections
	mu    sync.Mutex // guards the field below: timers close connections, too
	names []string
}

// closed returns the names of the connections that are closed, the first first.
func (c *crowd) closed() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.names)
}

func (c *crowd) guest(name, from string) *Connection {
	e := c.Enter(from)
	if e != nil {
		e.Guest(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.names = append(c.names, name)
		})
	}
	return e
}

func TestANewcomerDisplacesAGuestOfAnAddressWithMore(t *testing.T) {
	t.Parallel()
	c := &crowd{Connections: NewConnections(ConnectionOptions{Size: 4})}
	tenant := NamedHolder("tenant", false)
	if err := c.guest("member", "192.0.2.7:1").Admit(tenant); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		c.guest(fmt.Sprintf("slow %d", i), "192.0.2.66:5")
	}
	if c.guest("own", "192.0.2.66:6") != nil {
		t.Error("an address displaces its own guests")
	}
	if c.guest("new", "[2001:db8::1]:7") == nil || c.guest("another", "[2001:db8::2]:8") == nil {
		t.Error("a network with fewer guests gets none")
	}
	if c.guest("third", "[2001:db8::3]:8") != nil {
		t.Error("a network with more guests displaces another's")
	}
	if want := []string{"slow 0", "slow 1"}; !slices.Equal(c.closed(), want) || c.Open() != 4 {
		t.Errorf("closed %q, want %q; %d are open", c.closed(), want, c.Open())
	}
}

func TestAnAddressRenewsItsGuestsWhereItMay(t *testing.T) {
	t.Parallel()
	c := &crowd{Connections: NewConnections(ConnectionOptions{Size: 1, Extra: 1, Renew: true})}
	for i := range 4 {
		c.guest(fmt.Sprint(i), "192.0.2.66:5")
	}
	if want := []string{"0", "1"}; !slices.Equal(c.closed(), want) {
		t.Errorf("closed %q, want %q", c.closed(), want)
	}
}

func TestPrincipalsShareConnectionsAndLoseNoneToNewcomers(t *testing.T) {
	t.Parallel()
	c := &crowd{Connections: NewConnections(ConnectionOptions{Size: 8})}
	tenant, root := NamedHolder("tenant", false), NamedHolder("root", true)
	var held []*Connection
	for range 4 {
		e := c.guest("tenant", "192.0.2.1:1")
		if err := e.Admit(tenant); err != nil {
			t.Fatal(err)
		}
		held = append(held, e)
	}
	var full *FullError
	fifth := c.guest("fifth", "192.0.2.1:1")
	if err := fifth.Admit(tenant); !errors.As(err, &full) || full.Held != 4 {
		t.Errorf("one principal has more than half of the connections: %v", err)
	}
	fifth.Leave()
	fifth.Leave()
	for range 4 {
		if err := c.guest("root", "192.0.2.1:1").Admit(root); err != nil {
			t.Error(err)
		}
	}
	if c.guest("newcomer", "192.0.2.9:1") != nil || c.closed() != nil {
		t.Errorf("a newcomer displaces %q", c.closed())
	}
	for _, e := range held {
		e.Leave()
	}
	if e := c.guest("again", "192.0.2.1:1"); e == nil || e.Admit(tenant) != nil {
		t.Error("closed connections keep their places")
	}
}

func TestWithoutALimitEveryoneIsAdmitted(t *testing.T) {
	t.Parallel()
	c := &crowd{Connections: NewConnections(ConnectionOptions{})}
	for range 3 {
		e := c.guest("any", "192.0.2.1:1")
		if err := e.Admit(NamedHolder("tenant", false)); err != nil {
			t.Error(err)
		}
		if c.Open() != 1 {
			t.Errorf("%d are open", c.Open())
		}
		e.Leave()
	}
	if c.Open() != 0 || c.closed() != nil {
		t.Errorf("%d are open", c.Open())
	}
}

// Where no client says who it is, the address of all clients gets nearly all places, and leaves some for others.
func TestAnOpenAddressLeavesAnEighth(t *testing.T) {
	t.Parallel()
	pool := NewPool(1000)
	n := 0
	for pool.Take(ClientHolder(Everyone, "192.0.2.1:5"), 1) == nil {
		n++
	}
	if n != 875 {
		t.Errorf("an address takes %d places", n)
	}
	if err := pool.Take(ClientHolder(newPrincipal("tenant", nil), ""), 50); err != nil {
		t.Error(err)
	}
	small := NewPool(2)
	for range 2 {
		if err := small.Take(ClientHolder(Everyone, ""), 1); err != nil {
			t.Error(err)
		}
	}
}

func TestAnIdleConnectionEndsUnlessItsClientHasShownWhoItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{Connections: NewConnections(ConnectionOptions{})}
		c.guest("idle", "192.0.2.1:1").Idle(10 * time.Second)
		busy := c.guest("busy", "192.0.2.1:1")
		busy.Idle(10 * time.Second)
		busy.Busy()
		member := c.guest("member", "192.0.2.1:1")
		member.Idle(10 * time.Second)
		if err := member.Admit(NamedHolder("tenant", false)); err != nil {
			t.Error(err)
		}
		member.Idle(10 * time.Second)
		<-time.After(10*time.Second - 1)
		synctest.Wait()
		if c.closed() != nil {
			t.Errorf("too early: %q", c.closed())
		}
		<-time.After(time.Hour)
		if want := []string{"idle"}; !slices.Equal(c.closed(), want) {
			t.Errorf("closed %q, want %q", c.closed(), want)
		}
	})
}

// fullOf fills connections with one guest of each of n addresses, and returns them.
func fullOf(n int) (c *Connections, guests []*Connection) {
	c = NewConnections(ConnectionOptions{Size: n, Renew: true})
	for i := range n {
		e := c.Enter(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
		e.Guest(func() {})
		guests = append(guests, e)
	}
	return c, guests
}

func TestANewcomerLooksAtFewOfTheAddressesOfAFullPool(t *testing.T) {
	t.Parallel()
	const addresses, newcomers = 1 << 14, 1000
	c, guests := fullOf(addresses)
	before := c.most.compared
	for i := range newcomers {
		guests[addresses/2+i].Busy()
		e := c.Enter(fmt.Sprintf("192.0.2.%d:1", i%200))
		if e == nil {
			t.Fatal("a newcomer displaces no guest")
		}
		e.Guest(func() {})
	}
	// Each of the three changes of a newcomer, and Busy, moves one address by at most 14 levels of two comparisons.
	if looks, most := c.most.compared-before, newcomers*4*2*15; looks > most {
		t.Errorf("%d newcomers made %d comparisons, and may make %d", newcomers, looks, most)
	}
}

func TestTheGuestThatIsDisplacedIsTheOldestOfTheAddressWithMost(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	c := NewConnections(ConnectionOptions{Size: 30, Renew: true})
	var open []*Connection
	for range 20_000 {
		switch n := random.IntN(10); {
		case n < 6:
			want := displacedByWalk(c)
			e := c.Enter(fmt.Sprintf("192.0.2.%d:1", random.IntN(8)))
			if e == nil || want != nil && !want.left {
				t.Fatalf("the newcomer %v did not displace %v", e, want)
			}
			e.Guest(func() {})
			open = append(slices.DeleteFunc(open, func(o *Connection) bool { return o.left }), e)
		case len(open) == 0:
		case n < 9:
			open[random.IntN(len(open))].Busy()
		default:
			open[random.IntN(len(open))].Leave()
			open = slices.DeleteFunc(open, func(o *Connection) bool { return o.left })
		}
	}
}

// displacedByWalk returns the guest that a newcomer displaces, found by a walk over all addresses; nil: there is room.
func displacedByWalk(c *Connections) (of *Connection) {
	if c.open < c.options.Size {
		return nil
	}
	most := 0
	for _, guests := range c.guests {
		if first := guests.oldest(); guests.Len() > most || guests.Len() == most && first.number < of.number {
			most, of = guests.Len(), first
		}
	}
	return of
}
