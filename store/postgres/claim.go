package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
)

// nowOr is the moment that a parameter says, or else the server's, in UTC milliseconds.
func nowOr(param string) string {
	return `coalesce(` + param + `::bigint, (extract(epoch FROM statement_timestamp()) * 1000)::bigint)`
}

// now is what nowOr takes: nil for the server's clock.
func (s *Store) now(callers time.Time) *int64 {
	if !s.opts.CallersClock {
		return nil
	}
	return new(callers.UnixMilli())
}

// claimKey names what a sweep has handed out.
type claimKey struct {
	app     int32
	subject tracking.Subject
}

func byClaim(a, b claimKey) int {
	return cmp.Or(cmp.Compare(a.app, b.app), bySubject(a.subject, b.subject))
}

// sweepMatches is the sweep of Matches; those of Due have their kind.
const sweepMatches = 0

var (
	// A claim that has more than its time to go was made by a clock that was wrong.
	claimHeld = `c.owner <> $2 AND c.until > ` + nowOr("$3") + ` AND c.until <= ` + nowOr("$3") + ` + $4::bigint`

	countClaims = `SELECT count(*) FROM tracking.claims c WHERE sweep = $1 AND ` + claimHeld

	selectClaims = `
SELECT c.app, c.kind, c.id FROM tracking.claims c
JOIN unnest($5::int[], $6::text[], $7::text[]) u (app, kind, id) ON (c.app, c.kind, c.id) = (u.app, u.kind, u.id)
WHERE c.sweep = $1 AND ` + claimHeld

	takeClaims = `
INSERT INTO tracking.claims AS c (app, sweep, kind, id, owner, until)
SELECT u.app, $1::int, u.kind, u.id, $2::text, ` + nowOr("$3") + ` + $4::bigint
FROM unnest($5::int[], $6::text[], $7::text[]) WITH ORDINALITY u (app, kind, id, o) ORDER BY o
ON CONFLICT (app, sweep, kind, id) DO UPDATE SET owner = excluded.owner, until = excluded.until
WHERE NOT (` + claimHeld + `)
RETURNING c.app, c.kind, c.id`

	deleteClaims = `DELETE FROM tracking.claims WHERE until < ` + nowOr("$1")
)

func scanClaim(row pgx.CollectableRow) (k claimKey, err error) {
	err = row.Scan(&k.app, &k.subject.Kind, &k.subject.ID)
	return k, err
}

// take asks for rows, and hands out at most limit that nobody else has a claim on, which the owner has
// from now on. Without an owner it hands out whatever there is.
func take[V any](
	ctx context.Context, s *Store, sweep int, by tracking.Claim, limit int, key func(V) (claimKey, error),
	ask func(limit int) ([]V, error),
) (free []V, err error) {
	if by.Owner == "" {
		return ask(limit)
	}
	args := []any{sweep, by.Owner, s.now(by.Now), by.For.Milliseconds()}
	others, err := one(ctx, s, pgx.RowTo[int], countClaims, args...)
	if err != nil {
		return nil, err
	}
	found, err := ask(limit + others)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	keys := make([]claimKey, len(found))
	for i, v := range found {
		if keys[i], err = key(v); err != nil {
			return nil, err
		}
	}
	wanted := keys
	if others > 0 {
		held, err := list(ctx, s, scanClaim, selectClaims, append(args, claimValues(keys)...)...)
		if err != nil {
			return nil, err
		}
		wanted = slices.DeleteFunc(slices.Clone(keys), func(k claimKey) bool { return slices.Contains(held, k) })
	}
	if wanted, err = s.unheld(ctx, wanted); err != nil {
		return nil, err
	}
	wanted = slices.SortedFunc(slices.Values(wanted[:min(limit, len(wanted))]), byClaim)
	if len(wanted) == 0 {
		return nil, nil
	}
	mine, err := list(ctx, s, scanClaim, takeClaims, append(args, claimValues(wanted)...)...)
	if err != nil {
		return nil, err
	}
	for i, v := range found {
		if slices.Contains(mine, keys[i]) {
			free = append(free, v)
		}
	}
	return free, nil
}

// A lock that is let go of at once need not be durable.
const volatileLock = `SET LOCAL synchronous_commit = off`

// claimed are the rows of a table that some subjects of a kind are.
func claimed(table string, kind tracking.SubjectKind) lockable[claimKey] {
	return lockable[claimKey]{
		query: `SELECT t.app, u.kind, t.id FROM unnest($1::int[], $2::text[], $3::text[]) u (app, kind, id)
JOIN tracking.` + table + ` t ON t.app = u.app AND t.id = u.id WHERE u.kind = '` + string(kind) + `'`,
		lock:  ` FOR KEY SHARE OF t`,
		key:   `t.app, t.id`,
		keyOf: func(k claimKey) []any { return []any{k.app, k.subject.ID} },
		scan:  scanClaim,
	}
}

var claimedTasks, claimedTrips = claimed("tasks", tracking.KindTask), claimed("trips", tracking.KindTrip)

// unheld leaves out the tasks and trips that somebody else holds: a sweep is not to wait for the end
// of a transaction of an embedder's.
func (s *Store) unheld(ctx context.Context, keys []claimKey) (free []claimKey, err error) {
	if len(keys) == 0 || keys[0].subject.Kind == tracking.KindDriver {
		return keys, nil
	}
	var tasks, trips []claimKey
	err = s.write(ctx, func(ctx context.Context, x *tx) error {
		x.queue(volatileLock)
		if err := claimedTasks.free(ctx, x, &tasks, claimValues(keys)...); err != nil {
			return err
		}
		return claimedTrips.free(ctx, x, &trips, claimValues(keys)...)
	})
	for _, k := range keys {
		if slices.Contains(tasks, k) || slices.Contains(trips, k) {
			free = append(free, k)
		}
	}
	return free, err
}

// claimValues are keys as parameters.
func claimValues(keys []claimKey) []any {
	apps, kinds, ids := make([]int32, len(keys)), make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		apps[i], kinds[i], ids[i] = k.app, string(k.subject.Kind), k.subject.ID
	}
	return []any{apps, kinds, ids}
}

// leaseBounds are the longest that a lease and a retry can have to go, in milliseconds.
func leaseBounds(l tracking.Lease) (lease, retry int64) {
	const forEver = endless / 2 // may be added to a moment
	lease, retry = forEver, forEver
	if l.MaxLease > 0 {
		lease = l.MaxLease.Milliseconds()
	}
	if l.MaxRetry > 0 {
		retry = l.MaxRetry.Milliseconds()
	}
	return lease, retry
}
