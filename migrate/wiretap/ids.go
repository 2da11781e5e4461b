package wiretap

import "strconv"

// idPairs maps the ids of jobs at the first server to ids at the second server, and back. It forgets the oldest pairs.
// A forgotten job counts as a job from before the comparison.
type idPairs struct {
	young, old generation
	aliased    bool // a connection has got another job than at the first server
}

type generation struct {
	down map[string]string // id at the first server → id at the second server
	up   map[string]string // the reverse
}

// generationSize is the number of ids in a generation. Two generations are kept.
const generationSize = 250_000

func newGeneration() generation {
	return generation{down: make(map[string]string), up: make(map[string]string)}
}

func (p *idPairs) learn(up, down string) {
	if p.young.down == nil || len(p.young.down) >= generationSize {
		p.old, p.young = p.young, newGeneration()
	}
	p.young.down[up], p.young.up[down] = down, up
}

// alias replaces a job by another one in the later requests of a connection.
func (p *idPairs) alias(line int, up, down string) {
	p.aliased = true
	p.learn(aliasKey(line, up), down)
	if was, known := p.up(down); !known || was == aliasKey(line, up) {
		delete(p.young.up, down)
	}
}

func aliasKey(line int, up string) string { return strconv.Itoa(line) + "\x00" + up }

// down returns the id at the second server.
func (p *idPairs) down(line int, up string) (string, bool) {
	if p.aliased {
		if id, known := lookUp(p.young.down, p.old.down, aliasKey(line, up)); known {
			return id, true
		}
	}
	return lookUp(p.young.down, p.old.down, up)
}

// up returns the id at the first server.
func (p *idPairs) up(down string) (string, bool) { return lookUp(p.young.up, p.old.up, down) }

func lookUp(young, old map[string]string, key string) (string, bool) {
	v, known := young[key]
	if !known {
		v, known = old[key]
	}
	return v, known
}
