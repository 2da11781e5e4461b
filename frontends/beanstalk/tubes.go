package beanstalk

import "sync"

// tube holds the counts of this protocol's clients for a tube. The core has all other data.
type tube struct {
	using, watching, waiting int
}

// tubes holds the tubes that clients use or watch.
type tubes struct {
	mu     sync.Mutex // guards byName
	byName map[string]tube
}

// change changes the counts of a tube.
func (x *tubes) change(name string, fn func(*tube)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.byName[name]
	if fn(&t); t == (tube{}) {
		delete(x.byName, name)
	} else {
		x.byName[name] = t
	}
}

// of returns the counts of a tube.
func (x *tubes) of(name string) tube {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.byName[name]
}
