package demo

import (
	"fmt"
	"net/http"
	"time"

	"broker/frontends/gearman/packet"
)

// Numbers of jobs that exist at the start.
const (
	newsletters = 300  // in a paused queue
	backlog     = 4000 // the paused queue grows until the demo has numbered this many jobs
	reports     = 60   // scheduled
	videos      = 14
	dead        = 6 // of each queue with failures
)

// fill submits the jobs that exist at the start.
func (s *Shop) fill() error {
	if err := s.fillDead(); err != nil {
		return err
	}
	var jobs []job
	for i := range newsletters {
		jobs = append(jobs, s.newsletter(i))
	}
	for i := range reports {
		jobs = append(jobs, job{
			"queue": "reports", "type": s.pick("DailySales", "StockReport", "TaxReport"),
			"args":    []any{fmt.Sprintf("branch-%02d", i%12)},
			"delay_s": s.between(time.Minute, 60*time.Hour).Seconds(), "tags": []string{"finance"},
			"unique_key": fmt.Sprintf("report:%02d", i),
		})
	}
	for i := range videos {
		jobs = append(jobs, s.video(i))
	}
	jobs = append(jobs, job{
		"queue": "webhooks", "type": "DeliverWebhook", "args": []any{"https://partner.example/hooks/1"},
		"tags": []string{"partner:acme"},
	})
	if err := s.submitAll(jobs); err != nil {
		return err
	}
	if err := s.changeQueue("newsletter", map[string]any{"paused": true}); err != nil {
		return err
	}
	for _, schedule := range []map[string]any{
		{
			"name": "stock-report", "cron": "0 6 * * *", "zone": "Europe/Berlin",
			"job": job{"queue": "reports", "type": "StockReport", "args": []any{"all"}},
		},
		{
			"name": "cart-reminders", "every_s": 20, "backlog": 5,
			"job": job{"queue": "emails", "type": "CartReminder", "args": []any{"abandoned"}},
		},
		{
			"name": "sitemap", "cron": "*/5 * * * *", "missed": "one",
			"job": job{"queue": "search-index", "args": []any{"sitemap"}, "tags": []string{"seo"}},
		},
	} {
		if err := s.call(s.ctx, http.MethodPost, "schedules", schedule, nil); err != nil {
			return err
		}
	}
	if err := s.changeQueue("webhooks", map[string]any{"sharing": map[string]any{
		"key_tag": "partner", "fair": true, "weights": map[string]int{"umbrella": 2},
	}}); err != nil {
		return err
	}
	for _, limit := range []map[string]any{
		{"queue": "webhooks", "scope": "queue", "concurrency": 4},
		{"queue": "webhooks", "scope": "key", "concurrency": 2},
		{"queue": "emails", "scope": "queue", "rate_per_s": 50, "burst": 10},
	} {
		if err := s.call(s.ctx, http.MethodPut, "limits", limit, nil); err != nil {
			return err
		}
	}
	return s.order()
}

