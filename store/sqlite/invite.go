package sqlite

import (
	"context"
	"slices"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

const inviteColumns = `
	d.app, d.id AS driver_id, i.version, i.link_hash, i.code_hash, i.created_at, i.link_expires_at, i.code_expires_at,
	i.joined_at, i.nonce_hash, i.generation, i.past_codes`

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
	PastCodes     hashes `db:"past_codes"`
}

func (r *inviteRow) invite() tracking.Invite {
	return tracking.Invite{
		DriverID: r.DriverID, LinkHash: r.LinkHash.Hash, CodeHash: r.CodeHash.Hash, CreatedAt: r.CreatedAt.Time,
		LinkExpiresAt: r.LinkExpiresAt.Time, CodeExpiresAt: r.CodeExpiresAt.Time, JoinedAt: r.JoinedAt.Time,
		NonceHash: r.NonceHash.Hash, Generation: r.Generation, PastCodes: r.PastCodes, Version: r.Version,
	}
}

const (
	upsertInvite = `
INSERT INTO invites (driver, version, link_hash, code_hash, created_at, link_expires_at, code_expires_at, joined_at,
	nonce_hash, generation, past_codes, over_at)
VALUES (?, ` + newVersion + `, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (driver) DO UPDATE SET version = invites.version + 1, link_hash = excluded.link_hash,
	code_hash = excluded.code_hash, created_at = excluded.created_at,
	link_expires_at = excluded.link_expires_at, code_expires_at = excluded.code_expires_at,
	joined_at = excluded.joined_at,
	nonce_hash = excluded.nonce_hash, generation = excluded.generation, past_codes = excluded.past_codes,
	over_at = excluded.over_at`

	updateInvite = `
UPDATE invites SET version = version + 1, link_hash = ?, code_hash = ?, link_expires_at = ?, code_expires_at = ?,
	joined_at = ?, nonce_hash = ?,
	generation = ?, past_codes = ?, over_at = ?
WHERE driver = ? AND version = ?`

	selectInvite = `SELECT` + inviteColumns + ` FROM drivers d JOIN invites i ON i.driver = d.seq
		WHERE d.app = ? AND d.id = ?`
	selectInviteByHash = `
SELECT` + inviteColumns + ` FROM invites i INDEXED BY invites_by_link JOIN drivers d ON d.seq = i.driver
	WHERE i.link_hash = ?1
UNION ALL
SELECT` + inviteColumns + ` FROM invites i JOIN drivers d ON d.seq = i.driver WHERE i.driver = (
	SELECT driver FROM invites INDEXED BY invites_by_code WHERE code_hash = ?1 ORDER BY code_expires_at DESC LIMIT 1)
UNION ALL
SELECT` + inviteColumns + ` FROM past_codes c JOIN invites i ON i.driver = c.driver JOIN drivers d ON d.seq = i.driver
	WHERE c.code_hash = ?1
LIMIT 1`

	selectInviteCodes = `SELECT code_hash, past_codes FROM invites WHERE driver = ?`
	selectCodeHeld    = `SELECT EXISTS (SELECT 1 FROM invites INDEXED BY invites_by_code
		WHERE code_hash = ? AND code_expires_at > ? AND driver <> ?)`
	deletePastCodes = `DELETE FROM past_codes WHERE driver = ?`
	insertPastCode  = `INSERT OR IGNORE INTO past_codes (code_hash, driver) VALUES (?, ?)`
)

