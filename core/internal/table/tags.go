package table

import (
	"strings"

	"broker/core/internal/queue"
)

// tagIndex finds jobs by their tags. A job with one tag costs 32 bytes, each further tag 12 to 16 bytes. A tag with one
// job also costs its name and about 150 bytes. Jobs without tags have no cost.
type tagIndex struct {
	Names NameTable
	Jobs  []queue.List      // by number of the tag, in the order of Seq
	first map[uint32]uint32 // by handle of a job: its first link
	links []tagLink         // from 1
	free  uint32            // head of the list of free links
}

// tagLink is one tag of a job.
type tagLink struct{ tag, next uint32 }

func newTagIndex() tagIndex {
	return tagIndex{Names: newNameTable(), first: map[uint32]uint32{}, links: make([]tagLink, 1)}
}

func (x *tagIndex) newLink(tag uint32) uint32 {
	if n := x.free; n != 0 {
		x.free = x.links[n].next
		x.links[n] = tagLink{tag: tag}
		return n
	}
	x.links = append(x.links, tagLink{tag: tag})
	return uint32(len(x.links) - 1) // memory ends before four billion tags
}

// Has reports whether a job has a tag.
func (x *tagIndex) Has(h, tag uint32) bool {
	for n := x.first[h]; n != 0; n = x.links[n].next {
		if x.links[n].tag == tag {
			return true
		}
	}
	return false
}

// SetTags sets the tags of a job, in their order.
func (t *Table) SetTags(h uint32, tags []string) {
	x := &t.Tags
	if len(tags) == 0 && len(x.first) == 0 {
		return
	}
	t.dropTags(h)
	last := uint32(0)
	for _, name := range tags {
		if known := x.Names.NumberOf(name); known != 0 && x.Has(h, known) {
			continue // named twice
		}
		tag := x.Names.acquireCopy(name)
		for int(tag) >= len(x.Jobs) {
			x.Jobs = append(x.Jobs, queue.List{})
		}
		x.Jobs[tag].Push(h, t.Older)
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
func (t *Table) dropTags(h uint32) {
	x := &t.Tags
	n, tagged := x.first[h]
	if !tagged {
		return
	}
	delete(x.first, h)
	for n != 0 {
		tag, next := x.links[n].tag, x.links[n].next
		x.Jobs[tag].Remove(h, t.Older)
		if x.Names.release(tag) {
			x.Jobs[tag] = queue.List{}
		}
		x.links[n] = tagLink{next: x.free}
		x.free, n = n, next
	}
	if len(x.first) == 0 {
		*x = newTagIndex() // a Go map does not shrink
	}
}

// TagsOf returns the tags of a job, in their order.
func (t *Table) TagsOf(h uint32) (tags []string) {
	for n := t.Tags.first[h]; n != 0; n = t.Tags.links[n].next {
		tags = append(tags, t.Tags.Names.NameOf(t.Tags.links[n].tag))
	}
	return tags
}

// TagKey returns the key of a job from its tags; see core.KeyTag.
func (t *Table) TagKey(h uint32, tag string) string {
	for n := t.Tags.first[h]; n != 0; n = t.Tags.links[n].next {
		if name, value, _ := strings.Cut(t.Tags.Names.NameOf(t.Tags.links[n].tag), ":"); name == tag {
			return value
		}
	}
	return ""
}
