package process

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"broker/access"
	"broker/config"
	"broker/core"
)

// Settings are the settings of a broker, and the parts of them that package config cannot read, since it knows no other
// package: read once, for the check and for the broker.
type Settings struct {
	config.Config

	principals []access.Entry
	policies   map[policyName]core.JobPolicy
	limits     map[core.LimitID]core.Limit
	oldNames   []string                // see OldNames
	sharings   map[string]core.Sharing // by queue
}

// ReadSettings reads all sources. The error joins one config.Problem for each mistake.
func ReadSettings(sources config.Sources) (s Settings, err error) {
	s.Config, err = config.Load(sources, s.read)
	return s, err
}

// NewSettings reads the rest of settings that another command line has loaded.
func NewSettings(c *config.Config) (Settings, error) {
	s := Settings{Config: *c}
	problems := s.read(c)
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = p
	}
	return s, errors.Join(errs...)
}

// read reads the parts that package config leaves as texts, and returns their problems.
func (s *Settings) read(c *config.Config) []config.Problem {
	var problems []config.Problem
	s.principals = make([]access.Entry, len(c.Principals))
	for i := range c.Principals {
		setting := fmt.Sprintf("principal[%d]", i)
		problems = append(problems, readPrincipal(&s.principals[i], &c.Principals[i], setting)...)
	}
	for i := range c.Crons {
		if err := jobTemplate(&c.Crons[i].Job).Check(); err != nil {
			problems = append(problems, config.Problem{Setting: fmt.Sprintf("cron[%d].job", i), Text: err.Error()})
		}
	}
	var wrongPolicies, wrongLimits []config.Problem
	s.policies, wrongPolicies = policiesOf(c)
	s.limits, s.oldNames, wrongLimits = limitsOf(c)
	s.sharings = sharingsOf(c)
	return slices.Concat(problems, wrongPolicies, wrongLimits)
}

// readPrincipal reads one principal.
func readPrincipal(e *access.Entry, p *config.Principal, setting string) (problems []config.Problem) {
	complain := func(member, text string) {
		problems = append(problems, config.Problem{Setting: setting + member, Text: text})
	}
	e.Name, e.TLSSubject, e.FaktoryPassword = p.Name, p.TLSSubject, p.FaktoryPassword
	e.SQSAccessKey, e.SQSSecretKey = p.SQSAccessKey, p.SQSSecretKey
	if p.Name != "" && access.IsReserved(p.Name) {
		complain(".name", strconv.Quote(p.Name)+" is the name of clients without a principal")
	}
	if p.Token != "" {
		var err error
		if e.TokenSHA256, err = access.ParseTokenHash(p.Token); err != nil {
			complain(".token", "is neither sha256: and 64 hexadecimal digits nor the path of a file")
		}
	}
	for _, role := range p.Roles {
		g, err := access.ParseGrant(role)
		if err != nil {
			complain(".roles", err.Error())
		}
		e.Grants = append(e.Grants, g)
	}
	return problems
}

// takeTables copies the settings that can always change: the lists and tables, but for the principals.
func takeTables(to, from *Settings) {
	to.Routes, to.KeepDone, to.Crons, to.Pushes = from.Routes, from.KeepDone, from.Crons, from.Pushes
	to.Throttles, to.QueueLimits, to.Sharings = from.Throttles, from.QueueLimits, from.Sharings
	to.QueuePolicies, to.TypePolicies = from.QueuePolicies, from.TypePolicies
	to.policies, to.limits, to.sharings = from.policies, from.limits, from.sharings
	to.oldNames = from.oldNames
}

// reconcile calls set for each key whose value is not the same before and after, in the order of the keys. wanted is
// false for a key that after lacks.
func reconcile[K comparable, V any](
	before, after map[K]V, compare func(a, b K) int, set func(key K, to V, wanted bool),
) {
	keys := make([]K, 0, len(before)+len(after))
	for key := range before {
		keys = append(keys, key)
	}
	for key := range after {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compare)
	for _, key := range slices.Compact(keys) {
		had, known := before[key]
		to, wanted := after[key]
		if known != wanted || !reflect.DeepEqual(had, to) {
			set(key, to, wanted)
		}
	}
}
