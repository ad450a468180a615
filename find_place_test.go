package tracking_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// gazetteer is a Geocoder that knows one address.
type gazetteer struct{ asked int }

func (g *gazetteer) Point(_ context.Context, address string) (tracking.LngLat, error) {
	g.asked++
	switch address {
	case "12 Beach Road":
		return *east(70), nil
	case "nowhere on Earth":
		return tracking.LngLat{Lng: 500}, nil
	case "broken":
		panic("out of order")
	}
	return tracking.LngLat{}, tracking.ErrNotFound
}

func (*gazetteer) Address(context.Context, tracking.LngLat) (string, error) { return "", nil }

// TestFindPlace: an address is looked up before there is a task, so many times a minute.
func TestFindPlace(t *testing.T) {
	g := &gazetteer{}
	w := newWorld(t, func(o *tracking.Options) { o.Geocoder = g })
	for _, c := range []struct {
		address string
		code    tracking.ErrorCode
	}{
		{"12 Beach Road", ""}, {"elsewhere", tracking.ErrNotFound}, {"nowhere on Earth", tracking.ErrNotFound},
		{"broken", tracking.ErrUnavailable}, {"  ", tracking.ErrInvalid},
		{strings.Repeat("a", 1001), tracking.ErrInvalid},
	} {
		at, err := w.FindPlace(w.ctx, c.address)
		switch {
		case c.code == "" && (err != nil || at != *east(70)):
			t.Errorf("%.20q: %v, %v", c.address, at, err)
		case c.code != "" && !errors.Is(err, c.code):
			t.Errorf("%.20q: %v, want %s", c.address, err, c.code)
		}
	}
	if g.asked != 4 {
		t.Errorf("the Geocoder was asked %d times, want 4: not for what is no address", g.asked)
	}
	for range 56 {
		must(w.FindPlace(w.ctx, "12 Beach Road"))(t)
	}
	var e *tracking.Error
	w.advance(20 * time.Second)
	if _, err := w.FindPlace(w.ctx, "12 Beach Road"); !errors.As(err, &e) || e.Code != tracking.ErrRateLimited ||
		e.RetryAfter != 40*time.Second {
		t.Errorf("the 61st in a minute: %v", err)
	}
	must(w.ForApp("other").FindPlace(w.ctx, "12 Beach Road"))(t)
	w.advance(40 * time.Second)
	must(w.FindPlace(w.ctx, "12 Beach Road"))(t)

	if _, err := newWorld(t).FindPlace(w.ctx, "12 Beach Road"); !errors.Is(err, tracking.ErrConflict) {
		t.Errorf("without a Geocoder: %v", err)
	}
}
