package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"

	"github.com/seed-8aba7b13/tracking"
)

// welcome tells the person who started the server what to try. It writes from several goroutines.
type welcome struct {
	base string
	key  string
	made bool // the key was made for this run

	mu  sync.Mutex
	out io.Writer
}

func (w *welcome) print(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprint(w.out, text)
}

// quoted is a text as one word of a POSIX shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// curl is a command line that makes a call; with a body it is a POST.
func (w *welcome) curl(path, query, body string) string {
	address := w.base + path + "?apikey=" + url.QueryEscape(w.key)
	if query != "" {
		address += "&" + query
	}
	line := "  curl "
	if body != "" {
		line += "-H 'Content-Type: application/json' -d " + quoted(body) + " "
	}
	return line + quoted(address) + "\n"
}

func (w *welcome) start(cfg config) {
	var b strings.Builder
	fmt.Fprintf(&b, "Serving at %s with the data in %s.\n", w.base, cfg.store)
	if w.made {
		fmt.Fprintf(&b, "API key of this run: %s\n", w.key)
	}
	for i, key := range cfg.keys {
		if !w.made {
			fmt.Fprintf(&b, "API key %d: %s\n", i+1, key)
		}
	}
	if cfg.webhook != "" {
		b.WriteString("Telling the webhook of every event.\n")
	}
	if cfg.secretMade {
		fmt.Fprintf(&b, "Webhook secret of this run: %s\n", cfg.webhookSecrets[0])
	}
	if cfg.pushContact != "" {
		b.WriteString("Telling drivers' locked phones of new tasks by Web Push.\n")
	}
	b.WriteString("\nTry a delivery: a driver, a task for the nearest one, and what became of it.\n")
	b.WriteString(w.curl("/v1/users/driver", "", `{"driver_id":"dora","name":"Dora","availability":true,"lnglat":[-0.1276,51.5072]}`))
	b.WriteString(w.curl("/v1/task/create", "", `{"type":2,"drop":{"lnglat":[-0.1195,51.5033],"address":"12 River Street"},"order_id":"A-1","auto_assign":true}`))
	b.WriteString(w.curl("/v1/task/list", "", ""))
	b.WriteString(w.curl("/v1/users/drivers", "position=-0.1195,51.5033", ""))
	b.WriteString("Invite a driver, whose app joins with the code or the link:\n")
	b.WriteString(w.curl("/v1/invite_user", "", `{"user_id":"dora"}`))
	fmt.Fprintf(&b, "All routes: %s/v1/openapi.json\n\n", w.base)
	w.print(b.String())
}

// guest is the driver of the demo that the person at the terminal can be.
const guest tracking.DriverID = "guest"

// invite makes an invite for the guest and prints its link.
func (w *welcome) invite(ctx context.Context, svc *tracking.Service) error {
	name := "Guest"
	inv, err := svc.InviteDriver(ctx, tracking.NewInvite{DriverID: guest, Name: &name})
	if err != nil {
		return err
	}
	w.print(fmt.Sprintf("Be a driver: %s/join/%s (or code %d); on duty, you get an order near you.\n", w.base, inv.Token, inv.Code))
	return nil
}

// setsOff prints the customer's link of a delivery of the demo.
func (w *welcome) setsOff(ctx context.Context, svc *tracking.Service, courier string, t tracking.Task) {
	token, err := svc.TaskLink(ctx, t.ID)
	if err != nil {
		return // the next delivery has a link again
	}
	order := t.OrderID
	if order == "" {
		order = string(t.ID)
	}
	w.print(fmt.Sprintf("%s sets off with order %s; the customer's link: %s/track/%s\n", courier, order, w.base, token))
}
