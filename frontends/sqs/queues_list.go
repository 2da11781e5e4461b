package sqs

import (
	"cmp"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"

	"broker/access"
	"broker/core"
)

// maxListed is the maximum length of a page of queues.
const maxListed = 1000

type listQueuesInput struct {
	QueueNamePrefix string
	MaxResults      *int
	NextToken       string
}

type listQueuesOutput struct {
	QueueURLs []string `json:"QueueUrls,omitempty" query:"QueueUrl"`
	NextToken string   `json:",omitempty"`
}

// listQueues lists the queues of all protocols that the caller may see, in the order of their names. Without MaxResults
// a list ends after 1,000.
func (q *request) listQueues(in *listQueuesInput) (any, error) {
	limit, after, err := pageOf(in.MaxResults, in.NextToken)
	if err != nil {
		return nil, err
	}
	if !q.from.principal.MaySome(access.Read) && !q.from.principal.MaySome(access.Produce) &&
		!q.from.principal.MaySome(access.Consume) {
		return nil, q.front.forbid("*")
	}
	names, err := q.front.names(in.QueueNamePrefix, after, q.mayUse, limit+1)
	if err != nil {
		return nil, err
	}
	out := &listQueuesOutput{}
	if len(names) > limit {
		names = names[:limit]
		if in.MaxResults != nil {
			out.NextToken = tokenOf(names[limit-1])
		}
	}
	for _, name := range names {
		out.QueueURLs = append(out.QueueURLs, q.urlOf(name))
	}
	return out, nil
}

// pageOf reads the length and the start of a page.
func pageOf(maxResults *int, token string) (limit int, after string, err error) {
	limit = maxListed
	if maxResults != nil {
		if limit = *maxResults; limit < 1 || limit > maxListed {
			return 0, "", badValue(limit, "MaxResults", "Must be an integer between 1 and 1000.")
		}
	}
	raw, err := base64.URLEncoding.DecodeString(token)
	if err != nil {
		return 0, "", badValue(shorten(token), "NextToken", "Not a token of this service.")
	}
	return limit, string(raw), nil
}

func tokenOf(last string) string { return base64.URLEncoding.EncodeToString([]byte(last)) }

// names returns the names of the first queues after the given one for which visible returns true.
func (f *Frontend) names(prefix, after string, visible func(string) bool, limit int) ([]string, error) {
	all := make(map[string]bool)
	f.mu.RLock()
	for name := range f.queues {
		if strings.HasPrefix(name, prefix) && name > after && visible(name) {
			all[name] = true
		}
	}
	f.mu.RUnlock()
	c := f.open(caller{internal: true})
	defer c.Close()
	cursor := ""
	if after != "" {
		cursor = f.coreName(after)
	}
	for found := 0; found < limit; {
		r, err := c.Ask(&core.ListQueues{Tag: 1, Prefix: f.coreName(prefix), After: cursor, Limit: maxListed})
		if err != nil {
			return nil, err
		}
		for i := range r.Queues {
			cursor = r.Queues[i].Name
			name := strings.TrimPrefix(cursor, f.opts.Namespace)
			if validQueueName(name) && visible(name) {
				all[name] = true
				found++
			}
		}
		if len(r.Queues) < maxListed {
			break
		}
	}
	sorted := slices.Sorted(maps.Keys(all))
	return sorted[:min(limit, len(sorted))], nil
}

type attributeNames struct {
	target
	AttributeNames []string `query:"AttributeName"`
}

type attributesOutput struct {
	Attributes map[string]string `json:",omitempty" query:"Attribute"`
}

func (q *request) getQueueAttributes(of *queue, in *attributeNames) (any, error) {
	out := &attributesOutput{Attributes: make(map[string]string)}
	if len(in.AttributeNames) == 0 {
		return out, nil
	}
	info, err := q.front.inspect(of.Name)
	if err != nil {
		return nil, err
	}
	if info == nil {
		info = &core.QueueInfo{}
	}
	values := map[string]string{
		queueARN: q.front.arnOf(of.Name), createdAt: strconv.FormatInt(of.CreatedAt, 10),
		modifiedAt:    strconv.FormatInt(cmp.Or(of.ModifiedAt, of.CreatedAt), 10),
		countVisible:  strconv.Itoa(info.Ready()),
		countInFlight: strconv.Itoa(info.Leased),
		countDelayed:  strconv.Itoa(info.Scheduled + info.Retrying + info.Blocked),
	}
	for _, s := range settings {
		if value := of.get(s.name); value != "" {
			values[s.name] = value
		}
	}
	for _, name := range in.AttributeNames {
		switch {
		case name == allAttributes:
			maps.Copy(out.Attributes, values)
		case settingOf(name) == nil && !slices.Contains(readOnly, name):
			return nil, refuse(invalidAttributeName, "Unknown Attribute %s.", name)
		case values[name] != "":
			out.Attributes[name] = values[name]
		}
	}
	return out, nil
}
