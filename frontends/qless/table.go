package qless

import "math/bits"

// JSON objects have their members in the order in which Lua walks a table's hash part. It follows from the keys, the
// order of their insertion and the size that the table was made with, so a table here places its keys as Lua 5.1 does:
//
//	nodes    their number is a power of two; the main position of a key is its hash modulo that number
//	free     a collision goes to the last free node before this one; if none is left, the nodes double and all keys are placed again
//
// A table that was parsed from JSON has either an array part or a hash part. It has both after keys were added to an
// array.
type table struct {
	array []any
	nodes []node
	free  int
	keys  int
}

// node is one slot of the hash part.
type node struct {
	key   string
	value any
	used  bool
	next  int // index of the next node with the same main position, plus one
}

// newTable makes a table like a Lua constructor with this number of members.
func newTable(members int) *table {
	t := &table{}
	if members > 0 {
		t.resize(members)
	}
	return t
}

func (t *table) resize(members int) {
	size := 0
	if members > 0 {
		size = 1 << bits.Len(uint(members-1))
	}
	old := t.nodes
	t.nodes, t.free = make([]node, size), size
	for i := len(old) - 1; i >= 0; i-- {
		if old[i].used {
			t.insert(old[i].key, old[i].value)
		}
	}
}

// mainPosition is the main position of a key.
func (t *table) mainPosition(key string) int { return int(luaHash(key)) & (len(t.nodes) - 1) }

// luaHash is the string hash of Redis's Lua. It covers all bytes, the last one first.
func luaHash(s string) uint32 {
	h := uint32(len(s))
	for i := len(s) - 1; i >= 0; i-- {
		h ^= h<<5 + h>>2 + uint32(s[i])
	}
	return h
}

func (t *table) find(key string) *node {
	if len(t.nodes) == 0 {
		return nil
	}
	for i := t.mainPosition(key) + 1; i != 0; i = t.nodes[i-1].next {
		if n := &t.nodes[i-1]; n.used && n.key == key {
			return n
		}
	}
	return nil
}

// set sets the value of a key.
func (t *table) set(key string, value any) {
	if n := t.find(key); n != nil {
		n.value = value
		return
	}
	t.keys++
	t.insert(key, value)
}

// insert places a new key.
func (t *table) insert(key string, value any) {
	if len(t.nodes) == 0 {
		t.grow(key, value)
		return
	}
	at := t.mainPosition(key)
	if t.nodes[at].used {
		free := t.freeNode()
		if free < 0 {
			t.grow(key, value)
			return
		}
		// the key in this slot has another main position, so it moves
		if other := t.mainPosition(t.nodes[at].key); other != at {
			for t.nodes[other].next != at+1 {
				other = t.nodes[other].next - 1
			}
			t.nodes[other].next = free + 1
			t.nodes[free] = t.nodes[at]
			t.nodes[at] = node{}
		} else {
			t.nodes[free].next = t.nodes[at].next
			t.nodes[at].next = free + 1
			at = free
		}
	}
	n := &t.nodes[at]
	n.key, n.value, n.used = key, value, true
}

func (t *table) grow(key string, value any) {
	used := 1
	for i := range t.nodes {
		if t.nodes[i].used {
			used++
		}
	}
	t.resize(used)
	t.insert(key, value)
}

func (t *table) freeNode() int {
	for t.free > 0 {
		t.free--
		if !t.nodes[t.free].used {
			return t.free
		}
	}
	return -1
}

// object makes the table of a Lua constructor from keys and their values.
func object(pairs ...any) *table {
	t := newTable(fieldCount(len(pairs) / 2))
	for i := 0; i < len(pairs); i += 2 {
		t.set(pairs[i].(string), pairs[i+1])
	}
	return t
}

// parsed returns the table after it has been written as JSON and parsed again: its members may have another order.
func (t *table) parsed() *table {
	again := newTable(0)
	for i := range t.nodes {
		if n := &t.nodes[i]; n.used {
			again.set(n.key, n.value)
		}
	}
	return again
}

// fieldCount is the size that Lua's compiler stores for a constructor: n rounded up to three significant bits.
func fieldCount(n int) int {
	shift := 0
	for n >= 16 {
		n = (n + 1) >> 1
		shift++
	}
	return n << shift
}
