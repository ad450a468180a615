package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

const inviteColumns = ` d.app, d.id, i.version, i.link_hash, i.code_hash, i.created_at, i.link_expires_at,
	i.code_expires_at, i.joined_at, i.nonce_hash, i.generation, i.past_codes`

const (
	fromInvites  = ` FROM tracking.invites i JOIN tracking.drivers d ON d.app = i.app AND d.n = i.driver`
	selectInvite = `SELECT` + inviteColumns + fromInvites + ` WHERE d.app = $1 AND d.id = $2`
	lookInvites  = `SELECT d.id, i.version, i.code_hash` + fromInvites + ` WHERE d.app = $1 AND d.id = ANY ($2)`

	selectInviteByHash = `
(SELECT` + inviteColumns + `, 1 AS rank` + fromInvites + ` WHERE i.link_hash = $1)
UNION ALL
(SELECT` + inviteColumns + `, 2` + fromInvites + ` WHERE i.code_hash = $1
	ORDER BY i.code_expires_at DESC NULLS LAST LIMIT 1)
UNION ALL
(SELECT` + inviteColumns + `, 3` + fromInvites + ` WHERE i.past_codes @> ARRAY[$1::bytea] LIMIT 1)
ORDER BY rank LIMIT 1`

	upsertInvite = `
INSERT INTO tracking.invites (app, driver, version, created_at, link_hash, code_hash, link_expires_at, code_expires_at,
	joined_at, nonce_hash, generation, past_codes, over_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (app, driver) DO UPDATE SET version = excluded.version, created_at = excluded.created_at,
	link_hash = excluded.link_hash, code_hash = excluded.code_hash, link_expires_at = excluded.link_expires_at,
	code_expires_at = excluded.code_expires_at, joined_at = excluded.joined_at, nonce_hash = excluded.nonce_hash,
	generation = excluded.generation, past_codes = excluded.past_codes, over_at = excluded.over_at`
	updateInvite = `
UPDATE tracking.invites SET version = $3, link_hash = $4, code_hash = $5, link_expires_at = $6, code_expires_at = $7,
	joined_at = $8, nonce_hash = $9, generation = $10, past_codes = $11, over_at = $12
WHERE app = $1 AND driver = $2`

	releaseCode = `DELETE FROM tracking.codes WHERE code_hash = $1 AND app = $2 AND driver = $3`
	keepCode    = `UPDATE tracking.codes SET expires_at = $4 WHERE code_hash = $1 AND app = $2 AND driver = $3`
	takeCode    = `
INSERT INTO tracking.codes AS c (code_hash, app, driver, expires_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (code_hash) DO UPDATE SET app = excluded.app, driver = excluded.driver, expires_at = excluded.expires_at
WHERE c.expires_at <= $5 OR (c.app, c.driver) = (excluded.app, excluded.driver)`
	selectCodeHeld = `
SELECT FROM tracking.invites WHERE code_hash = $1 AND code_expires_at > $2 AND (app, driver) <> ($3, $4) LIMIT 1`
)

// inviteState is what a transaction needs to know of the invite that a driver has.
type inviteState struct {
	driver  tracking.DriverID
	version int64
	code    hash
}

func scanInviteState(row pgx.CollectableRow) (v inviteState, err error) {
	err = row.Scan(&v.driver, &v.version, &v.code)
	return v, err
}

// putInvite queues an invite of a driver, who is locked. Old is the one that he has; its version is 0
// if there is none. What becomes of its code is for codes.
func (x *tx) putInvite(d *driverState, v *tracking.Invite, old inviteState, m marks) {
	common := []any{
		hashValue(v.LinkHash), hashValue(v.CodeHash), millis(v.LinkExpiresAt), millis(v.CodeExpiresAt),
		millis(v.JoinedAt), hashValue(v.NonceHash), v.Generation, hashesValue(v.PastCodes), rows.Over(v).UnixMilli(),
	}
	if v.Version != 0 {
		x.queue(updateInvite, append([]any{d.app, d.number, old.version + 1}, common...)...)
		return
	}
	version := old.version + 1
	if old.version == 0 {
		version = m.version + 1
	}
	x.queue(upsertInvite, append([]any{d.app, d.number, version, v.CreatedAt.UnixMilli()}, common...)...)
}

