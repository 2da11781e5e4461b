package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
)

// contexts are brokers with names that the user has chosen. They are stored in a file that only the user can read,
// because it contains tokens.
type contexts struct {
	Current  string                  `toml:"current,omitempty"`
	Contexts map[string]namedContext `toml:"context,omitempty"`
}

// namedContext is one context.
type namedContext struct {
	Server string `toml:"server"`
	Token  string `toml:"token,omitempty"`

	TLS tlsFiles `toml:"tls,omitempty"`
}

// contextFile is the path of the file.
func contextFile() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "broker", "contexts.toml"), err
}

// readContexts reads the file; without one there are no contexts. A user without a home has none either.
func readContexts() (contexts, error) {
	none := contexts{Contexts: map[string]namedContext{}}
	path, err := contextFile()
	if err != nil {
		return none, nil // services have no home folder, and need no contexts
	}
	c := none
	if _, err := toml.DecodeFile(path, &c); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return none, nil
		}
		return none, UsageError(fmt.Errorf("read the contexts in %s: %w", path, err))
	}
	return c, nil
}

// write replaces the file as a whole.
func (c *contexts) write() error {
	path, err := contextFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(c); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(path), ".contexts-") // with mode 0600
	if err != nil {
		return err
	}
	_, err = part.Write(text.Bytes())
	if err = errors.Join(err, part.Sync(), part.Close()); err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return nil
}

// named returns the context with a name.
func (c *contexts) named(name string) (namedContext, error) {
	found, ok := c.Contexts[name]
	if !ok {
		return namedContext{},
			&ExitError{Code: ExitNotFound, Err: fmt.Errorf("there is no context %q; see 'broker context list'", name)}
	}
	return found, nil
}

func contextCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "context",
		Short: "manage named brokers",
		Long: "Give brokers names, and choose the broker for all commands.\n\n" +
			"  broker context add prod --server https://jobs.example.com --token …\n" +
			"  broker context use prod            from now on, for all commands\n" +
			"  broker queues --context prod       for one command; also BROKER_CONTEXT\n\n" +
			"--server and BROKER_URL come before the chosen context. Contexts are kept in broker/contexts.toml in the user's folder of settings.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listContextsCommand(), addContextCommand(), useContextCommand(), removeContextCommand())
	return cmd
}

func listContextsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "list contexts", Args: noArgs}
	out := addFormat(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := readContexts()
		if err != nil {
			return err
		}
		type row struct {
			Name    string `json:"name"`
			Server  string `json:"server"`
			Token   bool   `json:"has_token"`
			Current bool   `json:"current"`
		}
		rows := []row{}
		t := table{header: []string{"", "CONTEXT", "SERVER", "TOKEN"}}
		for _, name := range slices.Sorted(maps.Keys(c.Contexts)) {
			one := c.Contexts[name]
			rows = append(rows, row{name, one.Server, one.Token != "", name == c.Current})
			t.add(mark(name == c.Current, "*"), name, one.Server, mark(one.Token != "", "yes"))
		}
		if *out == formatJSON {
			return PrintValue(cmd, map[string]any{"contexts": rows})
		}
		return t.print(cmd.OutOrStdout())
	}
	return cmd
}

func addContextCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add NAME", Short: "add a context, or replace it; the first one is chosen", Args: cobra.ExactArgs(1),
		Example: "  broker context add prod --server https://jobs.example.com --token \"$TOKEN\"",
	}
	var one namedContext
	cmd.Flags().StringVar(&one.Server, "server", "",
		"address of the broker: `URL` (http, https, or unix:/path) or HOST[:PORT]")
	cmd.Flags().StringVar(&one.Token, "token", "", "bearer `TOKEN`")
	one.TLS.add(cmd.Flags())
	_ = cmd.MarkFlagRequired("server") // exists
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := newClient(one.Server, one.Token)
		if err != nil {
			return err
		}
		if err := errors.Join(one.TLS.absolute(), c.useTLS(one.TLS)); err != nil {
			return Failed(err)
		}
		return changeContexts(cmd, func(c *contexts) (string, error) {
			c.Contexts[args[0]] = one
			if c.Current == "" {
				c.Current = args[0]
			}
			return "context " + args[0] + " is added", nil
		})
	}
	return cmd
}

func useContextCommand() *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "choose the context for all commands", Args: cobra.ExactArgs(1),
		ValidArgsFunction: completeContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeContexts(cmd, func(c *contexts) (string, error) {
				one, err := c.named(args[0])
				c.Current = args[0]
				return "commands talk to " + args[0] + " at " + one.Server, err
			})
		},
	}
}

func removeContextCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "remove a context", Args: cobra.ExactArgs(1), ValidArgsFunction: completeContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeContexts(cmd, func(c *contexts) (string, error) {
				_, err := c.named(args[0])
				delete(c.Contexts, args[0])
				if c.Current == args[0] {
					c.Current = ""
				}
				return "context " + args[0] + " is removed", err
			})
		},
	}
}

// changeContexts reads the contexts, changes and writes them, and prints the message of change.
func changeContexts(cmd *cobra.Command, change func(*contexts) (string, error)) error {
	c, err := readContexts()
	if err != nil {
		return err
	}
	done, err := change(&c)
	if err == nil {
		err = c.write()
	}
	if err != nil {
		return Failed(err)
	}
	return printLine(cmd, "%s", done)
}
