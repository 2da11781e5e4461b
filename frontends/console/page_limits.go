package console

import (
	"errors"
	"strconv"
	"strings"

	"broker/frontends/service"
)

type limitsData struct {
	Limits  []service.Limit
	Form    map[string]string
	Open    bool
	Problem string
}

var limitFields = []string{"queue", "scope", "name", "concurrency", "per_worker", "rate", "burst"}

// usedLimits is for how many limits the page says what counts against them.
const usedLimits = 200

func limitsPage(r *request) (*view, error) {
	list, err := r.service.Limits(r.Context(), r.caller, "")
	if err != nil {
		return nil, err
	}
	for i := range list[:min(len(list), usedLimits)] { // the list of one queue says what counts against its limits
		if i > 0 && list[i].Queue == list[i-1].Queue {
			continue
		}
		used, err := r.service.Limits(r.Context(), r.caller, list[i].Queue)
		if err != nil {
			return nil, err
		}
		copy(list[i:], used)
	}
	return &view{page: "limits", title: "Limits", nav: "limits", data: &limitsData{Limits: list, Form: map[string]string{"scope": "queue"}}}, nil
}

// changeLimits sets or removes a limit. What is wrong is said above the form, which keeps what was typed.
func changeLimits(r *request) (*view, error) {
	l := service.LimitSpec{Queue: strings.TrimSpace(r.PostFormValue("queue")), Scope: r.PostFormValue("scope"), Name: strings.TrimSpace(r.PostFormValue("name"))}
	if r.PostFormValue("do") == "remove" {
		if err := r.service.RemoveLimit(r.Context(), r.caller, l.Queue, l.Scope, l.Name); err != nil {
			return nil, err
		}
		return r.back("limits", "The limit is removed.")
	}
	err := limitNumbers(r, &l)
	if err == nil {
		_, err = r.service.PutLimit(r.Context(), r.caller, l)
	}
	if err == nil {
		return r.back("limits", "The limit is set.")
	}
	var refused *service.Error
	if !errors.As(err, &refused) {
		return nil, err
	}
	v, failed := limitsPage(r)
	if failed != nil {
		return nil, failed
	}
	d := v.data.(*limitsData) //nolint:forcetypeassert // made by limitsPage
	d.Problem, d.Open = refused.Detail, true
	for _, field := range limitFields {
		d.Form[field] = r.PostFormValue(field)
	}
	v.status, v.still = r.console.options.Status(err), true
	return v, nil
}

func limitNumbers(r *request, l *service.LimitSpec) error {
	for name, to := range map[string]*uint32{"concurrency": &l.Concurrency, "per_worker": &l.PerWorker, "burst": &l.Burst} {
		n, err := number(r.PostForm, name)
		if err != nil {
			return err
		}
		*to = uint32(min(n, 1<<31)) //nolint:gosec // not negative
	}
	if text := strings.TrimSpace(r.PostFormValue("rate")); text != "" {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return &service.Error{Code: service.CodeInvalid, Field: "rate", Detail: strconv.Quote(text) + " is not a number of leases a second"}
		}
		l.RatePerS = rate
	}
	return nil
}
