package demo

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"broker/frontends/gearman/packet"
)

// workers are the clients that work on jobs.
func (s *Shop) workers() []func() error {
	all := []func() error{
		func() error { return s.workWorkq("search-index") }, func() error { return s.workWorkq("search-index") },
		func() error { return s.workHTTP("webhooks", "webhooks-1") },
		func() error { return s.workHTTP("webhooks", "webhooks-2") },
	}
	for i := range 3 {
		all = append(all, func() error { return s.workGearman(fmt.Sprintf("resizer-%d", i+1), "resize_image") })
	}
	for wid, queues := range map[string][]string{
		"mailer-1": {"emails"}, "mailer-2": {"emails", "invoices"}, "billing-1": {"payments", "invoices"},
		"billing-2": {"payments"}, "stock-1": {"inventory", "warehouse"},
		"export-1": {"exports"}, "video-1": {"video"}, "video-2": {"video"},
	} {
		all = append(all, func() error { return s.workFaktory(wid, queues) }, func() error { return s.beat(wid) })
	}
	return all
}

// failures are the error messages of the shop, by queue.
var failures = map[string][]struct {
	class, message string
	backtrace      []string
}{
	"payments": {
		{"CardDeclined", "the bank declined the card: insufficient funds", trace("charge_card.rb", 41)},
		{"GatewayTimeout", "the payment gateway did not answer within 10 s", trace("gateway.rb", 118)},
	},
	"inventory": {
		{"StockConflict", "the quantity of sku-00317 changed meanwhile", trace("sync_stock.rb", 63)},
	},
	"emails": {
		{"MailboxFull", "552 5.2.2 mailbox full", trace("smtp.rb", 204)},
	},
	"exports": {
		{"DiskQuota", "no space left for the export", trace("export_page.rb", 27)},
	},
	"webhooks": {
		{"HTTPError", "partner.example answered 503 Service Unavailable", nil},
		{"TLSError", "certificate of partner.example has expired", nil},
	},
}

func trace(file string, line int) []string {
	return []string{
		fmt.Sprintf("app/jobs/%s:%d:in `perform'", file, line), "lib/shop/retryable.rb:17:in `with_retries'",
		"lib/shop/worker.rb:88:in `block in run'", "lib/shop/worker.rb:52:in `run'",
	}
}

// failureOdds are the failure rates of jobs, by queue.
var failureOdds = map[string]float64{
	"payments": 0.09, "inventory": 0.04, "emails": 0.015, "exports": 0.01, "webhooks": 0.12,
}

func (s *Shop) workFaktory(wid string, queues []string) error {
	f, err := dialFaktory(s.ctx, s.at.Faktory, wid)
	if err != nil {
		return err
	}
	defer f.close()
	for s.ctx.Err() == nil {
		j, err := f.fetch(queues...)
		if err != nil {
			return err
		}
		if j == nil {
			continue
		}
		if j.Queue == "video" {
			err = s.transcode(f, j.JID)
		} else {
			s.pause(s.workTime(j.Queue))
		}
		if err != nil {
			return err
		}
		if known := failures[j.Queue]; s.chance() < failureOdds[j.Queue] {
			e := known[int(s.chance()*float64(len(known)))]
			err = f.fail(j.JID, e.class, e.message, e.backtrace)
		} else {
			err = f.ack(j.JID)
		}
		if refused := refusal(""); err != nil && !errors.As(err, &refused) { // a user may have removed the job
			return err
		}
	}
	return nil
}

// workTime is the time that a job takes.
func (s *Shop) workTime(queue string) time.Duration {
	switch queue {
	case "payments":
		return s.between(80*time.Millisecond, 900*time.Millisecond)
	case "exports":
		return s.between(200*time.Millisecond, 1200*time.Millisecond)
	case "webhooks":
		return s.between(60*time.Millisecond, 700*time.Millisecond)
	}
	return s.between(15*time.Millisecond, 240*time.Millisecond)
}

// transcode works for minutes and reports its progress.
func (s *Shop) transcode(f *faktory, jid string) error {
	step := s.between(300*time.Millisecond, 1500*time.Millisecond)
	for percent := 0; percent <= 100 && s.ctx.Err() == nil; percent++ {
		progress := map[string]any{
			"jid": jid, "percent": percent, "desc": fmt.Sprintf("frame %d of 18000", percent*180),
		}
		if err := f.sendJSON("TRACK SET", progress); err != nil {
			return err
		}
		s.pause(step)
	}
	return nil
}

// beat sends the heartbeats of a Faktory worker.
func (s *Shop) beat(wid string) error {
	f, err := dialFaktory(s.ctx, s.at.Faktory, wid)
	if err != nil {
		return err
	}
	defer f.close()
	for s.ctx.Err() == nil {
		if err := f.sendJSON("BEAT",
			map[string]any{"wid": wid, "rss_kb": 40_000 + int(s.chance()*90_000)}); err != nil {
			return err
		}
		s.pause(10 * time.Second)
	}
	return nil
}

func (s *Shop) workGearman(id, function string) error {
	g, err := dialGearman(s.ctx, s.at.Gearman)
	if err != nil {
		return err
	}
	defer g.close()
	if err := g.send(packet.SetClientID, id); err != nil {
		return err
	}
	if err := g.send(packet.CanDo, function); err != nil {
		return err
	}
	for s.ctx.Err() == nil {
		handle, err := g.grab()
		if err != nil {
			return err
		}
		for part := range 4 {
			if err := g.send(packet.WorkStatus, handle, fmt.Sprint(part), "4"); err != nil {
				return err
			}
			s.pause(s.between(20*time.Millisecond, 110*time.Millisecond))
		}
		if s.chance() < 0.01 {
			err = g.send(packet.WorkFail, handle)
		} else {
			err = g.send(packet.WorkComplete, handle, "640x480")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Shop) workWorkq(name string) error {
	w, err := dialWorkq(s.ctx, s.at.Workq)
	if err != nil {
		return err
	}
	defer w.close()
	for s.ctx.Err() == nil {
		id, err := w.lease(name)
		if err != nil {
			return err
		}
		if id == "" {
			continue
		}
		s.pause(s.between(20*time.Millisecond, 200*time.Millisecond))
		verb, result := "complete", "indexed"
		if s.chance() < 0.02 {
			verb, result = "fail", "the index is locked"
		}
		if err := w.finish(verb, id, result); err != nil {
			return err
		}
	}
	return nil
}

// workHTTP works over the HTTP API.
func (s *Shop) workHTTP(queue, worker string) error {
	for s.ctx.Err() == nil {
		var leased struct{ Lease string }
		if err := s.call(s.ctx, http.MethodPost, "queues/"+queue+"/lease?wait=5s", map[string]string{"worker": worker},
			&leased); err != nil {
			return err
		}
		if leased.Lease == "" {
			continue
		}
		s.pause(s.workTime(queue))
		path, body := "complete", map[string]any{"result": "delivered"}
		if known := failures[queue]; s.chance() < failureOdds[queue] {
			e := known[int(s.chance()*float64(len(known)))]
			path, body = "fail", map[string]any{"error_class": e.class, "message": e.message}
		}
		if err := s.call(s.ctx, http.MethodPost, "leases/"+leased.Lease+"/"+path, body, nil); err != nil {
			return err
		}
	}
	return nil
}
