package sqlite

import (
	"context"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

const inviteColumns = `
	d.app, d.id AS driver_id, i.version, i.link_hash, i.code_hash, i.created_at, i.link_expires_at, i.code_expires_at,
	i.joined_at, i.nonce_hash, i.generation`

type inviteRow struct {
	App           int64
	DriverID      tracking.DriverID `db:"driver_id"`
	Version       int64
	LinkHash      hash    `db:"link_hash"`
	CodeHash      hash    `db:"code_hash"`
	CreatedAt     instant `db:"created_at"`
	LinkExpiresAt instant `db:"link_expires_at"`
	CodeExpiresAt instant `db:"code_expires_at"`
	JoinedAt      instant `db:"joined_at"`
	NonceHash     hash    `db:"nonce_hash"`
	Generation    int
}

func (r *inviteRow) invite() tracking.Invite {
	return tracking.Invite{
		DriverID: r.DriverID, LinkHash: r.LinkHash.Hash, CodeHash: r.CodeHash.Hash, CreatedAt: r.CreatedAt.Time,
		LinkExpiresAt: r.LinkExpiresAt.Time, CodeExpiresAt: r.CodeExpiresAt.Time, JoinedAt: r.JoinedAt.Time,
		NonceHash: r.NonceHash.Hash, Generation: r.Generation, Version: r.Version,
	}
}

const (
	upsertInvite = `
INSERT INTO invites (driver, version, link_hash, code_hash, created_at, link_expires_at, code_expires_at, joined_at, nonce_hash, generation, over_at)
VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (driver) DO UPDATE SET version = invites.version + 1, link_hash = excluded.link_hash, code_hash = excluded.code_hash, created_at = excluded.created_at,
	link_expires_at = excluded.link_expires_at, code_expires_at = excluded.code_expires_at, joined_at = excluded.joined_at,
	nonce_hash = excluded.nonce_hash, generation = excluded.generation, over_at = excluded.over_at`

	updateInvite = `
UPDATE invites SET version = version + 1, link_hash = ?, code_hash = ?, link_expires_at = ?, code_expires_at = ?, joined_at = ?, nonce_hash = ?,
	generation = ?, over_at = ?
WHERE driver = ? AND version = ?`

	selectInvite       = `SELECT` + inviteColumns + ` FROM drivers d JOIN invites i ON i.driver = d.seq WHERE d.app = ? AND d.id = ?`
	selectInviteByHash = `
SELECT` + inviteColumns + ` FROM invites i INDEXED BY invites_by_link JOIN drivers d ON d.seq = i.driver WHERE i.link_hash = ?1
UNION ALL
SELECT` + inviteColumns + ` FROM invites i INDEXED BY invites_by_code JOIN drivers d ON d.seq = i.driver WHERE i.code_hash = ?1
LIMIT 1`
)

func (x *tx) putInvite(app int64, v *tracking.Invite) error {
	d, err := x.driver(driverKey{app, v.DriverID})
	if err != nil {
		return err
	}
	if d == nil {
		return conflict(tracking.KindDriver, string(v.DriverID))
	}
	over := v.LinkExpiresAt
	for _, t := range []time.Time{v.CodeExpiresAt, v.JoinedAt} {
		if t.After(over) {
			over = t
		}
	}
	link, code, nonce := hashValue(v.LinkHash), hashValue(v.CodeHash), hashValue(v.NonceHash)
	if v.Version == 0 {
		err = x.exec(upsertInvite, d.Seq, link, code, v.CreatedAt.UnixMilli(), millis(v.LinkExpiresAt), millis(v.CodeExpiresAt),
			millis(v.JoinedAt), nonce, v.Generation, over.UnixMilli())
	} else {
		var n int
		n, err = x.changed(updateInvite, link, code, millis(v.LinkExpiresAt), millis(v.CodeExpiresAt), millis(v.JoinedAt), nonce,
			v.Generation, over.UnixMilli(), d.Seq, v.Version)
		if err == nil && n == 0 {
			return conflict(tracking.KindInvite, string(v.DriverID))
		}
	}
	if isConstraint(err) {
		return taken(tracking.KindInvite, "code")
	}
	return err
}

func (s *Store) invite(ctx context.Context, query string, args ...any) (tracking.AppID, tracking.Invite, error) {
	var r inviteRow
	err := s.read(ctx, func(ctx context.Context) error { return s.get(ctx, &r, query, args...) })
	if err != nil {
		return "", tracking.Invite{}, err
	}
	return s.apps.id(r.App), r.invite(), nil
}

// Invite implements [tracking.InviteReader].
func (s *Store) Invite(ctx context.Context, app tracking.AppID, driver tracking.DriverID) (tracking.Invite, error) {
	n, _ := s.apps.number(app)
	_, v, err := s.invite(ctx, selectInvite, n, driver)
	return v, err
}

// InviteByHash implements [tracking.InviteReader].
func (s *Store) InviteByHash(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Invite, error) {
	return s.invite(ctx, selectInviteByHash, hashValue(hash))
}

const keyColumns = ` app, id, version, name, hash, created_at, revoked_at`

type keyRow struct {
	App       int64
	ID        string
	Version   int64
	Name      string
	Hash      hash
	CreatedAt instant `db:"created_at"`
	RevokedAt instant `db:"revoked_at"`
}

func (r *keyRow) key() (tracking.Key, error) {
	return tracking.Key{ID: r.ID, Name: r.Name, Hash: r.Hash.Hash, CreatedAt: r.CreatedAt.Time, RevokedAt: r.RevokedAt.Time, Version: r.Version}, nil
}

const (
	insertKey       = `INSERT INTO keys (app, id, version, name, hash, created_at, revoked_at) VALUES (?, ?, 1, ?, ?, ?, ?)`
	updateKey       = `UPDATE keys SET version = version + 1, name = ?, hash = ?, revoked_at = ? WHERE app = ? AND id = ? AND version = ?`
	selectKeyExists = `SELECT EXISTS (SELECT 1 FROM keys WHERE app = ? AND id = ?)`
	selectKeys      = `SELECT` + keyColumns + ` FROM keys WHERE app = ? ORDER BY created_at, id`
	selectKeyByHash = `SELECT` + keyColumns + ` FROM keys WHERE hash = ?`
)

func (x *tx) putKey(app int64, k *tracking.Key) error {
	if k.Version != 0 {
		n, err := x.changed(updateKey, k.Name, hashValue(k.Hash), millis(k.RevokedAt), app, k.ID, k.Version)
		switch {
		case isConstraint(err):
			return taken(tracking.KindKey, "hash")
		case err == nil && n == 0:
			return conflict(tracking.KindKey, k.ID)
		}
		return err
	}
	err := x.exec(insertKey, app, k.ID, k.Name, hashValue(k.Hash), k.CreatedAt.UnixMilli(), millis(k.RevokedAt))
	if !isConstraint(err) {
		return err
	}
	var exists bool
	if err := x.get(&exists, selectKeyExists, app, k.ID); err != nil {
		return err
	}
	if exists {
		return conflict(tracking.KindKey, k.ID)
	}
	return taken(tracking.KindKey, "hash")
}

// Keys implements [tracking.KeyReader].
func (s *Store) Keys(ctx context.Context, app tracking.AppID) (list []tracking.Key, err error) {
	n, _ := s.apps.number(app)
	err = s.read(ctx, func(ctx context.Context) error {
		var rows []keyRow
		if err := s.list(ctx, &rows, selectKeys, n); err != nil {
			return err
		}
		list, err = convert(rows, (*keyRow).key)
		return err
	})
	return list, err
}

// KeyByHash implements [tracking.KeyReader].
func (s *Store) KeyByHash(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Key, error) {
	var r keyRow
	err := s.read(ctx, func(ctx context.Context) error { return s.get(ctx, &r, selectKeyByHash, hashValue(hash)) })
	if err != nil {
		return "", tracking.Key{}, err
	}
	k, err := r.key()
	return s.apps.id(r.App), k, err
}