type appInvite struct {
	tracking.Invite
	app int32
}

// scanInvite reads inviteColumns, and what more there is of a row.
func scanInvite(row pgx.CollectableRow, more ...any) (v appInvite, err error) {
	var link, code, nonce hash
	var created, linkEnd, codeEnd, joined instant
	var past [][]byte
	err = row.Scan(append([]any{
		&v.app, &v.DriverID, &v.Version, &link, &code, &created, &linkEnd, &codeEnd, &joined, &nonce,
		&v.Generation, &past,
	}, more...)...)
	if err != nil {
		return v, err
	}
	v.LinkHash, v.CodeHash, v.NonceHash = link.Hash, code.Hash, nonce.Hash
	v.CreatedAt, v.LinkExpiresAt, v.CodeExpiresAt, v.JoinedAt = created.Time, linkEnd.Time, codeEnd.Time, joined.Time
	v.PastCodes, err = hashesOf(past)
	return v, err
}

// Invite implements [tracking.InviteReader].
func (s *Store) Invite(ctx context.Context, app tracking.AppID, driver tracking.DriverID) (tracking.Invite, error) {
	v, err := oneIn(ctx, s, app, func(row pgx.CollectableRow) (appInvite, error) { return scanInvite(row) },
		selectInvite, string(driver))
	return v.Invite, err
}

// InviteByHash implements [tracking.InviteReader].
func (s *Store) InviteByHash(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Invite, error) {
	v, err := one(ctx, s, func(row pgx.CollectableRow) (appInvite, error) {
		var rank int
		return scanInvite(row, &rank)
	}, selectInviteByHash, hashValue(hash))
	if err != nil {
		return "", tracking.Invite{}, err
	}
	app, err := s.appOf(ctx, v.app)
	return app, v.Invite, err
}

const (
	keyColumns      = ` app, id, version, name, hash, created_at, revoked_at`
	selectKeys      = `SELECT` + keyColumns + ` FROM tracking.keys WHERE app = $1 ORDER BY created_at, id`
	selectKeyByHash = `SELECT` + keyColumns + ` FROM tracking.keys WHERE hash = $1`

	lockKeys   = `SELECT id, version FROM tracking.keys WHERE app = $1 AND id = ANY ($2) ORDER BY id FOR UPDATE`
	releaseKey = `UPDATE tracking.keys SET hash = NULL WHERE app = $1 AND id = $2`
	insertKey  = `INSERT INTO tracking.keys (app, id, version, name, hash, created_at, revoked_at)
		VALUES ($1, $2, 1, $3, $4, $5, $6)`
	updateKey = `UPDATE tracking.keys SET version = version + 1, name = $3, hash = $4, revoked_at = $5
		WHERE app = $1 AND id = $2`
)

// putKey queues a new row, or another one in place of the old one.
func (x *tx) putKey(app int32, k *tracking.Key) {
	if k.Version == 0 {
		x.queue(insertKey, app, k.ID, k.Name, hashValue(k.Hash), k.CreatedAt.UnixMilli(), millis(k.RevokedAt))
	} else {
		x.queue(updateKey, app, k.ID, k.Name, hashValue(k.Hash), millis(k.RevokedAt))
	}
}

type appKey struct {
	tracking.Key
	app int32
}

func scanKey(row pgx.CollectableRow) (v appKey, err error) {
	var sum hash
	var created, revoked instant
	err = row.Scan(&v.app, &v.ID, &v.Version, &v.Name, &sum, &created, &revoked)
	v.Hash, v.CreatedAt, v.RevokedAt = sum.Hash, created.Time, revoked.Time
	return v, err
}

// Keys implements [tracking.KeyReader].
func (s *Store) Keys(ctx context.Context, app tracking.AppID) ([]tracking.Key, error) {
	return listIn(ctx, s, app, func(row pgx.CollectableRow) (tracking.Key, error) {
		k, err := scanKey(row)
		return k.Key, err
	}, selectKeys)
}

// KeyByHash implements [tracking.KeyReader].
func (s *Store) KeyByHash(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Key, error) {
	k, err := one(ctx, s, scanKey, selectKeyByHash, hashValue(hash))
	if err != nil {
		return "", tracking.Key{}, err
	}
	app, err := s.appOf(ctx, k.app)
	return app, k.Key, err
}
