package workqclient

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Field is one line of an inspect reply.
type Field struct{ Key, Value string }

// Object is one block of an inspect reply, with its fields in order.
type Object struct {
	Name   string
	Fields []Field
}

// Value is the value of a field; empty if there is none.
func (o Object) Value(key string) string {
	for _, f := range o.Fields {
		if f.Key == key {
			return f.Value
		}
	}
	return ""
}

// The fields of each kind of block, in order.
var (
	jobFields = []string{
		"name", "ttr", "ttl", "payload-size", "payload", "max-attempts", "attempts", "max-fails", "fails", "priority",
		"state", "created",
	}
	queueFields  = []string{"ready-len", "scheduled-len"}
	serverFields = []string{"active-clients", "evicted-jobs", "started"}
)

// InspectJob inspects a job.
func (c *Client) InspectJob(id string) (Object, error) {
	return c.inspectOne("inspect job "+id, jobFields)
}

// InspectQueue inspects a queue.
func (c *Client) InspectQueue(name string) (Object, error) {
	return c.inspectOne("inspect queue "+name, queueFields)
}

// InspectServer inspects the server.
func (c *Client) InspectServer() (Object, error) {
	return c.inspectOne("inspect server", serverFields)
}

// InspectQueues returns a page of the queues.
func (c *Client) InspectQueues(offset, limit int) ([]Object, error) {
	return c.inspect(fmt.Sprintf("inspect queues %d %d", offset, limit), queueFields)
}

// InspectJobs returns a page of the ready jobs of a queue.
func (c *Client) InspectJobs(name string, offset, limit int) ([]Object, error) {
	return c.inspect(fmt.Sprintf("inspect jobs %s %d %d", name, offset, limit), jobFields)
}

// InspectScheduled returns a page of the jobs of a queue that are not due yet.
func (c *Client) InspectScheduled(name string, offset, limit int) ([]Object, error) {
	return c.inspect(fmt.Sprintf("inspect scheduled-jobs %s %d %d", name, offset, limit), jobFields)
}

func (c *Client) inspectOne(line string, fields []string) (Object, error) {
	objects, err := c.inspect(line, fields)
	if err != nil {
		return Object{}, err
	}
	if len(objects) != 1 {
		return Object{}, &ProtocolError{fmt.Sprintf("%d objects for %q", len(objects), line)}
	}
	return objects[0], nil
}

func (c *Client) inspect(line string, fields []string) ([]Object, error) {
	if err := c.send(line, nil, false); err != nil {
		return nil, err
	}
	n, err := c.readCount(0)
	if err != nil {
		return nil, err
	}
	objects := make([]Object, 0, n)
	for range n {
		o, err := c.readObject(fields)
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

func (c *Client) readObject(fields []string) (Object, error) {
	head, err := c.readFields(2)
	if err != nil {
		return Object{}, err
	}
	n, err := canonicalInt(head[1])
	if err != nil {
		return Object{}, err
	}
	o := Object{Name: head[0]}
	want := fields
	if n == len(fields)+1 && &fields[0] == &jobFields[0] {
		want = append(fields[:n-1:n-1], "time") // scheduled jobs have one field more
	}
	if n != len(want) {
		return Object{}, &ProtocolError{fmt.Sprintf("object %s has %d fields, not %d", o.Name, n, len(want))}
	}
	for _, key := range want {
		value, err := c.readField(key, o)
		if err != nil {
			return Object{}, err
		}
		o.Fields = append(o.Fields, Field{key, value})
	}
	return o, nil
}

func (c *Client) readField(key string, o Object) (string, error) {
	if key == "payload" { // raw bytes, which may contain CRLF
		return c.readPayload(o.Value("payload-size"))
	}
	line, err := c.Line(0)
	if err != nil {
		return "", err
	}
	value, found := strings.CutPrefix(line, key+" ")
	if !found {
		return "", &ProtocolError{fmt.Sprintf("field %q where %q was due", line, key)}
	}
	switch key {
	case "name":
	case "created", "time", "started":
		if _, err := time.Parse("2006-01-02T15:04:05Z", value); err != nil {
			return "", &ProtocolError{fmt.Sprintf("field %s: %v", key, err)}
		}
	default:
		if _, err := canonicalInt(strings.TrimPrefix(value, "-")); err != nil {
			return "", err
		}
	}
	return value, nil
}

func (c *Client) readPayload(size string) (string, error) {
	head := make([]byte, len("payload "))
	if _, err := io.ReadFull(c.in, head); err != nil {
		return "", err
	}
	if string(head) != "payload " {
		return "", &ProtocolError{fmt.Sprintf("field %q where the payload was due", head)}
	}
	body, err := c.readBody(size)
	return string(body), err
}
