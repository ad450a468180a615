package storetest

import (
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// inviteChecks are about invites and API keys.
func inviteChecks() []check {
	return []check{
		{"InviteByHash/finds by the link's and the code's hash, used ones too", inviteByHashFindsUsedOnesToo},
		{"Keys/lists oldest first and then by ID, revoked ones included", keysListOldestFirst},
		{"KeyByHash/follows a changed hash", keyByHashFollowsAChange},
	}
}

func inviteByHashFindsUsedOnesToo(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	i := newInvite("d", 1, 2)
	i.JoinedAt, i.NonceHash, i.Generation = at(time.Minute), hash(3), 4
	bare := tracking.Invite{DriverID: "e", CreatedAt: t0}
	c.commit(tracking.Changeset{
		Drivers: []tracking.Driver{newDriver("d", t0), newDriver("e", t0)}, Invites: []tracking.Invite{i, bare},
	})
	for _, h := range []tracking.Hash{i.LinkHash, i.CodeHash} {
		app, got, err := s.InviteByHash(c.ctx, h)
		c.ok(err)
		same(t, "application", app, here)
		same(t, "invite", got, c.invite("d"))
	}
	for _, h := range []tracking.Hash{{}, hash(3), hash(9)} {
		_, _, err := s.InviteByHash(c.ctx, h)
		missing(t, "InviteByHash", err)
	}
}

func keysListOldestFirst(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	revoked := newKey("c", 1, t0)
	revoked.RevokedAt = at(time.Hour)
	c.commit(tracking.Changeset{Keys: []tracking.Key{
		revoked, newKey("B", 2, t0), newKey("a", 3, t0), newKey("z", 4, at(-time.Hour)), newKey("0", 5, at(time.Hour)),
	}})
	same(t, "keys", each(c.keys(), func(k tracking.Key) string { return k.ID }), []string{"z", "B", "a", "c", "0"})
	app, got, err := s.KeyByHash(c.ctx, hash(1))
	c.ok(err)
	same(t, "application", app, here)
	revoked.Version = 1
	same(t, "key", got, revoked)
	for _, h := range []tracking.Hash{{}, hash(9)} {
		_, _, err = s.KeyByHash(c.ctx, h)
		missing(t, "KeyByHash", err)
	}
}

func keyByHashFollowsAChange(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Keys: []tracking.Key{newKey("a", 1, t0)}})
	k := c.keys()[0]
	k.Hash = hash(2)
	c.commit(tracking.Changeset{Keys: []tracking.Key{k}})
	_, _, err := s.KeyByHash(c.ctx, hash(1))
	missing(t, "KeyByHash of the old hash", err)
	_, got, err := s.KeyByHash(c.ctx, hash(2))
	c.ok(err)
	same(t, "key", got.ID, "a")
	c.commit(tracking.Changeset{Keys: []tracking.Key{newKey("b", 1, t0)}})
}
