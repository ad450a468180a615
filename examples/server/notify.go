package main

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
	"github.com/seed-8aba7b13/tracking/httpadapter/webpush"
)

// notifiers are who is told of events; nil ones are not.
type notifiers struct {
	hook *webhook.Notifier // the URL of -webhook
	push *webpush.Notifier // the browsers of drivers
}

// notifiers makes those that the command line asks for. The webhook gets events with the rows that
// fill adds.
func (c *config) notifiers(logger *slog.Logger,
	fill func(context.Context, tracking.Notification) (any, error)) (told notifiers, err error) {
	if c.webhook != "" {
		opts := httpadapter.WebhookOptions{
			Fill: fill,
			Disabled: func() {
				logger.Error("the receiver of the webhook answered 410 Gone: it is sent nothing more until the server is started again")
			},
		}
		if c.webhookPrivate {
			opts.Allow = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
		}
		if told.hook, err = httpadapter.Webhook(c.webhook, c.webhookSecrets, &opts); err != nil {
			return told, err
		}
	}
	if c.pushContact != "" {
		told.push, err = webpush.New(nil, &webpush.Options{Contact: c.pushContact})
	}
	return told, err
}

// all are those that are there, by the names that stand in the store: a webhook that is down delays
// no push.
func (n notifiers) all() map[string]tracking.Notifier {
	all := map[string]tracking.Notifier{}
	if n.hook != nil {
		all["webhook"] = n.hook
	}
	if n.push != nil {
		all["push"] = n.push
	}
	return all
}

// bind says whose drivers are told, and returns the key that their browsers subscribe with, "" for
// none.
func (n notifiers) bind(ctx context.Context, svc *tracking.Service) (string, error) {
	if n.push == nil {
		return "", nil
	}
	n.push.Bind(svc)
	return n.push.PublicKey(ctx)
}

func (n notifiers) close() {
	if n.hook != nil {
		n.hook.Close()
	}
	if n.push != nil {
		n.push.Close()
	}
}

// checkPush checks -push-contact. Without one, -base-url serves where it is an address that push
// services take.
func (c *config) checkPush() error {
	taken := func(contact string) bool {
		_, err := webpush.New(nil, &webpush.Options{Contact: contact})
		return err == nil
	}
	switch {
	case c.pushContact != "" && !taken(c.pushContact):
		return errors.New("-push-contact must be mailto: or https: with a public host, such as mailto:ops@example.com or https://example.com")
	case c.pushContact == "" && taken(c.baseURL):
		c.pushContact = c.baseURL
	}
	return nil
}
