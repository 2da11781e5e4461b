package importer

import (
	"slices"
	"testing"
)

func TestEachPausedTubeIsPausedAfterItsFirstJob(t *testing.T) {
	t.Parallel()
	b := &beanstalk{paused: map[string]bool{"b": false, "d": false, "e": true}, window: 4}
	for _, tube := range []string{"a", "a", "b", "b", "c", "d", "d", "d", "e", "e"} {
		b.found = append(b.found, &beanstalkJob{tube: tube})
	}
	var moved, paused []string
	for len(b.found) > 0 {
		jobs, pauses := b.nextFound()
		text := ""
		for _, j := range jobs {
			text += j.tube
		}
		moved = append(moved, text)
		if pauses {
			paused = append(paused, jobs[0].tube)
			b.paused[jobs[0].tube] = true
		}
		b.found = b.found[len(jobs):]
	}
	if !slices.Equal(moved, []string{"aa", "b", "bc", "d", "ddee"}) || !slices.Equal(paused, []string{"b", "d"}) {
		t.Errorf("moved %q, paused %q", moved, paused)
	}
}