// fillDead runs jobs that fail for good, before there are others in their queues.
func (s *Shop) fillDead() error {
	for _, of := range []struct{ queue, typ string }{
		{"payments", "ChargeCard"}, {"inventory", "SyncStock"}, {"emails", "Receipt"}, {"webhooks", "DeliverWebhook"},
	} {
		for i := range dead {
			if _, err := s.submit(job{
				"queue": of.queue, "type": of.typ, "args": []any{s.next()}, "max_fails": 1,
			}); err != nil {
				return err
			}
			var leased struct{ Lease string }
			if err := s.call(s.ctx, http.MethodPost, "queues/"+of.queue+"/lease",
				map[string]string{"worker": "night-shift"}, &leased); err != nil {
				return err
			}
			e := failures[of.queue][i%len(failures[of.queue])]
			if err := s.call(s.ctx, http.MethodPost, "leases/"+leased.Lease+"/fail", map[string]any{
				"error_class": e.class, "message": e.message, "backtrace": append([]string{}, e.backtrace...),
			}, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Shop) newsletter(i int) job {
	return job{
		"queue": "newsletter", "type": "SendNewsletter",
		"args": []any{fmt.Sprintf("reader-%04d@example.com", i), "winter-sale"},
		"tags": []string{"campaign:winter"}, "priority": -1,
	}
}

func (s *Shop) video(i int) job {
	return job{
		"queue": "video", "type": "Transcode",
		"args": []any{fmt.Sprintf("product-%03d.mov", i), map[string]any{"height": 1080, "codec": "av1"}},
	}
}

// order is a workflow: after the payment the invoice is printed and the goods are picked; after both the parcel is
// shipped.
func (s *Shop) order() error {
	n := s.next()
	pay, err := s.submit(job{
		"queue": "payments", "type": "ChargeCard", "args": []any{n, "EUR", 4200},
		"tags": []string{fmt.Sprintf("order:%d", n)},
	})
	if err != nil {
		return err
	}
	invoice, err := s.submit(job{
		"queue": "invoices", "type": "PrintInvoice", "args": []any{n}, "after": []string{pay},
		"tags": []string{fmt.Sprintf("order:%d", n)},
	})
	if err != nil {
		return err
	}
	pick, err := s.submit(job{"queue": "warehouse", "type": "PickGoods", "args": []any{n}, "after": []string{pay}})
	if err != nil {
		return err
	}
	_, err = s.submit(job{
		"queue": "warehouse", "type": "ShipParcel", "args": []any{n, "express"}, "after": []string{invoice, pick},
	})
	return err
}

// producers are the clients that submit jobs.
func (s *Shop) producers() []func() error {
	return []func() error{s.produceFaktory, s.produceGearman, s.produceWorkq, s.produceHTTP, s.produceBatches}
}

func (s *Shop) produceFaktory() error {
	f, err := dialFaktory(s.ctx, s.at.Faktory, "")
	if err != nil {
		return err
	}
	defer f.close()
	one, none := 1, 0
	for s.ctx.Err() == nil {
		n := s.next()
		j := faktoryJob{
			JID: newID(), Queue: "emails",
			Type: s.pick("OrderConfirmation", "ShippingNotice", "PasswordReset", "Receipt"),
		}
		j.Args = []any{
			fmt.Sprintf("customer-%d@example.com", n), map[string]any{"locale": s.pick("en", "de", "fr"), "order": n},
		}
		switch c := s.chance(); {
		case c < 0.2:
			j.Queue, j.Type, j.Args = "payments", s.pick("ChargeCard", "ChargeCard", "RefundCard"), []any{
				n, "EUR", 100 * (1 + n%90),
			}
			j.Custom = map[string]any{"priority": 5}
			if s.chance() < 0.4 {
				j.Retry = &one
			}
		case c < 0.35:
			j.Queue, j.Type, j.Args = "inventory", "SyncStock", []any{fmt.Sprintf("sku-%05d", n%4000)}
			if s.chance() < 0.2 {
				j.Retry = &none
			}
		case c < 0.37:
			j.At = time.Now().Add(s.between(2*time.Minute, 40*time.Minute)).UTC().Format(time.RFC3339Nano)
		}
		if err := f.sendJSON("PUSH", j); err != nil {
			return err
		}
		s.pause(s.between(20*time.Millisecond, 160*time.Millisecond))
	}
	return nil
}

func (s *Shop) produceGearman() error {
	g, err := dialGearman(s.ctx, s.at.Gearman)
	if err != nil {
		return err
	}
	defer g.close()
	for s.ctx.Err() == nil {
		n := s.next()
		kind := packet.SubmitJobBg
		if n%9 == 0 {
			kind = packet.SubmitJobHighBg
		}
		if err := g.submit(kind, "resize_image", fmt.Sprintf("img-%d", n),
			fmt.Sprintf("photo-%06d.jpg 640x480", n)); err != nil {
			return err
		}
		s.pause(s.between(60*time.Millisecond, 300*time.Millisecond))
	}
	return nil
}

func (s *Shop) produceWorkq() error {
	w, err := dialWorkq(s.ctx, s.at.Workq)
	if err != nil {
		return err
	}
	defer w.close()
	for s.ctx.Err() == nil {
		n := s.next()
		if err := w.add("search-index", fmt.Sprintf(`{"document": %d, "fields": ["title", "body"]}`, n),
			n%3); err != nil {
			return err
		}
		s.pause(s.between(50*time.Millisecond, 250*time.Millisecond))
	}
	return nil
}

func (s *Shop) produceHTTP() error {
	for s.ctx.Err() == nil {
		n := s.next()
		_, err := s.submit(job{
			"queue": "webhooks", "type": "DeliverWebhook",
			"tags": []string{"partner:" + s.pick("acme", "globex", "initech", "umbrella")},
			"args": []any{
				fmt.Sprintf("https://partner.example/hooks/%d", n%17),
				map[string]any{"event": s.pick("order.paid", "order.shipped"), "id": n},
			},
			"max_fails": 3 + n%4,
		})
		if err == nil && n%40 == 0 {
			err = s.order()
		}
		if err == nil && n < backlog {
			err = s.submitAll([]job{s.newsletter(n), s.newsletter(n + backlog)})
		}
		if err == nil && n%60 == 0 {
			_, err = s.submit(s.video(n))
		}
		if err != nil {
			return err
		}
		s.pause(s.between(150*time.Millisecond, 500*time.Millisecond))
	}
	return nil
}

// produceBatches submits a batch of jobs now and then.
func (s *Shop) produceBatches() error {
	f, err := dialFaktory(s.ctx, s.at.Faktory, "")
	if err != nil {
		return err
	}
	defer f.close()
	for s.ctx.Err() == nil {
		n := s.next()
		if err := f.batch(fmt.Sprintf("Catalogue export %d", n), 30+n%40); err != nil {
			return err
		}
		s.pause(s.between(20*time.Second, 40*time.Second))
	}
	return nil
}

// batch submits a batch with that number of jobs.
func (f *faktory) batch(description string, jobs int) error {
	callback := func(name string) faktoryJob {
		return faktoryJob{JID: newID(), Type: name, Queue: "exports", Args: []any{description}}
	}
	bid, err := f.ask("BATCH NEW", map[string]any{
		"description": description, "complete": callback("ExportComplete"), "success": callback("PublishExport"),
	})
	if err != nil {
		return err
	}
	for i := range jobs {
		j := faktoryJob{
			JID: newID(), Type: "ExportPage", Queue: "exports", Args: []any{description, i},
			Custom: map[string]any{"bid": bid},
		}
		if err := f.sendJSON("PUSH", j); err != nil {
			return err
		}
	}
	_, err = f.send("BATCH COMMIT " + bid)
	return err
}
