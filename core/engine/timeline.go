package engine

import "broker/core"

// hydrateInspected adds to the answer to an Inspect what only the store has.
func (e *Engine) hydrateInspected(r *core.Reply) (err error) {
	brief := r.NoBody
	r.Cold, r.NoBody = false, false
	if !brief {
		if err = e.hydrateInfo(r.Info); err != nil {
			return err
		}
		r.Job = r.Info.Job
	}
	t := r.Info.Timeline
	if t == nil {
		return nil
	}
	stored, err := e.store.Timeline(r.Seq)
	if err != nil {
		return err
	}
	t.Entries = append(t.Entries, stored...) // newer ones have come since the decision: Trim drops those
	t.Trim()
	return nil
}
