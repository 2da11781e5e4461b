package server

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// natsModule is the NATS server that clusters are compared with. It is built with its own go.mod, so that this module
// does not need its dependencies; the first build needs the Go proxy.
const natsModule = "github.com/nats-io/nats-server/v2@v2.15.2"

// BuildNATS downloads and compiles the NATS server.
func BuildNATS(dir string) (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", natsModule).Output()
	var module struct{ Dir, Error string }
	if failed := json.Unmarshal(out, &module); failed == nil && module.Error != "" {
		return "", fmt.Errorf("download %s: %s", natsModule, module.Error)
	}
	if err != nil {
		return "", fmt.Errorf("download %s: %w", natsModule, err)
	}
	return goBuild(module.Dir, ".", filepath.Join(dir, "nats-server"))
}

// StartNATS starts a cluster of so many NATS servers with JetStream, which syncs every write.
func StartNATS(binary, dir string, nodes int) (all []*Peer, err error) {
	defer func() {
		if err != nil {
			for _, p := range all {
				p.Kill()
			}
		}
	}()
	addrs, routes := make([]string, 2*nodes), make([]string, nodes)
	for i := range addrs {
		if addrs[i], err = FreeAddr(); err != nil {
			return nil, err
		}
	}
	for i := range nodes {
		routes[i] = fmt.Sprintf("%q", "nats://"+addrs[nodes+i])
	}
	for i := range nodes {
		folder := filepath.Join(dir, fmt.Sprint("nats-", i+1))
		if err := os.Mkdir(folder, 0o700); err != nil {
			return all, err
		}
		settings := fmt.Sprintf("server_name: nats-%d\nlisten: %q\njetstream { store_dir: %q, sync_interval: always, max_file_store: 64GB }\n"+
			"cluster { name: bench, listen: %q, routes: [%s] }\n", i+1, addrs[i], folder, addrs[nodes+i],
			strings.Join(routes, ", "))
		path := filepath.Join(folder, "nats.conf")
		if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
			return all, err
		}
		p, err := Launch(Spec{
			Name: fmt.Sprint("nats-", i+1), Argv: []string{binary, "-c", path}, Dir: folder, Logs: folder,
		})
		if err != nil {
			return all, err
		}
		all = append(all, &Peer{Process: p, Addr: addrs[i]})
	}
	for _, p := range all {
		if err := WaitListening(p.Process, p.Addr, peerStart); err != nil {
			return all, err
		}
	}
	return all, nil
}
