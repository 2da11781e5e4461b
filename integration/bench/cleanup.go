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

// cleanup is what must be undone at the end of the run, however it ends: servers stopped, folders removed.
var cleanup undoList

type undoList struct {
	mu   sync.Mutex // guards todo
	todo []*sync.Once
	undo map[*sync.Once]func()
}

// add notes what must be undone. What it answers does it, once; whoever calls it a second time waits for the first.
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

// runAll undoes everything, the latest first: a server is stopped before its folder goes.
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

// stopping is set once a signal has come: it ends the program, and what fails from then on fails because of it.
var stopping atomic.Bool

// cleanUpOnSignal ends the program on a signal, with nothing left behind.
func cleanUpOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// Nobody reads this one: screen.Write sees the error, and acts on it.
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

// screen is standard output. Once nobody reads it the run is over: | head must leave nothing behind either.
type screen struct{}

func (screen) Write(p []byte) (int, error) {
	n, err := os.Stdout.Write(p)
	if err != nil {
		cleanup.runAll()
		os.Exit(1)
	}
	return n, nil
}
