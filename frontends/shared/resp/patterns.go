package resp

import (
	"cmp"
	"slices"
	"strings"

	"broker/access"
	"broker/frontends/shared/glob"
)

// Every publication is compared with the patterns of all clients while other clients wait. Patterns whose only
// wildcard is a star at their end are found by the beginning of the channel, however many there are. The others are
// compared one by one, in time that is proportional to the sum of their steps. So these steps are a pool that clients
// share: all of them take 2 ms for the longest channel.
const wildSteps = 512

// noWildSteps begins the error for a client that gets no more steps.
const noWildSteps = "ERR too many patterns with wildcards before their end: "

// patternIndex holds the patterns of a Hub. The zero value is empty.
type patternIndex struct {
	all      map[string]*pattern
	wild     map[string]*pattern // those that are compared one by one
	pool     *access.Pool        // of the steps of wild
	prefixes map[string]map[string]*pattern
	lengths  [MaxPattern + 1]int // number of prefixes by length
}

// pattern is a pattern with its subscribers.
type pattern struct {
	text      string
	listeners map[*Subscriber]bool
	prefix    string        // unless it is compared
	compiled  *glob.Pattern // nil: it matches each channel that begins with prefix, or only prefix itself
	holder    access.Holder // of its steps: its first subscriber
}

// prefixOf returns the text before the star at the end of a pattern without other wildcards. A channel has as many such
// patterns as it has bytes: a second star would make any number of them.
func prefixOf(text string) (prefix string, ok bool) {
	prefix = strings.TrimSuffix(text, "*")
	return prefix, !strings.ContainsAny(prefix, `*?[\`)
}

// take takes the steps of the patterns that do not exist yet.
func (x *patternIndex) take(h access.Holder, texts []string) error {
	steps, added := 0, map[string]bool{}
	for _, text := range texts {
		if _, ok := prefixOf(text); !ok && x.wild[text] == nil && !added[text] {
			added[text] = true
			steps += stepsOf(text)
		}
	}
	if steps == 0 {
		return nil
	}
	if x.pool == nil {
		x.pool = access.NewPool(wildSteps)
	}
	return x.pool.Take(h, steps)
}

// stepsOf is how many words of glob.Pattern a comparison combines at most for each byte of a channel.
func stepsOf(text string) int { return len(text)/64 + 1 }

// set adds a client to those of a pattern, for which take has succeeded, or removes it.
func (x *patternIndex) set(s *Subscriber, text string, on bool) {
	p := x.all[text]
	switch {
	case on && p == nil:
		p = x.add(text, s.Holder)
		fallthrough
	case on:
		p.listeners[s] = true
	case p != nil:
		if delete(p.listeners, s); len(p.listeners) == 0 {
			x.remove(p)
		}
	}
}

func (x *patternIndex) add(text string, h access.Holder) *pattern {
	if x.all == nil {
		x.all, x.wild = map[string]*pattern{}, map[string]*pattern{}
		x.prefixes = map[string]map[string]*pattern{}
	}
	p := &pattern{text: text, listeners: map[*Subscriber]bool{}, holder: h}
	x.all[text] = p
	var ok bool
	if p.prefix, ok = prefixOf(text); !ok {
		p.compiled = glob.CompileLong(text)
		x.wild[text] = p
		return p
	}
	if x.prefixes[p.prefix] == nil {
		x.prefixes[p.prefix] = map[string]*pattern{}
		x.lengths[len(p.prefix)]++
	}
	x.prefixes[p.prefix][text] = p
	return p
}

func (x *patternIndex) remove(p *pattern) {
	delete(x.all, p.text)
	if p.compiled != nil {
		delete(x.wild, p.text)
		x.pool.Return(p.holder, stepsOf(p.text))
		return
	}
	if delete(x.prefixes[p.prefix], p.text); len(x.prefixes[p.prefix]) == 0 {
		delete(x.prefixes, p.prefix)
		x.lengths[len(p.prefix)]--
	}
}

// match returns the patterns that match a channel of at most MaxPattern bytes, in byte order.
func (x *patternIndex) match(channel string) (found []*pattern) {
	if len(x.all) == 0 {
		return nil
	}
	for n := range len(channel) + 1 {
		if x.lengths[n] == 0 {
			continue
		}
		for _, p := range x.prefixes[channel[:n]] {
			if n == len(channel) || len(p.text) > n {
				found = append(found, p)
			}
		}
	}
	for _, p := range x.wild {
		if p.compiled.MatchString(channel) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *pattern) int { return cmp.Compare(a.text, b.text) })
	return found
}
