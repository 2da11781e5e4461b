package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// profiles is the folder for CPU profiles of the broker under each load; empty: no profiles.
var profiles string

// profiling is the environment of a broker whose profiles are taken.
func profiling() []string {
	if profiles == "" {
		return nil
	}
	return []string{"BROKER_HTTP_PROFILING=true"}
}

// profileSeconds is the length of one profile; profiles of a measurement are taken back to back.
const profileSeconds = 2

// profile takes profiles of each process of a server until stop is called. Those of a cluster's leader are named so. It
// discards a profile that the end of the load cuts off.
func (r *running) profile(name string) (stop func()) {
	if profiles == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var each sync.WaitGroup
	for i, addr := range r.http {
		of := fmt.Sprintf("%s-%d", name, r.pids[i])
		if r.pids[i] == r.leader {
			of += "-leader"
		}
		each.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				path := filepath.Join(profiles, fmt.Sprintf("%s-%d.pprof", of, n))
				if err := saveProfile(ctx, addr, path); err != nil && ctx.Err() == nil {
					_, _ = fmt.Fprintln(os.Stderr, "profile:", err)
					return
				}
			}
		})
	}
	return func() {
		cancel()
		each.Wait()
	}
}

func saveProfile(ctx context.Context, addr, path string) error {
	ctx, cancel := context.WithTimeout(ctx, (profileSeconds+10)*time.Second)
	defer cancel()
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", addr, profileSeconds)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // all of it has been read
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %.100s", url, resp.Status, data)
	}
	return os.WriteFile(path, data, 0o600)
}
