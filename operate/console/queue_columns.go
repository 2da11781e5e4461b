package console

import (
	"html/template"
	"net/url"
	"strings"

	"broker/operate/service"
)

// queueColumn is a column of the list of queues.
type queueColumn struct {
	Label string
	Sort  string // the key by which the list is sorted; empty: not by this column
	Right bool   // for numbers
	Class string // of the cells, for the style
	Cell  func(*queueRow) queueCell
}

// queueCell is what a column shows of a queue.
type queueCell struct {
	Text, Title string
	Class       string // of the text
	URL         string // link of the text; empty: none
	State       string // of the queue, behind the text
	Chart       template.HTML
	Blank       bool // left out where the table is shown as tiles
}

// queueColumns are the columns of the list of queues.
var queueColumns = []queueColumn{
	{Label: "Queue", Sort: "name", Class: "main cut", Cell: func(q *queueRow) queueCell {
		c := queueCell{Text: short(60, q.Name), URL: "queues/" + pathEscape(q.Name)}
		if q.Paused {
			c.State = "paused"
		}
		return c
	}},
	{Label: "Why it waits", Class: "cut why", Cell: func(q *queueRow) queueCell {
		if q.Wait == nil {
			return missing(true)
		}
		return queueCell{Text: q.Wait.Text, Title: q.Wait.Text}
	}},
	{Label: "Workers", Right: true, Cell: func(q *queueRow) queueCell {
		switch {
		case q.Workers > 0:
			return queueCell{Text: num(q.Workers)}
		case q.Ready > 0:
			return queueCell{Text: "0", Class: "bad"}
		}
		return queueCell{Text: "0", Class: "zero"}
	}},
	countColumn("Ready", "ready", "", func(q *service.Queue) int { return q.Ready }),
	countColumn("Running", "leased", "", func(q *service.Queue) int { return q.Leased }),
	countColumn("Retrying", "retrying", "", func(q *service.Queue) int { return q.Retrying }),
	countColumn("Scheduled", "scheduled", "", func(q *service.Queue) int { return q.Scheduled }),
	countColumn("Dead", "dead", "bad", func(q *service.Queue) int { return q.Dead }),
	{Label: "Oldest", Sort: "latency", Right: true, Cell: func(q *queueRow) queueCell {
		if q.OldestS == 0 {
			return missing(true)
		}
		return queueCell{Text: seconds(q.OldestS)}
	}},
	{Label: "In", Right: true, Cell: func(q *queueRow) queueCell { return rateCell(&q.Queue, q.InRate) }},
	{Label: "Out", Right: true, Cell: func(q *queueRow) queueCell { return rateCell(&q.Queue, q.OutRate) }},
	{Label: "Last 30 min", Cell: func(q *queueRow) queueCell { return queueCell{Chart: q.Spark, Blank: true} }},
}

// countColumn is the column of a count of jobs in one state, which leads to them.
func countColumn(label, state, class string, n func(*service.Queue) int) queueColumn {
	return queueColumn{Label: label, Sort: state, Right: true, Cell: func(q *queueRow) queueCell {
		count := n(&q.Queue)
		if count == 0 {
			return queueCell{Text: "0", Class: "zero"}
		}
		return queueCell{
			Text: num(count), Class: class, URL: "jobs?queue=" + url.QueryEscape(q.Name) + "&state=" + state,
		}
	}}
}

// unmeasured says why a queue has no rates.
const unmeasured = "only the 1,000 busiest queues are measured"

func rateCell(q *service.Queue, perSecond float64) queueCell {
	switch {
	case !q.Measured:
		return queueCell{Text: "–", Class: "zero", Title: unmeasured}
	case perSecond == 0:
		return queueCell{Text: "0", Class: "zero"}
	}
	return queueCell{Text: float(perSecond) + "/s"}
}

// rateFigure is a rate as a figure of a queue's page.
func rateFigure(label string, q *service.Queue, perSecond float64, line template.HTML) figure {
	if !q.Measured {
		return figure{Label: label, Value: "–", Note: unmeasured}
	}
	return figure{Label: label, Value: float(perSecond), Unit: "/s", Spark: line}
}

// missing is the cell for a value that a queue does not have.
func missing(blank bool) queueCell { return queueCell{Text: "–", Class: "zero", Blank: blank} }

// queueHead is the head of a column. Its link sorts the list.
type queueHead struct {
	*queueColumn

	URL    template.URL // empty: the list is not sorted by this column
	Chosen bool
	Sorted string // ascending or descending
}

// queueHeads returns the heads of the columns for a list in an order. Numbers are sorted from the largest at first.
func (r *request) queueHeads(sort string) []queueHead {
	heads := make([]queueHead, len(queueColumns))
	for i := range queueColumns {
		c := &queueColumns[i]
		heads[i].queueColumn = c
		if c.Sort == "" {
			continue
		}
		name, down := strings.CutPrefix(sort, "-")
		heads[i].Chosen, heads[i].Sorted = name == c.Sort, "ascending"
		if down {
			heads[i].Sorted = "descending"
		}
		next := c.Sort
		if heads[i].Chosen && !down || !heads[i].Chosen && c.Right {
			next = "-" + next
		}
		heads[i].URL = with(r.query, "sort", next, "cursor", "")
	}
	return heads
}