// putInvite writes an invite, and reports whether its code is one that the driver's invite did not
// have before.
func (x *tx) putInvite(app int64, v *tracking.Invite) (newCode bool, err error) {
	d, err := x.driver(driverKey{app, v.DriverID})
	if err != nil {
		return false, err
	}
	if d == nil {
		return false, rows.VersionConflict(tracking.KindDriver, v.DriverID)
	}
	over := rows.Over(v)
	var old struct {
		Code hash   `db:"code_hash"`
		Past hashes `db:"past_codes"`
	}
	if _, err := x.find(&old, selectInviteCodes, d.Seq); err != nil {
		return false, err
	}
	link, code, nonce, past := hashValue(v.LinkHash), hashValue(v.CodeHash), hashValue(v.NonceHash),
		hashesValue(v.PastCodes)
	if v.Version == 0 {
		err = x.exec(upsertInvite, d.Seq, app, link, code, v.CreatedAt.UnixMilli(), millis(v.LinkExpiresAt),
			millis(v.CodeExpiresAt),
			millis(v.JoinedAt), nonce, v.Generation, past, over.UnixMilli())
	} else {
		var n int
		n, err = x.changed(updateInvite, link, code, millis(v.LinkExpiresAt), millis(v.CodeExpiresAt),
			millis(v.JoinedAt), nonce,
			v.Generation, past, over.UnixMilli(), d.Seq, v.Version)
		if err == nil && n == 0 {
			return false, rows.VersionConflict(tracking.KindInvite, v.DriverID)
		}
	}
	if err != nil {
		return false, err
	}
	if !slices.Equal(old.Past, hashes(v.PastCodes)) {
		if err := x.exec(deletePastCodes, d.Seq); err != nil {
			return false, err
		}
		for _, h := range v.PastCodes {
			if err := x.exec(insertPastCode, hashValue(h), d.Seq); err != nil {
				return false, err
			}
		}
	}
	return !v.CodeHash.IsZero() && v.CodeHash != old.Code.Hash, nil
}

// checkCode refuses an invite's code that somebody else has when the invite is made.
func (x *tx) checkCode(app int64, v *tracking.Invite) error {
	d, err := x.driver(driverKey{app, v.DriverID})
	if err != nil || d == nil {
		return err
	}
	var held bool
	if err := x.get(&held, selectCodeHeld, hashValue(v.CodeHash), v.CreatedAt.UnixMilli(), d.Seq); err != nil {
		return err
	}
	if held {
		return rows.UniqueConflict(tracking.KindInvite, "code")
	}
	return nil
}

func (s *Store) invite(ctx context.Context, query string, args ...any) (tracking.AppID, tracking.Invite, error) {
	return one(ctx, s, func(r *inviteRow) (int64, tracking.Invite, error) {
		return r.App, r.invite(), nil
	}, query, args...)
}

// Invite implements [tracking.InviteReader].
func (s *Store) Invite(ctx context.Context, app tracking.AppID, driver tracking.DriverID) (tracking.Invite, error) {
	n, _ := s.apps.Number(app)
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
	return tracking.Key{
		ID: r.ID, Name: r.Name, Hash: r.Hash.Hash, CreatedAt: r.CreatedAt.Time, RevokedAt: r.RevokedAt.Time,
		Version: r.Version,
	}, nil
}

const (
	insertKey = `INSERT INTO keys (app, id, version, name, hash, created_at, revoked_at)
		VALUES (?, ?, ` + newVersion + `, ?, ?, ?, ?)`
	updateKey = `UPDATE keys SET version = version + 1, name = ?, hash = ?, revoked_at = ?
		WHERE app = ? AND id = ? AND version = ?`
	selectKeyExists = `SELECT EXISTS (SELECT 1 FROM keys WHERE app = ? AND id = ?)`
	selectKeys      = `SELECT` + keyColumns + ` FROM keys WHERE app = ? ORDER BY created_at, id`
	selectKeyByHash = `SELECT` + keyColumns + ` FROM keys WHERE hash = ?`
)

func (x *tx) putKey(app int64, k *tracking.Key) error {
	if k.Version != 0 {
		n, err := x.changed(updateKey, k.Name, hashValue(k.Hash), millis(k.RevokedAt), app, k.ID, k.Version)
		switch {
		case isConstraint(err):
			return rows.UniqueConflict(tracking.KindKey, "hash")
		case err == nil && n == 0:
			return rows.VersionConflict(tracking.KindKey, k.ID)
		}
		return err
	}
	err := x.exec(insertKey, app, k.ID, app, k.Name, hashValue(k.Hash), k.CreatedAt.UnixMilli(), millis(k.RevokedAt))
	return x.inserted(err, tracking.KindKey, k.ID, "hash", selectKeyExists, app)
}

// Keys implements [tracking.KeyReader].
func (s *Store) Keys(ctx context.Context, app tracking.AppID) (list []tracking.Key, err error) {
	n, _ := s.apps.Number(app)
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
	return one(ctx, s, func(r *keyRow) (int64, tracking.Key, error) {
		v, err := r.key()
		return r.App, v, err
	}, selectKeyByHash, hashValue(hash))
}
