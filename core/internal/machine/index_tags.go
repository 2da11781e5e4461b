package machine

import "broker/core/internal/queue"

// tagIndex finds jobs by their tags. A job with one tag costs 32 bytes, each further tag 12 to 16; a tag with a single job costs
// its name and about 150 bytes more. Jobs without tags cost nothing.
type tagIndex struct {
	names nameTable
	jobs  []queue.List      // by number of the tag, in the order of Seq
	first map[uint32]uint32 // by handle of a job: its first link
	links []tagLink         // from 1
	free  uint32            // head of the list of free links
}

// tagLink is one tag of a job.
type tagLink struct{ tag, next uint32 }

func newTagIndex() tagIndex {
	return tagIndex{names: newNameTable(), first: map[uint32]uint32{}, links: make([]tagLink, 1)}
}

func (x *tagIndex) newLink(tag uint32) uint32 {
	if n := x.free; n != 0 {
		x.free = x.links[n].next
		x.links[n] = tagLink{tag: tag}
		return n
	}
	x.links = append(x.links, tagLink{tag: tag})
	return uint32(len(x.links) - 1) //nolint:gosec // memory ends before four billion tags
}

// has reports whether a job has a tag.
func (x *tagIndex) has(h, tag uint32) bool {
	for n := x.first[h]; n != 0; n = x.links[n].next {
		if x.links[n].tag == tag {
			return true
		}
	}
	return false
}

// setTags sets the tags of a job, in their order.
func (m *Machine) setTags(h uint32, tags []string) {
	x := &m.tags
	if len(tags) == 0 && len(x.first) == 0 {
		return
	}
	m.dropTags(h)
	last := uint32(0)
	for _, name := range tags {
		if known := x.names.number[name]; known != 0 && x.has(h, known) {
			continue // named twice
		}
		tag := x.names.acquireCopy(name)
		for int(tag) >= len(x.jobs) {
			x.jobs = append(x.jobs, queue.List{})
		}
		x.jobs[tag].Push(h, m.older)
		n := x.newLink(tag)
		if last == 0 {
			x.first[h] = n
		} else {
			x.links[last].next = n
		}
		last = n
	}
}

// dropTags removes a job from the index.
func (m *Machine) dropTags(h uint32) {
	x := &m.tags
	n, tagged := x.first[h]
	if !tagged {
		return
	}
	delete(x.first, h)
	for n != 0 {
		tag, next := x.links[n].tag, x.links[n].next
		x.jobs[tag].Remove(h, m.older)
		if x.names.release(tag) {
			x.jobs[tag] = queue.List{}
		}
		x.links[n] = tagLink{next: x.free}
		x.free, n = n, next
	}
	if len(x.first) == 0 {
		*x = newTagIndex() // a Go map does not shrink
	}
}

// tagsOf returns the tags of a job, in their order.
func (m *Machine) tagsOf(h uint32) (tags []string) {
	for n := m.tags.first[h]; n != 0; n = m.tags.links[n].next {
		tags = append(tags, m.tags.names.names[m.tags.links[n].tag])
	}
	return tags
}
