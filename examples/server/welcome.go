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
	made secrets
	page *startPage

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
	key := w.made.key
	if key == "" {
		key = "KEY" // to be put in: what was given, or printed before, is not printed
	}
	address := w.base + path + "?apikey=" + url.QueryEscape(key)
	if query != "" {
		address += "&" + query
	}
	line := "  curl "
	if body != "" {
		line += "-H 'Content-Type: application/json' -d " + quoted(body) + " "
	}
	return line + quoted(address) + "\n"
}

// start says, once the server listens, where it is and what to try. With the token signIn a person
// signs in once.
func (w *welcome) start(cfg config, signIn string) {
	var b strings.Builder
	fmt.Fprintf(&b, "Serving at %s with the data in %s.\n", w.base, placeOf(cfg.store.spec))
	fmt.Fprintf(&b, "Open in a browser: %s/\n", w.base)
	if signIn != "" {
		fmt.Fprintf(&b, "The board, signed in (once, within 10 minutes): %s/board/#signin=%s\n", w.base, signIn)
	}
	switch {
	case w.made.key == "" && len(cfg.keys) > 0:
		b.WriteString("API keys: as given, and those that the store keeps.\n")
	case w.made.key == "":
		b.WriteString("API keys: those that the store keeps; server key add makes another one.\n")
	case cfg.store.kept():
		fmt.Fprintf(&b, "API key, kept with the store and printed this once: %s\n", w.made.key)
	default:
		fmt.Fprintf(&b, "API key of this run: %s\n", w.made.key)
	}
	if cfg.webhook != "" {
		b.WriteString("Telling the webhook of every event.\n")
	}
	switch {
	case w.made.webhook != "" && cfg.store.kept():
		fmt.Fprintf(&b, "Webhook secret, kept with the store and printed this once: %s\n", w.made.webhook)
	case w.made.webhook != "":
		fmt.Fprintf(&b, "Webhook secret of this run: %s\n", w.made.webhook)
	}
	if cfg.pushContact != "" {
		b.WriteString("Telling drivers' locked phones of new tasks by Web Push.\n")
	}
	// In the town of the demo, so that its map shows them beside the others.
	b.WriteString("\nTry a delivery: a driver, a task for the nearest one, and what became of it")
	if w.made.key == "" {
		b.WriteString(" (put an API key in for KEY)")
	}
	b.WriteString(".\n")
	b.WriteString(w.curl("/v1/users/driver", "",
		`{"driver_id":"dora","name":"Dora","availability":true,"lnglat":[2.1600,41.3861]}`))
	b.WriteString(w.curl("/v1/task/create", "",
		`{"type":2,"drop":{"lnglat":[2.1633,41.3885],"address":"12 Elm Street"},"order_id":"A-1","auto_assign":true}`))
	b.WriteString(w.curl("/v1/task/list", "", ""))
	b.WriteString(w.curl("/v1/users/drivers", "position=2.1633,41.3885", ""))
	b.WriteString("The answer to the second has the customer's link: tracking_url, to be opened in a browser.\n")
	b.WriteString("Invite a driver, whose app joins with the code or the link:\n")
	b.WriteString(w.curl("/v1/invite_user", "", `{"user_id":"dora"}`))
	fmt.Fprintf(&b, "All calls: %s/v1/docs\n\n", w.base)
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
	w.page.invites(inv.Token)
	w.print(fmt.Sprintf("Be a driver: %s/join/%s (or code %d); on duty, you get an order near you.\n", w.base,
		inv.Token, inv.Code))
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
	w.page.setsOff(trackingLink{courier, order, "track/" + token})
	w.print(fmt.Sprintf("%s sets off with order %s; the customer's link: %s/track/%s\n", courier, order, w.base, token))
}
