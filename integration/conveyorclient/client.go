// Package conveyorclient sends what the client and the worker of Conveyor send, with the Redis library that they use.
// Their own module is unknown to the checksum database of Go, without which nothing says that it is the published one.
package conveyorclient

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// replyWait is how long a reply may take; the machine may be busy.
const replyWait = 2 * time.Minute

const (
	namespace  = "conv:"
	popWait    = 2 * time.Second
	retryAfter = 2 * time.Second
	maxRetries = 3
)

// Client is a client or a worker. Several goroutines may use it.
type Client struct {
	rdb    *redis.Client
	worker string
}

// Open makes a client. It connects when it sends.
func Open(address string) *Client {
	rdb := redis.NewClient(&redis.Options{
		Addr: address, DialTimeout: replyWait, ReadTimeout: replyWait, ContextTimeoutEnabled: true,
	})
	return &Client{rdb: rdb, worker: uuid.NewString()}
}

// Close closes the connections.
func (c *Client) Close() error { return c.rdb.Close() }

func ofJob(id string) string { return namespace + "job:" + id }

// NewID makes a UUID.
func NewID() string { return uuid.NewString() }

// Add submits a job. A job without a UUID gets one.
func (c *Client) Add(ctx context.Context, j *Job) error {
	if j.UUID == "" {
		j.UUID = NewID()
	}
	if j.Type == "" {
		j.Type = j.Queue
	}
	switch {
	case j.Parent != "":
		return c.rdb.LPush(ctx, ofJob(j.Parent)+":children", j.encode()).Err()
	case j.Predecessor != "":
		return c.rdb.LPush(ctx, ofJob(j.Predecessor)+":onComplete", j.encode()).Err()
	case j.RunAt.After(time.Now()):
		return c.rdb.ZAdd(ctx, namespace+"scheduled", redis.Z{Score: float64(j.RunAt.Unix()), Member: j.encode()}).Err()
	}
	return c.rdb.LPush(ctx, namespace+"queue:"+j.Queue, j.encode()).Err()
}

// Pop takes a job and confirms it; nil: there was none for two seconds.
func (c *Client) Pop(ctx context.Context, queues ...string) (*Job, error) {
	keys := make([]string, len(queues))
	for i, q := range queues {
		if err := c.rdb.ZAdd(ctx, namespace+"queues:active",
			redis.Z{Score: float64(time.Now().Unix()), Member: q}).Err(); err != nil {
			return nil, err
		}
		keys[i] = namespace + "queue:" + q
	}
	popped, err := c.brpop(ctx, keys)
	if len(popped) == 0 || err != nil {
		return nil, err
	}
	j, err := decode([]byte(popped[1]))
	if err != nil {
		return nil, err
	}
	return j, errors.Join(
		c.rdb.Set(ctx, ofJob(j.UUID), popped[1], 0).Err(),
		c.rdb.SAdd(ctx, namespace+"worker:active:"+c.worker, j.UUID).Err(),
		c.rdb.SAdd(ctx, namespace+"jobs:active", j.UUID).Err(),
	)
}

// brpop sends BRPOP. The library's own BRPop gives up ten seconds after the wait, and then the job that comes is lost
// with the connection.
func (c *Client) brpop(ctx context.Context, keys []string) (popped []string, err error) {
	words := []any{"BRPOP"}
	for _, key := range keys {
		words = append(words, key)
	}
	popped, err = c.rdb.Do(ctx, append(words, popWait.Seconds())...).StringSlice()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return popped, err
}

// Finish closes a job that has run: it, and each ancestor whose last open child it was. closed reports whether the
// family is closed up to the oldest.
func (c *Client) Finish(ctx context.Context, j *Job) (closed bool, err error) {
	if err := c.rdb.SRem(ctx, namespace+"worker:active:"+c.worker, j.UUID).Err(); err != nil {
		return false, err
	}
	key := ofJob(j.UUID)
	children, err := c.release(ctx, key+":children")
	if err != nil || children > 0 {
		return false, err
	}
	if open, err := c.rdb.SCard(ctx, key+":active").Result(); err != nil || open > 0 {
		return false, err
	}
	if _, err := c.release(ctx, key+":onComplete"); err != nil {
		return false, err
	}
	closed = true
	if j.Parent != "" {
		if closed, err = c.closeParent(ctx, j); err != nil {
			return false, err
		}
	}
	if err := c.rdb.SRem(ctx, namespace+"jobs:active", j.UUID).Err(); err != nil {
		return false, err
	}
	if err := c.count(ctx, j, "success"); err != nil {
		return false, err
	}
	return closed, c.rdb.Del(ctx, key).Err()
}

func (c *Client) closeParent(ctx context.Context, j *Job) (closed bool, err error) {
	if err := c.rdb.SRem(ctx, ofJob(j.Parent)+":active", j.UUID).Err(); err != nil {
		return false, err
	}
	raw, err := c.rdb.Get(ctx, ofJob(j.Parent)).Bytes()
	if err != nil {
		return false, fmt.Errorf("the parent of %s: %w", j.UUID, err)
	}
	parent, err := decode(raw)
	if err != nil {
		return false, err
	}
	return c.Finish(ctx, parent)
}

