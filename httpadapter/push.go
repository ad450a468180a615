package httpadapter

import (
	"errors"

	"github.com/seed-8aba7b13/tracking"
)

// subscribePush is what a browser's PushSubscription says of itself in JSON (W3C Push API).
type subscribePush struct {
	Endpoint string `json:"endpoint" strict:"id"`
	Keys     struct {
		P256dh string `json:"p256dh" strict:"id"`
		Auth   string `json:"auth" strict:"id"`
	} `json:"keys" strict:"required"`
}

func (h *Handler) driverPush(r *request, b subscribePush) (answer, error) {
	err := r.svc.SubscribePush(r.Context(), r.driver, tracking.PushSubscription{
		Endpoint: tracking.Secret(b.Endpoint), P256dh: b.Keys.P256dh, Auth: tracking.Secret(b.Keys.Auth),
	})
	var e *tracking.Error
	if errors.As(err, &e) && (e.Field == "p256dh" || e.Field == "auth") {
		return nil, &tracking.Error{Code: e.Code, Field: "keys." + e.Field, Message: "keys." + e.Message}
	}
	if err != nil {
		return nil, err
	}
	return ok("Push subscribed", nil)
}

type unsubscribePush struct {
	Endpoint string `json:"endpoint" strict:"id"`
}

// driverPushEnd forgets a browser; repeating it changes nothing.
func (h *Handler) driverPushEnd(r *request, b unsubscribePush) (answer, error) {
	if err := r.svc.UnsubscribePush(r.Context(), r.driver, tracking.Secret(b.Endpoint)); err != nil {
		return nil, err
	}
	return ok("Push unsubscribed", nil)
}
