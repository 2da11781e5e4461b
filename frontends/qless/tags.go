package qless

import (
	"math"
	"slices"
)

var minusInf, plusInf = math.Inf(-1), math.Inf(1)

// tagJob adds a job to the list of a tag and increments the tag's count.
func (t *tx) tagJob(j *job, tag string) {
	t.edit(j)
	t.setIn(t.m.tags, tag, j.jid, t.now)
	i := slices.IndexFunc(j.tagged, func(g tagTime) bool { return g.tag == tag })
	j.tagged = slices.Clone(j.tagged)
	if i < 0 {
		j.tagged = append(j.tagged, tagTime{tag, t.now})
	} else {
		j.tagged[i].at = t.now
	}
	t.countTag(tag, 1)
}

// untagJob removes a job from the list of a tag and decrements the tag's count.
func (t *tx) untagJob(j *job, tag string) {
	t.edit(j)
	t.unset(t.m.tags, tag, j.jid)
	j.tagged = slices.DeleteFunc(slices.Clone(j.tagged), func(g tagTime) bool { return g.tag == tag })
	t.countTag(tag, -1)
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

func (t *tx) tagAll(j *job, tags []string) {
	for _, tag := range tags {
		t.tagJob(j, tag)
	}
}

func (t *tx) untagAll(j *job) {
	for _, tag := range j.tags {
		t.untagJob(j, tag)
	}
}

func withoutAll(list, items []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(items, s) })
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
	for _, name := range in.from(2) {
		if add {
			j.tags = with(j.tags, name)
			t.tagJob(j, name)
		} else {
			t.untagJob(j, name)
		}
	}
	if !add {
		j.tags = withoutAll(j.tags, in.from(2))
	}
	return encode(j.tags)
}
