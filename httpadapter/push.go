package httpadapter

import (
	"errors"

	"github.com/seed-8aba7b13/tracking"
)

// driverPush takes what a browser's PushSubscription says of itself in JSON (W3C Push API).
func (h *Handler) driverPush(r *request) (answer, error) {
	o, err := r.json()
	if err != nil {
		return nil, err
	}
	sub := tracking.PushSubscription{Endpoint: o.ID("endpoint")}
	if keys, ok := o.Object("keys"); ok {
		sub.P256dh, sub.Auth = keys.ID("p256dh"), keys.ID("auth")
	} else {
		o.Fail("keys", "is required")
	}
	if err := o.Err(); err != nil {
		return nil, err
	}
	err = r.svc.SubscribePush(r.Context(), r.driver, sub)
	var e *tracking.Error
	if errors.As(err, &e) && (e.Field == "p256dh" || e.Field == "auth") {
		return nil, &tracking.Error{Code: e.Code, Field: "keys." + e.Field, Message: "keys." + e.Message}
	}
	if err != nil {
		return nil, err
	}
	return ok("Push subscribed", nil)
}

// driverPushEnd forgets a browser; one that is not known is nothing.
func (h *Handler) driverPushEnd(r *request) (answer, error) {
	o, err := r.json()
	if err != nil {
		return nil, err
	}
	endpoint := o.ID("endpoint")
	if err := o.Err(); err != nil {
		return nil, err
	}
	if err := r.svc.UnsubscribePush(r.Context(), r.driver, endpoint); err != nil {
		return nil, err
	}
	return ok("Push unsubscribed", nil)
}
