package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// inviteEndChecks are about invites and codes that are over.
func inviteEndChecks() []check {
	return []check{
		{"RevokeTokens ends an open invite too", revokingTokensEndsTheInvite},
		{"codes that were live once are no guesses", codesOnceLiveAreNoGuesses},
	}
}

func revokingTokensEndsTheInvite(t testing.TB, s tracking.Store) {
	n := newSuccessor(t, s)
	n.save("Asha", true, 0)
	for _, joined := range []bool{false, true} {
		if joined { // he has tokens, and was invited again
			i, err := n.svc.InviteDriver(t.Context(), tracking.NewInvite{DriverID: "d7"})
			n.must(err)
			_, err = n.svc.Join(t.Context(), tracking.JoinRequest{Token: i.Token})
			n.must(err)
		}
		i, err := n.svc.InviteDriver(t.Context(), tracking.NewInvite{DriverID: "d7"})
		n.must(err)
		n.must(n.svc.RevokeTokens(t.Context(), "d7"))
		for _, j := range []tracking.JoinRequest{{Token: i.Token}, {Code: fmt.Sprint(i.Code)}} {
			if _, err := n.svc.Join(t.Context(), j); !errors.Is(err, tracking.ErrNotFound) {
				t.Errorf("Join by a revoked invite (link: %v): got error %v, want ErrNotFound", j.Token != "", err)
			}
		}
		before := n.driver().Version
		n.must(n.svc.RevokeTokens(t.Context(), "d7"))
		same(t, "version after revoking again", n.driver().Version, before)
	}
}

// codesOnceLiveAreNoGuesses tries codes that were replaced, used or revoked, and then wrong ones.
func codesOnceLiveAreNoGuesses(t testing.TB, s tracking.Store) {
	n := newSuccessor(t, s)
	n.save("Asha", true, 0)
	invite := func() string {
		i, err := n.svc.InviteDriver(t.Context(), tracking.NewInvite{DriverID: "d7"})
		n.must(err)
		return fmt.Sprint(i.Code)
	}
	replaced := invite()
	used := invite()
	_, err := n.svc.Join(t.Context(), tracking.JoinRequest{Code: used})
	n.must(err)
	usedAndReplaced := used
	revoked := invite()
	n.must(n.svc.RevokeTokens(t.Context(), "d7"))
	expired := invite()
	n.clock.forward(2 * time.Hour)
	for range 30 { // five wrong ones would have the source wait, 20 everybody
		for name, code := range map[string]string{
			"replaced": replaced, "used": usedAndReplaced, "revoked": revoked, "expired": expired,
		} {
			if _, err := n.svc.Join(t.Context(),
				tracking.JoinRequest{Code: code, Source: "phone"}); !errors.Is(err, tracking.ErrNotFound) {
				t.Fatalf("the %s code: got error %v, want ErrNotFound", name, err)
			}
		}
	}
	for range 5 {
		if _, err := n.svc.Join(t.Context(),
			tracking.JoinRequest{Code: "000001", Source: "phone"}); !errors.Is(err, tracking.ErrNotFound) {
			t.Fatalf("a code that nobody had: got error %v, want ErrNotFound", err)
		}
	}
	if _, err := n.svc.Join(t.Context(),
		tracking.JoinRequest{Code: "000001", Source: "phone"}); !errors.Is(err, tracking.ErrRateLimited) {
		t.Errorf("the sixth wrong code: got error %v, want ErrRateLimited", err)
	}
}
