package tracking_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

func TestJoin(t *testing.T) {
	join := func(w *world, j tracking.JoinRequest) (tracking.Joined, error) { return w.Join(w.ctx, j) }
	t.Run("once by either way", func(t *testing.T) {
		w := newWorld(t)
		inv := must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "d", Name: new("Dora Diaz")}))(t)
		got := must(join(w, tracking.JoinRequest{Code: fmt.Sprint(inv.Code)}))(t)
		if got.Driver.ID != "d" || got.App != w.App() || got.Driver.Available {
			t.Errorf("%+v", got)
		}
		for _, j := range []tracking.JoinRequest{
			{Code: fmt.Sprint(inv.Code)}, {Token: inv.Token}, {Token: "x"}, {Token: fmt.Sprint(inv.Code)},
			{Code: inv.Token},
		} {
			if _, err := join(w, j); code(err) != tracking.ErrNotFound {
				t.Errorf("%v: %v", j, err)
			}
		}
		_, d, err := w.AuthenticateDriver(w.ctx, tracking.TokenApp, got.Token)
		if err != nil || d != "d" {
			t.Error(d, err)
		}
		if _, _, err := w.AuthenticateDriver(w.ctx, tracking.TokenApp,
			got.IngestToken); code(err) != tracking.ErrUnauthorized {
			t.Error("the ingest token acts as the driver:", err)
		}
		if token := must(w.IngestToken(w.ctx, "d"))(t); token != got.IngestToken {
			t.Error("the ingest token is another when asked for again")
		}
		second := must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "d"}))(t)
		again := must(join(w, tracking.JoinRequest{Token: second.Token}))(t)
		if _, _, err := w.AuthenticateDriver(w.ctx, tracking.TokenApp,
			got.Token); code(err) != tracking.ErrUnauthorized {
			t.Error("the older token lives on")
		}
		if err := w.RevokeTokens(w.ctx, "d"); err != nil {
			t.Fatal(err)
		}
		for kind, token := range map[tracking.TokenKind]string{
			tracking.TokenApp: again.Token, tracking.TokenIngest: again.IngestToken,
		} {
			if _, _, err := w.AuthenticateDriver(w.ctx, kind, token); code(err) != tracking.ErrUnauthorized {
				t.Error("a revoked token lives on")
			}
		}
		if must(w.Driver(w.ctx, "d"))(t).Name != "Dora Diaz" {
			t.Error("the second invite took the name away")
		}
	})
	t.Run("a new invite kills the older", func(t *testing.T) {
		w := newWorld(t)
		old := must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "d"}))(t)
		must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "d"}))(t)
		if _, err := join(w, tracking.JoinRequest{Token: old.Token}); code(err) != tracking.ErrNotFound {
			t.Error(err)
		}
	})
	t.Run("expiry", func(t *testing.T) {
		w := newWorld(t)
		inv := must(w.InviteDriver(w.ctx, tracking.NewInvite{}))(t)
		w.advance(time.Hour)
		if _, err := join(w, tracking.JoinRequest{Code: fmt.Sprint(inv.Code)}); code(err) != tracking.ErrNotFound {
			t.Error("the code:", err)
		}
		w.advance(23*time.Hour - time.Millisecond)
		must(join(w, tracking.JoinRequest{Token: inv.Token}))(t)
	})
	t.Run("a lost answer", func(t *testing.T) {
		w := newWorld(t)
		inv := must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "d"}))(t)
		one := must(join(w, tracking.JoinRequest{Token: inv.Token, Nonce: "n1"}))(t)
		w.advance(9 * time.Minute)
		two := must(join(w, tracking.JoinRequest{Token: inv.Token, Nonce: "n1"}))(t)
		if one.Token != two.Token || one.IngestToken != two.IngestToken {
			t.Error("another answer")
		}
		if got := w.told(tracking.KindDriver, "d", 0); !slices.Equal(got, []string{"driver.joined"}) {
			t.Error(got)
		}
		if _, err := join(w, tracking.JoinRequest{Token: inv.Token, Nonce: "n2"}); code(err) != tracking.ErrNotFound {
			t.Error("another nonce:", err)
		}
		w.advance(2 * time.Minute)
		if _, err := join(w, tracking.JoinRequest{Token: inv.Token, Nonce: "n1"}); code(err) != tracking.ErrNotFound {
			t.Error("after 10 minutes:", err)
		}
	})
	t.Run("guessing", func(t *testing.T) {
		w := newWorld(t)
		inv := must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "d"}))(t)
		for range 5 {
			if _, err := join(w, tracking.JoinRequest{Code: "99", Source: "s"}); code(err) != tracking.ErrNotFound {
				t.Error(err)
			}
		}
		_, err := join(w, tracking.JoinRequest{Code: fmt.Sprint(inv.Code), Source: "s"})
		var e *tracking.Error
		if !errors.As(err, &e) || e.Code != tracking.ErrRateLimited || e.RetryAfter != 15*time.Minute {
			t.Errorf("the 6th: %v", err)
		}
		must(join(w, tracking.JoinRequest{Code: fmt.Sprint(inv.Code), Source: "other"}))(t)
	})
}

func TestKeys(t *testing.T) {
	w := newWorld(t)
	key, secret, err := w.ForApp("shop").CreateKey(w.ctx, "checkout")
	if err != nil {
		t.Fatal(err)
	}
	app, got, err := w.AuthenticateKey(w.ctx, secret)
	if err != nil || app != "shop" || got.ID != key.ID {
		t.Error(app, got, err)
	}
	if err := w.ForApp("shop").RevokeKey(w.ctx, key.ID); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{secret, "", "nonsense"} {
		if _, _, err := w.AuthenticateKey(w.ctx, s); code(err) != tracking.ErrUnauthorized {
			t.Errorf("%q: %v", s, err)
		}
	}
}
