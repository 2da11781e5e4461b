package console

import (
	"fmt"
	"html/template"
	"strings"

	"broker/operate/service"
)

// maxLinked limits the number of jobs in a column of the graph.
const maxLinked = 8

// Sizes of the graph, in pixels.
const (
	nodeWidth, nodeHeight = 176, 40
	nodeGap, columnStep   = 10, 226
	graphTop              = 22
)

// node is a job in the graph.
type node struct{ page, name, label, sub, state string }

// linkGraph draws the links of a job: its dependencies and parents on the left, its children on the right.
func (r *request) linkGraph(j *service.Job) (template.HTML, error) {
	var left, right []node
	if j.Parent != "" {
		left = append(left, r.nodeOf(j.Parent, "parent"))
	}
	if j.Batch != "" {
		left = append(left, r.batchNode(j.Batch))
	}
	for _, name := range j.After[:min(len(j.After), maxLinked)] {
		left = append(left, r.nodeOf(name, ""))
	}
	more := len(j.After) - maxLinked
	children, err := r.service.Jobs(r.Context(), r.caller, service.JobFilter{Parent: fmt.Sprintf("seq:%d", j.Seq)},
		service.JobPage{Limit: maxLinked + 1})
	if err != nil {
		return "", ignoreRefusal(err)
	}
	for i := range children.Jobs {
		if c := &children.Jobs[i]; i < maxLinked {
			right = append(right, node{"jobs", c.ID, c.Type, stateLabel(c.State), c.State})
		}
	}
	if len(left)+len(right) == 0 {
		return "", nil
	}
	self := node{"jobs", j.ID, j.Type, "this job", j.State}
	graph := drawGraph(left, self, right)
	if more > 0 || len(children.Jobs) > maxLinked {
		graph += template.HTML(`<p class="hint"><a href="jobs?parent=seq:` + fmt.Sprint(j.Seq) +
			`">All of them</a></p>`)
	}
	return graph, nil
}

// nodeOf returns the node for a linked job, which may be gone.
func (r *request) nodeOf(name, sub string) node {
	j, err := r.service.Job(r.Context(), r.caller, name)
	if err != nil {
		return node{"jobs", name, name, "gone", "scheduled"}
	}
	if sub != "" {
		sub += " · "
	}
	return node{"jobs", j.ID, j.Type, sub + stateLabel(j.State), j.State}
}

// batchNode returns the node for the batch of a job, which may be gone.
func (r *request) batchNode(id string) node {
	b, err := r.service.Batch(r.Context(), r.caller, id)
	if err != nil {
		return node{"batches", id, id, "batch", "scheduled"}
	}
	return node{"batches", id, batchLabel(b.Batch), "batch · " + num(b.Done) + " of " + num(b.Total), "blocked"}
}

// drawGraph draws up to three columns with lines between them.
func drawGraph(left []node, self node, right []node) template.HTML {
	columns := 1
	selfX := 0
	if len(left) > 0 {
		columns++
		selfX = columnStep
	}
	if len(right) > 0 {
		columns++
	}
	rows := max(len(left), len(right), 1)
	height := graphTop + rows*(nodeHeight+nodeGap) - nodeGap
	width := (columns-1)*columnStep + nodeWidth
	middle := graphTop + (height-graphTop-nodeHeight)/2
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="graph" role="group" aria-label="%s" width="%d" height="%d" viewBox="-2 -2 %d %d">`,
		plural(len(left), "link")+" before it, "+plural(len(right), "child job"), width+4, height+4, width+4, height+4)
	edge := func(x1, y1, x2, y2 int) {
		fmt.Fprintf(&b, `<path d="M%d %dC%d %d %d %d %d %d"/>`, x1, y1, (x1+x2)/2, y1, (x1+x2)/2, y2, x2, y2)
	}
	column := func(x int, title string, nodes []node, toSelf bool) {
		fmt.Fprintf(&b, `<text class="col" x="%d" y="12">%s</text>`, x, title)
		top := graphTop + (height-graphTop-len(nodes)*(nodeHeight+nodeGap)+nodeGap)/2
		for i, n := range nodes {
			y := top + i*(nodeHeight+nodeGap)
			if toSelf {
				edge(x+nodeWidth, y+nodeHeight/2, selfX, middle+nodeHeight/2)
			} else {
				edge(selfX+nodeWidth, middle+nodeHeight/2, x, y+nodeHeight/2)
			}
			drawNode(&b, x, y, n, "")
		}
	}
	if len(left) > 0 {
		column(0, "belongs to or comes after", left, true)
	}
	drawNode(&b, selfX, middle, self, ` class="self"`)
	if len(right) > 0 {
		column(selfX+columnStep, "children", right, false)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // all text in it is escaped
}

func drawNode(b *strings.Builder, x, y int, n node, class string) {
	fmt.Fprintf(b,
		`<a href="%s/%s" class="dot-%s"><rect%s x="%d" y="%d" width="%d" height="%d" rx="7"/><circle cx="%d" cy="%d" r="4"/><text x="%d" y="%d">%s</text><text class="sub" x="%d" y="%d">%s</text></a>`,
		n.page, template.HTMLEscapeString(pathEscape(n.name)), n.state, class, x, y, nodeWidth, nodeHeight, x+14,
		y+nodeHeight/2,
		x+26, y+17, template.HTMLEscapeString(short(20, n.label)), x+26, y+31,
		template.HTMLEscapeString(short(24, n.sub)))
}
