package main

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// cleanup runs at the end of the program, however it ends: it stops servers and removes folders.
var cleanup undoList

type undoList struct {
	mu   sync.Mutex // guards todo
	todo []*sync.Once
	undo map[*sync.Once]func()
}

// add registers an undo function. The function it returns runs it once; a second caller waits for the first.
func (l *undoList) add(undo func()) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.undo == nil {
		l.undo = make(map[*sync.Once]func())
	}
	once := new(sync.Once)
	l.todo = append(l.todo, once)
	l.undo[once] = undo
	return func() {
		once.Do(undo)
		l.forget(once)
	}
}

func (l *undoList) forget(once *sync.Once) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.todo = slices.DeleteFunc(l.todo, func(o *sync.Once) bool { return o == once })
	delete(l.undo, once)
}

// runAll runs the undo functions in reverse order: a server is stopped before its folder is removed.
func (l *undoList) runAll() {
	for {
		l.mu.Lock()
		if len(l.todo) == 0 {
			l.mu.Unlock()
			return
		}
		last := l.todo[len(l.todo)-1]
		undo := l.undo[last]
		l.mu.Unlock()
		last.Do(undo)
		l.forget(last)
	}
}

// stopping is set once a signal has arrived; later errors are consequences of it and are not reported.
var stopping atomic.Bool

// cleanUpOnSignal cleans up and exits on a signal.
func cleanUpOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// SIGPIPE is ignored: screen.Write sees the error and handles it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() { // ends with the program
		got := <-signals
		fmt.Fprintln(os.Stderr, "bench: stopped by", got)
		stopping.Store(true)
		cleanup.runAll()
		const shellsOffset = 128 // of the exit code of a program that a signal ended
		code := shellsOffset
		if number, ok := got.(syscall.Signal); ok {
			code += int(number)
		}
		os.Exit(code)
	}()
}

// screen is standard output. If its reader is gone (`| head`), the program cleans up and exits.
type screen struct{}

func (screen) Write(p []byte) (int, error) {
	n, err := os.Stdout.Write(p)
	if err != nil {
		cleanup.runAll()
		os.Exit(1)
	}
	return n, nil
}