// release pushes what waits in a list to its queues.
func (c *Client) release(ctx context.Context, key string) (n int, err error) {
	for {
		raw, err := c.rdb.RPop(ctx, key).Bytes()
		if errors.Is(err, redis.Nil) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		j, err := decode(raw)
		if err != nil {
			return n, err
		}
		if err := c.rdb.LPush(ctx, namespace+"queue:"+j.Queue, raw).Err(); err != nil {
			return n, err
		}
		n++
	}
}

// Fail ends a run that failed: the job is tried again, or is kept as failed.
func (c *Client) Fail(ctx context.Context, id string) error {
	raw, err := c.rdb.Get(ctx, ofJob(id)).Bytes()
	if err != nil {
		return err
	}
	j, err := decode(raw)
	if err != nil {
		return err
	}
	j.Retry++
	limit := uint64(maxRetries)
	if j.MaxRetries > 0 {
		limit = j.MaxRetries
	}
	p := c.rdb.Pipeline()
	key := ofJob(id)
	p.Del(ctx, key)
	p.Del(ctx, key+":onComplete")
	p.Del(ctx, key+":children")
	p.SRem(ctx, namespace+"jobs:active", id)
	result := "error"
	if j.Retry >= limit {
		result = "failure"
		p.LPush(ctx, namespace+"failed", j.encode())
	} else {
		p.ZAdd(ctx, namespace+"scheduled",
			redis.Z{Score: float64(time.Now().Add(retryAfter).Unix()), Member: j.encode()})
	}
	if _, err := p.Exec(ctx); err != nil {
		return err
	}
	return c.count(ctx, j, result)
}

// Worker is the name under which the client holds jobs.
func (c *Client) Worker() string { return c.worker }

// Prune restarts the jobs of a worker that is gone.
func (c *Client) Prune(ctx context.Context, worker string) (n int, err error) {
	for ; ; n++ {
		id, err := c.rdb.SPop(ctx, namespace+"worker:active:"+worker).Result()
		if errors.Is(err, redis.Nil) {
			return n, c.rdb.ZRem(ctx, namespace+"workers:active", worker).Err()
		}
		if err != nil {
			return n, err
		}
		key := ofJob(id)
		raw, err := c.rdb.Get(ctx, key).Bytes()
		if err != nil {
			return n, fmt.Errorf("job %s of worker %s: %w", id, worker, err)
		}
		j, err := decode(raw)
		if err != nil {
			return n, err
		}
		p := c.rdb.Pipeline()
		p.Del(ctx, key)
		p.Del(ctx, key+":onComplete")
		p.Del(ctx, key+":children")
		p.SRem(ctx, namespace+"jobs:active", id)
		p.LPush(ctx, namespace+"queue:"+j.Queue, raw)
		if _, err := p.Exec(ctx); err != nil {
			return n, err
		}
	}
}

// count counts an end for the charts.
func (c *Client) count(ctx context.Context, j *Job, result string) error {
	minute := time.Now().Format("2006-01-02_15:04")
	for _, key := range []string{"hist:" + result + ":" + minute, "j_hist:" + j.Type + ":" + result + ":" + minute} {
		if err := c.rdb.Incr(ctx, namespace+key).Err(); err != nil {
			return err
		}
		if err := c.rdb.Expire(ctx, namespace+key, time.Hour).Err(); err != nil {
			return err
		}
	}
	return nil
}

// Housekeep sends what a worker sends from time to time: its check-in, the search for workers that are gone and for
// jobs that are due.
func (c *Client) Housekeep(ctx context.Context) error {
	now := time.Now()
	if err := c.rdb.ZAdd(ctx, namespace+"workers:active",
		redis.Z{Score: float64(now.Unix()), Member: c.worker}).Err(); err != nil {
		return err
	}
	due, err := c.rdb.ZRangeByScore(ctx, namespace+"scheduled",
		&redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(now.Unix(), 10)}).Result()
	if err != nil {
		return err
	}
	if len(due) > 0 {
		return fmt.Errorf("%d jobs are due and still scheduled", len(due))
	}
	return nil
}

// Failed is the number of jobs that failed finally.
func (c *Client) Failed(ctx context.Context) (n int64, err error) {
	return c.rdb.LLen(ctx, namespace+"failed").Result()
}

// Active is the number of jobs that were popped and are not closed.
func (c *Client) Active(ctx context.Context) (n int64, err error) {
	return c.rdb.SCard(ctx, namespace+"jobs:active").Result()
}

// Work runs jobs until the context ends or a command fails. A job whose run returns an error has failed.
func (c *Client) Work(ctx context.Context, run func(ctx context.Context, j *Job) error, queues ...string) error {
	for ctx.Err() == nil {
		j, err := c.Pop(ctx, queues...)
		if err != nil {
			return err
		}
		if j == nil {
			continue
		}
		if run(ctx, j) != nil {
			err = c.Fail(ctx, j.UUID)
		} else {
			_, err = c.Finish(ctx, j)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
