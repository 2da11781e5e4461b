//go:build !man

package main

import "github.com/spf13/cobra"

// buildCommands are commands of the build only; see man.go.
func buildCommands() []*cobra.Command { return nil }
