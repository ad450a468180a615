package httpadapter

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
)

// WebhookOptions set up a webhook: see package webhook.
type WebhookOptions = webhook.Options

// Webhook makes a notifier that tells a URL of every event, after Standard Webhooks 1.0.0; package
// webhook says how. Each request is signed with every one of secrets, which are "whsec_" and the
// base64 of 24 to 64 bytes: one, or two while receivers change from the old one to the new.
//
// Events hold ids. For requests that hold the rows as well, as the interface shows them,
// WebhookOptions.Fill is the Handler's:
//
//	var h *httpadapter.Handler
//	hook, err := httpadapter.Webhook(url, []string{secret}, &httpadapter.WebhookOptions{
//		Fill: func(ctx context.Context, n tracking.Notification) (any, error) { return h.Fill(ctx, n) },
//	})
//	…
//	svc, err := tracking.New(store, &tracking.Options{Notifiers: map[string]tracking.Notifier{"webhook": hook}})
//	…
//	h, err = httpadapter.New(svc, nil) // before svc.Run, which is what tells
func Webhook(url string, secrets []string, opts *WebhookOptions) (*webhook.Notifier, error) {
	return webhook.New(url, secrets, opts)
}

// VerifyWebhook is for receivers: it checks that a request with these headers and this body, as it
// came, was signed with one of secrets, not more than [webhook.Tolerance] from now.
func VerifyWebhook(h http.Header, body []byte, now time.Time, secrets ...string) error {
	return webhook.Verify(h, body, now, secrets...)
}

// filled is an event with the rows it is about.
type filled struct {
	event
	Task    *task        `json:"task,omitempty"`
	Trip    *tripDetail  `json:"trip,omitempty"`
	Driver  *operator    `json:"driver,omitempty"`
	Request *tripRequest `json:"request,omitempty"`
}

// Fill is an event with the rows that it names, as the interface shows them to an application and
// as they are now: under task, trip, driver, and for trip.requested under request. What is not
// there any more is left out, and so is whoever has the id of a driver who is gone. Its result is
// for encoding as JSON. It serves as [WebhookOptions].Fill.
func (h *Handler) Fill(ctx context.Context, n tracking.Notification) (any, error) {
	svc, e := h.svc.ForApp(n.App), n.Event
	named := func(kind tracking.SubjectKind, key string) string {
		if e.Subject.Kind == kind {
			return e.Subject.ID
		}
		return e.Data[key]
	}
	f := filled{event: eventOf(e)}
	if id := named(tracking.KindTask, "task_id"); id != "" {
		t, err := svc.Task(ctx, tracking.TaskID(id))
		if there, err := found(err); err != nil {
			return nil, err
		} else if there {
			f.Task = new(h.taskOf(t))
		}
	}
	if id := named(tracking.KindTrip, "trip_id"); id != "" {
		t, err := svc.Trip(ctx, tracking.TripID(id))
		if there, err := found(err); err != nil {
			return nil, err
		} else if there {
			f.Trip = new(tripDetailOf(t))
		}
	}
	id := tracking.DriverID(named(tracking.KindDriver, "driver_id"))
	if id == "" {
		return f, nil
	}
	d, err := svc.Driver(ctx, id)
	if there, err := found(err); !there || e.Person != "" && e.Person != d.Person { // somebody else has the id now
		return f, err
	}
	f.Driver = new(operatorOf(d))
	if e.Type != tracking.EventTripRequested {
		return f, nil
	}
	requests, err := svc.AsDriver(d).Requests(ctx, id)
	if there, err := found(err); !there {
		return f, err
	}
	for _, q := range requests {
		if string(q.TrackingID) == e.Data["tracking_id"] {
			f.Request = new(h.requestOf(q))
		}
	}
	return f, nil
}

// found reports whether a row was read. One that is not there is no error.
func found(err error) (bool, error) {
	if errors.Is(err, tracking.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
