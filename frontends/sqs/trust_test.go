package sqs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/client"
)

// presign makes a URL that works without the secret.
func presign(t *testing.T, f *fixture, target, secret string) string {
	t.Helper()
	now := f.clock.Now().Time().UTC()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	scope := []string{now.Format("20060102"), "us-east-1", "sqs", "aws4_request"}
	q.Set("X-Amz-Algorithm", signAlgorithm)
	q.Set("X-Amz-Credential", exampleKey+"/"+strings.Join(scope, "/"))
	q.Set("X-Amz-Date", now.Format(signTime))
	q.Set("X-Amz-Expires", "600")
	q.Set("X-Amz-SignedHeaders", "host")
	u.RawQuery = q.Encode()
	r := httptest.NewRequest(http.MethodPost, u.String(), nil)
	s := &signature{key: exampleKey, scope: scope, headers: []string{"host"}, at: now.Format(signTime)}
	sum := sha256.Sum256([]byte(s.canonical(r, nil)))
	key := []byte("AWS4" + secret)
	for _, part := range scope {
		key = sign(key, part)
	}
	q.Set("X-Amz-Signature", hex.EncodeToString(sign(key,
		signAlgorithm+"\n"+s.at+"\n"+strings.Join(scope, "/")+"\n"+hex.EncodeToString(sum[:]))))
	u.RawQuery = q.Encode()
	return u.String()
}

func TestPresignedURLAdmitsNoOtherAction(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	control.Load([]access.Entry{{
		Name: "shop", SQSAccessKey: exampleKey, SQSSecretKey: exampleSecret,
		Grants: []access.Grant{{Role: access.Admin}},
	}})
	f := setupFor(t, control, "")
	core.DoOnce(f.engine, core.Internal, &core.Submit{Job: &core.Job{Queue: "orders", Body: []byte("m")}})
	link := presign(t, f, "http://queues.test/000000000000/orders?Action=GetQueueAttributes", exampleSecret)
	for _, c := range []struct {
		target string
		status int
	}{{"", 200}, {"AmazonSQS.PurgeQueue", 403}} {
		r := httptest.NewRequest(http.MethodPost, link, nil)
		if c.target != "" {
			r.Header.Set("X-Amz-Target", c.target)
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("with the target %q: %d %s, want %d", c.target, w.Code, w.Body, c.status)
		}
	}
	if info, err := f.inspect("orders"); err != nil || info.Ready() != 1 {
		t.Errorf("the queue is %+v, %v", info, err)
	}
}

// allocated returns the bytes that fn allocates.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// It measures the allocations of the process, so it does not run in parallel.
func TestRequestOfManySmallPartsIsRefusedWithLittleMemory(t *testing.T) {
	f := setup(t)
	url := f.create("q")
	var form strings.Builder
	form.WriteString("Action=SendMessageBatch&QueueUrl=" + url)
	for i := 0; form.Len() < maxRequestBytes-100; i++ {
		fmt.Fprintf(&form, "&%x.a.b.c.d.e.f.g=", i)
	}
	parts := map[string]func() *http.Request{
		"form": func() *http.Request {
			r := httptest.NewRequest(http.MethodPost, "http://queues.test/", strings.NewReader(form.String()))
			r.Header.Set("Content-Type", formType)
			return r
		},
		"json": func() *http.Request {
			body := `{"QueueUrl":"` + url + `","Entries":[{}` + strings.Repeat(",{}", (maxRequestBytes-200)/3) + `]}`
			r := httptest.NewRequest(http.MethodPost, "http://queues.test/", strings.NewReader(body))
			r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessageBatch")
			return r
		},
	}
	for name, request := range parts {
		r, w := request(), httptest.NewRecorder()
		took := allocated(func() { f.ServeHTTP(w, r) })
		if w.Code != http.StatusBadRequest || took > 8*maxRequestBytes {
			t.Errorf("%s: %d, %d MiB for a request of %d MiB", name, w.Code, took>>20, maxRequestBytes>>20)
		}
	}
}

func TestWaitingReceiveEndsWhenThePrincipalLosesTheRole(t *testing.T) {
	t.Parallel()
	consume := func(queue string) []access.Entry {
		return []access.Entry{{Name: "worker", Grants: []access.Grant{{Role: access.Consume, Queues: []string{queue}}}}}
	}
	for name, c := range map[string]struct {
		fallback string
		before   []access.Entry
	}{
		"of its principal":             {"worker", consume("orders")},
		"without principals until now": {"", nil},
	} {
		control := &access.Control{}
		f := setupFor(t, control, c.fallback)
		f.create("orders")
		control.Load(c.before)
		got := make(chan int, 1)
		go func() {
			status, _, _ := f.post(context.Background(), "ReceiveMessage",
				object{"QueueUrl": "/orders", "WaitTimeSeconds": 20})
			got <- status
		}()
		for f.waiting("orders") == 0 {
			f.engine.Tick()
		}
		control.Load(consume("other"))
		core.DoOnce(f.engine, core.Internal, &core.Submit{Job: &core.Job{Queue: "orders", Body: []byte("m")}})
		want(t, name, <-got, http.StatusForbidden)
		if info, err := f.inspect("orders"); err != nil || info.Ready() != 1 {
			t.Errorf("%s: the queue is %+v, %v", name, info, err)
		}
	}
}

