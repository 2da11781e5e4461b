package machine

import (
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// steps is the work that operations have left for later steps, so that none holds the lock for long; the oldest first.
// An operation does what a step may, and leaves the rest. A step begins when TimerSteps is due, and goes on until it
// has touched as much as a step may. The work is not stored: a start does all of it, because it releases what
// connections hold, serves no client yet, and looks for what is due in every batch. What must be stored, package link
// leaves.
type steps struct {
	left  []func() (more bool) // each does the next part of one work
	timer timer.ID
}

// spent reports whether the current operation or step leaves everything else for later.
func (m *Machine) spent() bool { return m.links.StepOver() }

// inSteps does some work now, and leaves the rest for later steps. next does the next part of it, and counts what it
// touches.
func (m *Machine) inSteps(next func() (more bool)) {
	for !m.spent() {
		if !next() {
			return
		}
	}
	m.later(next)
}

// later leaves work for later steps.
func (m *Machine) later(next func() (more bool)) {
	m.steps.left = append(m.steps.left, next)
	if m.steps.timer == 0 {
		m.steps.timer = m.table.Timers.Add(m.table.Now, timer.Owner{Kind: table.TimerSteps})
	}
}

// stepsDue begins a step.
func (m *Machine) stepsDue() {
	m.steps.timer = 0
	at, isBehind := m.links.Behind()
	if !isBehind {
		m.freshEffort()
		m.step()
	}
	if len(m.steps.left) > 0 && m.steps.timer == 0 { // not if a work has left more
		m.steps.timer = m.table.Timers.Add(at, timer.Owner{Kind: table.TimerSteps})
	}
}

// step does some of the work that is left.
func (m *Machine) step() {
	for len(m.steps.left) > 0 && !m.spent() {
		if next := m.steps.left[0]; !next() {
			m.steps.left[0] = nil // next may have left more at the end
			if m.steps.left = m.steps.left[1:]; len(m.steps.left) == 0 {
				m.steps.left = nil
			}
		}
		m.actor = nil
		m.decideBroken()
	}
}
