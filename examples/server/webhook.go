package main

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
)

// notifier tells the URL of -webhook of every event, with the rows that fill adds.
func (c *config) notifier(logger *slog.Logger, fill func(context.Context, tracking.Notification) (any, error)) (*webhook.Notifier, error) {
	opts := httpadapter.WebhookOptions{
		Fill: fill,
		Disabled: func() {
			logger.Error("the receiver of the webhook answered 410 Gone: it is sent nothing more until the server is started again")
		},
	}
	if c.webhookPrivate {
		opts.Allow = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	}
	return httpadapter.Webhook(c.webhook, c.webhookSecrets, &opts)
}