func TestRouteToAForbiddenQueueIsRefused(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	f := setupFor(t, control, "shop", func(o *Options) {
		o.Route = func(queue, typ string) (string, string) {
			if typ == "special" {
				return "secret", typ
			}
			return queue, typ
		}
	})
	f.create("orders")
	control.Load([]access.Entry{{
		Name: "shop", Grants: []access.Grant{{Role: access.Produce, Queues: []string{"orders"}}},
	}})
	special := object{attrType: object{"DataType": "String", "StringValue": "special"}}
	status, _, out := f.post(context.Background(), "SendMessage",
		object{"QueueUrl": "/orders", "MessageBody": "m", "MessageAttributes": special})
	want(t, fmt.Sprint("SendMessage: ", out), status, http.StatusForbidden)
	out = f.do("SendMessageBatch", object{"QueueUrl": "/orders", "Entries": []object{
		{"Id": "a", "MessageBody": "m"}, {"Id": "b", "MessageBody": "m", "MessageAttributes": special},
	}})
	want(t, "taken", len(out["Successful"].([]any)), 1)
	want(t, "refused", len(out["Failed"].([]any)), 1)
	if info, _ := f.inspect("secret"); info != nil && info.Ready() > 0 {
		t.Error("a message arrived in a queue that its sender may not fill")
	}
}

func TestMoveTaskMovesOnlyToPermittedQueues(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	f := setupFor(t, control, "shop")
	dead := f.create("a-dead")
	policy := `{"deadLetterTargetArn":"` + f.arnOf("a-dead") + `","maxReceiveCount":1}`
	for _, name := range []string{"a-orders", "b-secret"} {
		url := f.create(name, redrivePolicy, policy)
		f.send(url, name)
		f.receive(url, visibilityTimeout, 0)
		f.advance(time.Second)
		f.receive(url)
	}
	want(t, "dead letters", f.attributesOf(dead)[countVisible], "2")
	f.do("SetQueueAttributes", object{"QueueUrl": "/b-secret", "Attributes": object{redrivePolicy: ""}})
	control.Load([]access.Entry{{Name: "shop", Grants: []access.Grant{
		{Role: access.Operate, Queues: []string{"a-*"}}, {Role: access.Produce, Queues: []string{"a-*"}},
	}}})
	f.do("StartMessageMoveTask", object{"SourceArn": f.arnOf("a-dead")})
	f.done.Wait()
	counts := func(name string) int {
		info, err := f.inspect(name)
		if err != nil || info == nil {
			t.Fatal(name, err)
		}
		return info.Ready()
	}
	want(t, "a-orders", counts("a-orders"), 1)
	want(t, "b-secret", counts("b-secret"), 0)
	want(t, "a-dead", counts("a-dead"), 1)
}

func TestSourceQueuesWithoutRightsAreNotListed(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	f := setupFor(t, control, "shop")
	f.create("a-dead")
	policy := `{"deadLetterTargetArn":"` + f.arnOf("a-dead") + `","maxReceiveCount":1}`
	f.create("a-orders", redrivePolicy, policy)
	f.create("b-secret", redrivePolicy, policy)
	control.Load([]access.Entry{{Name: "shop", Grants: []access.Grant{{Role: access.Read, Queues: []string{"a-*"}}}}})
	out := f.do("ListDeadLetterSourceQueues", object{"QueueUrl": "/a-dead"})
	if got := fmt.Sprint(out["queueUrls"]); strings.Contains(got, "secret") || !strings.Contains(got, "a-orders") {
		t.Errorf("sources are %s", got)
	}
}

func TestFormsFromWebSitesAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("q")
	const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	for name, c := range map[string]struct {
		agent, site, signed, language string
		status                        int
	}{
		"an image of a page over http":       {browser, "", "", "en", 403},
		"a page whose name has this address": {browser, "", signAlgorithm, "en", 403},
		"the address line":                   {browser, "none", "", "en", 200},
		"a program":                          {"curl/8.1", "", "", "", 200},
		"Celery":                             {"Mozilla/5.0 (compatible; pycurl)", "", signAlgorithm, "", 200},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://10.0.0.5:9324/000000000000/q?Action=PurgeQueue", nil)
		r.Header.Set("User-Agent", c.agent)
		for header, value := range map[string]string{
			"Sec-Fetch-Site": c.site, "Authorization": c.signed, "Accept-Language": c.language,
		} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		want(t, name, w.Code, c.status)
	}
}

func TestTraceHeaderHasTheLimitsOfTheAttribute(t *testing.T) {
	t.Parallel()
	f := setup(t)
	url := f.create("q")
	r := httptest.NewRequest(http.MethodPost, "http://queues.test/",
		strings.NewReader(`{"QueueUrl":"`+url+`","MessageBody":"m"}`))
	r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
	r.Header.Set("X-Amzn-Trace-Id", strings.Repeat("x", maxTraceBytes+1))
	f.ServeHTTP(httptest.NewRecorder(), r)
	for _, m := range f.receive(url, "MessageSystemAttributeNames", []string{sysTrace}) {
		if trace := m["Attributes"].(object)[sysTrace]; trace != nil {
			t.Errorf("a trace of %d bytes was kept", len(trace.(string)))
		}
	}
}

func TestHandleWithoutALeaseDeletesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	url := f.create("q.fifo", fifoQueue, "true", contentDedup, "true")
	f.send(url, "m", "MessageGroupId", "g")
	got := f.receive(url)
	h, err := parseHandle(got[0]["ReceiptHandle"].(string), "q.fifo")
	if err != nil {
		t.Fatal(err)
	}
	h.leasedAt = 0
	status, _, out := f.post(context.Background(), "DeleteMessage",
		object{"QueueUrl": url, "ReceiptHandle": h.text("q.fifo")})
	want(t, fmt.Sprint("status of ", out), status, http.StatusBadRequest)
	want(t, "in flight", f.attributesOf(url)[countInFlight], "1")
}

// overtaken is a broker to which another client speaks as soon as it has refused to complete a job.
type overtaken struct {
	core.Broker
	other func()
}

func (b overtaken) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	into = b.Broker.Do(id, ops, into)
	if _, is := ops[0].(*core.Complete); is && into[len(into)-1].Kind == core.Failed {
		b.other()
	}
	return into
}

// The reply to the deletion of a message that another consumer deletes meanwhile depends on the commit of that.
func TestDeletionOfAMessageThatAnotherDeletesWaitsForItsCommit(t *testing.T) {
	t.Parallel()
	f := setup(t)
	url := f.create("q.fifo", fifoQueue, "true", contentDedup, "true")
	f.send(url, "m", "MessageGroupId", "g")
	h, err := parseHandle(f.receive(url)[0]["ReceiptHandle"].(string), "q.fifo")
	if err != nil {
		t.Fatal(err)
	}
	h.leasedAt = h.leasedAt.Add(-time.Second) // an earlier lease
	of, err := f.find("q.fifo")
	if err != nil {
		t.Fatal(err)
	}
	var deleted core.Commit
	q := &request{
		front: f.Frontend, ctx: context.Background(), wire: &wireRequest{}, from: caller{principal: access.Everyone},
	}
	c := client.Open(overtaken{f.engine, func() {
		o := f.open(q.from)
		defer o.Close()
		r, err := o.Ask(&core.Complete{Tag: 1, Ref: core.Ref{Seq: h.seq}, Authority: core.ByAnyone})
		if deleted = r.Commit; err != nil {
			t.Error(err)
		}
	}}, client.Options{ClientOptions: core.ClientOptions{Protocol: core.SQS}})
	defer c.Close()
	r, err := q.deleteOne(of, c, h, messageChange{handle: "h"})
	if err != nil || deleted == 0 || r.Commit < deleted {
		t.Errorf("deleted in commit %d, the reply waits for %d: %v", deleted, r.Commit, err)
	}
}

func TestReplyAboutExistingQueueWaitsForItsCommit(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("q")
	q := &request{
		front: f.Frontend, ctx: context.Background(), wire: &wireRequest{}, from: caller{principal: access.Everyone},
	}
	c := f.open(q.from)
	defer c.Close()
	f.changes.Lock()
	defer f.changes.Unlock()
	first, err := q.createLocked(c, &createQueueInput{QueueName: "new"}, false)
	if err != nil || first == 0 {
		t.Fatal(first, err)
	}
	if again, err := q.createLocked(c, &createQueueInput{QueueName: "new"}, false); err != nil || again < first {
		t.Errorf("created with commit %d, found with %d, %v", first, again, err)
	}
}

// It measures the allocations of the process, so it does not run in parallel.
func TestMemoryOfARequestGrowsWithReceivedBytes(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "http://queues.test/", strings.NewReader("x"))
	r.ContentLength = maxRequestBytes
	took := allocated(func() { _, _ = new(request).readBody(r) }) // what is read does not matter
	if took > maxRequestBytes/2 {
		t.Errorf("%d KiB for one byte", took>>10)
	}
}

// refusing is a broker that writes no documents.
type refusing struct{ core.Broker }

func (b refusing) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	for _, op := range ops {
		if _, is := op.(*core.WriteDocuments); is {
			return append(into, core.Reply{Kind: core.Failed, Tag: op.TagOf(), Err: core.ErrDiskFull})
		}
	}
	return b.Broker.Do(id, ops, into)
}

func TestQueueThatCannotBeDeletedKeepsItsMessages(t *testing.T) {
	t.Parallel()
	f := setup(t)
	url := f.create("q", visibilityTimeout, "7")
	f.send(url, "m")
	whole := f.broker
	f.broker = refusing{whole}
	status, _, out := f.post(context.Background(), "DeleteQueue", object{"QueueUrl": url})
	want(t, fmt.Sprint("status of ", out), status, http.StatusServiceUnavailable)
	f.broker = whole
	want(t, "messages", f.attributesOf(url)[countVisible], "1")
	want(t, "visibility timeout", f.attributesOf(url)[visibilityTimeout], "7")
}
