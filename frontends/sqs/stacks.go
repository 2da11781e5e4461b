package sqs

// maxIdleStacks is how many goroutines wait for the next function.
const maxIdleStacks = 16

// stacks runs functions that need a deep stack, on goroutines whose stacks have grown before. A goroutine that will
// wait for a long time does not call such functions itself, because its stack would stay large while it waits.
type stacks struct {
	tasks  chan func()
	idle   chan struct{}   // has an element for each goroutine that waits
	ending <-chan struct{} // closed when the front-end ends
}

func newStacks(ending <-chan struct{}) stacks {
	return stacks{tasks: make(chan func()), idle: make(chan struct{}, maxIdleStacks), ending: ending}
}

// run calls fn and returns when it has returned. fn must not panic.
func (s *stacks) run(fn func()) {
	done := make(chan struct{})
	task := func() {
		fn()
		close(done)
	}
	select {
	case s.tasks <- task:
	default:
		go s.work(task) // ends with the front-end, or if enough others wait
	}
	<-done
}

func (s *stacks) work(task func()) {
	for {
		task()
		select {
		case s.idle <- struct{}{}:
		default:
			return
		}
		select {
		case task = <-s.tasks:
		case <-s.ending:
			return
		}
		<-s.idle
	}
}
