package qless

import (
	"math"
	"slices"
)

var minusInf, plusInf = math.Inf(-1), math.Inf(1)

// tagJob adds a job to the lists of tags and increments their counts.
func (t *tx) tagJob(j *job, tags []string) {
	if len(tags) == 0 {
		return
	}
	t.edit(j)
	j.tagged = slices.Clone(j.tagged)
	places := make(map[string]int, len(j.tagged)+len(tags))
	for i, g := range j.tagged {
		places[g.tag] = i
	}
	for _, tag := range tags {
		t.setIn(t.m.tags, tag, j.jid, t.now)
		if i, there := places[tag]; there {
			j.tagged[i].at = t.now
		} else {
			places[tag] = len(j.tagged)
			j.tagged = append(j.tagged, tagTime{tag, t.now})
		}
		t.countTag(tag, 1)
	}
}

// untagJob removes a job from the lists of tags and decrements their counts.
func (t *tx) untagJob(j *job, tags []string) {
	if len(tags) == 0 {
		return
	}
	t.edit(j)
	for _, tag := range tags {
		t.unset(t.m.tags, tag, j.jid)
		t.countTag(tag, -1)
	}
	gone := stringSet(tags)
	j.tagged = slices.DeleteFunc(slices.Clone(j.tagged), func(g tagTime) bool { return gone[g.tag] })
}

func (t *tx) countTag(tag string, by float64) {
	n, _ := t.m.tagCounts.score(tag)
	if n += by; n == 0 {
		t.drop(&t.m.tagCounts, tag)
	} else {
		t.add(&t.m.tagCounts, tag, n)
	}
	t.note(tagDocs + tag)
}

// tag add|remove jid tag..., get tag [offset [count]], top [offset [count]]
func tag(t *tx, in *input) (any, error) {
	switch command := in.need(0, `Tag(): Arg "command" must be "add", "remove", "get" or "top"`); command {
	case "add", "remove":
		return t.changeTags(in, command == "add")
	case "get":
		name := in.need(1, `Tag(): Arg "tag" missing`)
		first, n := in.tagPage(2)
		if in.err != nil {
			return nil, in.err
		}
		z := setOf(t.m.tags, name)
		return totalAndJobs(z.len(), z.slice(first, first+n-1, false))
	case "top":
		first, n := in.tagPage(1)
		if in.err != nil {
			return nil, in.err
		}
		return encode(t.m.tagCounts.betweenBack(plusInf, 2, first, n))
	}
	in.refuse(fault(`Tag(): First argument must be "add", "remove" or "get"`))
	return nil, in.err
}

func (in *input) tagPage(i int) (first, n int) {
	offset := in.numberOr(i, 0, `Tag(): Arg "offset" not a number: `)
	count := in.numberOr(i+1, 25, `Tag(): Arg "count" not a number: `)
	return in.page(offset, count)
}

func (t *tx) changeTags(in *input, add bool) (any, error) {
	jid := in.need(1, `Tag(): Arg "jid" missing`)
	if in.err != nil {
		return nil, in.err
	}
	j := t.m.jobs.get(jid)
	if j == nil {
		return nil, fault("Tag(): Job %s does not exist", jid)
	}
	t.edit(j)
	if tags := in.from(2); add {
		j.tags = withAll(j.tags, tags)
		t.tagJob(j, tags)
	} else {
		t.untagJob(j, tags)
		j.tags = withoutAll(j.tags, tags)
	}
	return encode(j.tags)
}
