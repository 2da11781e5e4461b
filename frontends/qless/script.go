package qless

import (
	"crypto/sha1" // the name of a script, not a secret
	"encoding/hex"
	"strings"
	"sync"
)

// scripts holds the scripts that clients have loaded, by SHA1. All are versions of the Qless script.
type scripts struct {
	mu    sync.Mutex // guards known
	known map[string]bool
}

// maxScripts limits the number of remembered versions.
const maxScripts = 1000

// noScript is Redis's error for an unknown SHA1. Clients compare it.
const noScript = "NOSCRIPT No matching script. Please use EVAL."

func (s *scripts) has(sha string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[strings.ToLower(sha)]
}

func (s *scripts) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.known)
}

// load remembers a text if it is the Qless script, and refuses any other.
func (s *scripts) load(text string) (sha, refusal string) {
	sum := sha1.Sum([]byte(text))
	sha = hex.EncodeToString(sum[:])
	switch {
	case isPlugin(text):
		return sha, "ERR script " + sha +
			" is a plugin made of the library of Qless, which is not served: this server has the " +
			"operations of the Qless script only"
	case isQless(text):
	case isSplitQless(text):
		return sha,
			"ERR script " + sha + " is one of the separate scripts of Qless before 0.9, which are not served: " +
				"use a client with the one script"
	default:
		return sha, "ERR script " + sha + " is not served: this server runs the Qless script only"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxScripts {
		clear(s.known)
	}
	s.known[sha] = true
	return sha, ""
}

// isQless recognizes the script: by its first two lines, or by the name of its table of operations.
func isQless(text string) bool {
	first, rest, _ := strings.Cut(text, "\n")
	second, _, _ := strings.Cut(rest, "\n")
	sha, ok := strings.CutPrefix(strings.TrimRight(first, "\r"), "-- Current SHA: ")
	if ok && len(sha) == 40 && strings.Trim(sha, "0123456789abcdefABCDEF") == "" &&
		strings.HasPrefix(second, "-- This is a generated file") {
		return true
	}
	return strings.Contains(text, "QlessAPI")
}

// isPlugin recognizes scripts that users of the clients write (LuaPlugin in Ruby): the library part of the Qless
// script, without its operations, followed by code that uses the library.
func isPlugin(text string) bool {
	return strings.Contains(text, "QlessJob") && !strings.Contains(text, "QlessAPI")
}

// isSplitQless recognizes the scripts of the first Qless versions, which had one script for each operation.
func isSplitQless(text string) bool {
	return strings.Contains(text, "'ql:") || strings.Contains(text, `"ql:`)
}
