package main

import "broker/integration/server"

// optionalProtocol is a protocol whose port is off unless a flag opens it, with the servers that clients of it use
// otherwise.
type optionalProtocol struct {
	name    string
	flag    string
	dialect dialect
	share   float64 // of the broker
	peers   func(missing map[string]string) []contender
	prepare func(address string) error // nil: nothing is to be done
}

func optionalProtocols() []optionalProtocol {
	return []optionalProtocol{
		{qlessName, "--qless", qless{qlessScript}, 0.1, func(missing map[string]string) []contender {
			return []contender{redisContender(trivialName, qless{trivialScript}, missing)}
		}, nil},
		{beanstalkName, "--beanstalk", beanstalk{}, 1, beanstalkds, nil},
		{conveyorName, "--conveyor", conveyor{}, 0.2, func(missing map[string]string) []contender {
			return []contender{
				redisContender("redis", conveyor{}, missing),
				redisContender("redis, every write synced", conveyor{}, missing, "--appendonly", "yes", "--appendfsync",
					"always"),
			}
		}, nil},
		{sqsName, "--sqs", sqsTens, 0.5, func(map[string]string) []contender { return nil }, createQueue},
	}
}

func redisContender(name string, d dialect, missing map[string]string, args ...string) contender {
	return contender{
		name: name, dialect: d, share: 0.1, missing: missing["redis-server"],
		start: func(dir string) (*running, error) { return peer(server.StartRedis(dir, args...)) },
	}
}

// optionalNames are the names of their groups.
func optionalNames() (names []string) {
	for _, d := range optionalProtocols() {
		names = append(names, d.name)
	}
	return names
}

func optionalGroups(built programs, missing map[string]string, durabilities []string) (all []group) {
	for _, d := range optionalProtocols() {
		g := group{name: d.name, contenders: d.peers(missing)}
		for _, durability := range durabilities {
			g.contenders = append(g.contenders, contender{
				name: "broker " + durability, dialect: d.dialect, share: d.share, ours: true,
				missing: missing["broker"],
				start:   func(dir string) (*running, error) { return d.broker(built.broker, dir, durability) },
			})
		}
		if d.name == sqsName {
			g.contenders = append(g.contenders,
				clusters(built, missing, contender{dialect: d.dialect, share: d.share}, layout{optional: &d})...)
			g.contenders = append(g.contenders, apiContenders(built.broker, missing, durabilities)...)
		}
		all = append(all, g)
	}
	return all
}

// apiName starts the names of what is measured over the HTTP API beside SQS.
const apiName = "/api/v1, "

func apiContenders(binary string, missing map[string]string, durabilities []string) (all []contender) {
	for _, durability := range durabilities {
		all = append(all, contender{
			name: apiName + durability, dialect: apiTens, share: 0.5, missing: missing["broker"],
			start: func(dir string) (*running, error) { return broker(binary, dir, durability, httpAddr) },
		})
	}
	return all
}

// broker starts a broker with the port open.
func (d optionalProtocol) broker(binary, dir, durability string) (*running, error) {
	addr, err := server.FreeAddr()
	if err != nil {
		return nil, err
	}
	o := server.BrokerOptions{Binary: binary, Durability: durability, Args: []string{d.flag, addr}}
	r, err := launch(dir, o, func(*server.BrokerServer) string { return addr })
	if err != nil || d.prepare == nil {
		return r, err
	}
	if err := d.prepare(addr); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}
