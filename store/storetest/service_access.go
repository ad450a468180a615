package storetest

import (
	"crypto/ecdh"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-8aba7b13/tracking"
)

// access are the actions of a history about who may do and see what: drivers' records, tokens,
// browsers, links, and keys. What was revoked has to be dead at once.
func (h *history) access() map[string]func() error {
	return map[string]func() error{
		"save": func() error {
			svc, d := h.pick()
			if !h.own(svc, d) {
				return nil
			}
			name := fmt.Sprint("name ", h.n(3, "name"))
			change := tracking.DriverUpdate{ID: d, Name: &name}
			if h.n(3, "duty too") == 2 {
				available := h.n(3, "available") > 0
				change.Available = &available
			}
			if h.n(3, "place too") == 2 {
				change.LngLat = h.point()
			}
			_, err := svc.SaveDriver(h.ctx, change)
			return err
		},
		"unread": func() error { svc, d := h.pick(); return svc.NoteUnread(h.ctx, d, h.n(3, "records")) },
		"revoke tokens": func() error {
			svc, d := h.pick()
			token, err := svc.IngestToken(h.ctx, d)
			if err != nil {
				return err
			}
			if err := svc.RevokeTokens(h.ctx, d); err != nil {
				return err
			}
			_, _, err = svc.AuthenticateDriver(h.ctx, tracking.TokenIngest, token)
			h.dead("an ingest token", err, tracking.ErrUnauthorized)
			return nil
		},
		"subscribe": func() error {
			svc, d := h.pick()
			return svc.SubscribePush(h.ctx, d, browser(h.n(3, "browser")))
		},
		"unsubscribe": func() error {
			svc, d := h.pick()
			return svc.UnsubscribePush(h.ctx, d, browser(h.n(3, "browser")).Endpoint)
		},
		"revoke a task's link": func() error {
			svc, _ := h.pick()
			id := h.task(svc)
			token, err := svc.TaskLink(h.ctx, id)
			if err != nil {
				return err
			}
			if err := svc.RevokeTaskLink(h.ctx, id); err != nil {
				return err
			}
			h.deadLink(svc, token)
			return nil
		},
		"revoke a trip's link": func() error {
			svc, _ := h.pick()
			id, _ := h.trip(svc)
			token, err := svc.TripLink(h.ctx, id)
			if err != nil {
				return err
			}
			if err := svc.RevokeTripLink(h.ctx, id); err != nil {
				return err
			}
			h.deadLink(svc, token)
			return nil
		},
		"key": func() error {
			svc, _ := h.pick()
			key, secret, err := svc.CreateKey(h.ctx, "key")
			if err != nil {
				return err
			}
			app, got, err := svc.AuthenticateKey(h.ctx, secret)
			if h.unknown(err) {
				return err
			}
			if err != nil || app != svc.App() || got.ID != key.ID {
				h.Fatalf("a new key of %s is %s's key %s, error %v", svc.App(), app, got.ID, err)
			}
			if h.n(2, "revoke it") == 0 {
				return nil
			}
			if err := svc.RevokeKey(h.ctx, key.ID); err != nil {
				return err
			}
			_, _, err = svc.AuthenticateKey(h.ctx, secret)
			h.dead("a key", err, tracking.ErrUnauthorized)
			return nil
		},
	}
}

// own reports whether a driver is of the Service's application. Some operations would make one
// there.
func (h *history) own(svc *tracking.Service, d tracking.DriverID) bool {
	return strings.HasPrefix(string(d), string(svc.App())+"-")
}

func (h *history) deadLink(svc *tracking.Service, token string) {
	_, err := svc.Tracking(h.ctx, token)
	h.dead("a link", err, tracking.ErrNotFound)
	delete(h.links, token)
}

func (h *history) dead(what string, err, want error) {
	if !errors.Is(err, want) && !h.unknown(err) {
		h.Fatalf("%s that was revoked: got error %v, want %v", what, err, want)
	}
}

// browser is one that can be told of notices.
func browser(n int) tracking.PushSubscription {
	private := make([]byte, 32)
	private[31] = byte(n + 1)
	key, err := ecdh.P256().NewPrivateKey(private)
	if err != nil {
		panic(err) // of numbers that are no keys
	}
	return tracking.PushSubscription{
		Endpoint: tracking.Secret(fmt.Sprint("https://push.example/", n)),
		P256dh:   base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes()),
		Auth:     tracking.Secret(base64.RawURLEncoding.EncodeToString(make([]byte, 16))),
	}
}
