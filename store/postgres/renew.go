package postgres

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Only what is there since version 1 is named here, whatever tasks have since.
const (
	selectBatchEnd = `SELECT app, id FROM tracking.tasks WHERE (app, id) > ($1::int, $2::text)
		ORDER BY app, id OFFSET 999 LIMIT 1`
	selectOtherScripts = `
SELECT app, id, version, order_id, pickup_lng, pickup_lat, pickup_address, pickup_name, pickup_mobile,
	drop_lng, drop_lat, drop_address, drop_name, drop_mobile, more, terms
FROM tracking.tasks,
	concat(order_id, pickup_address, pickup_name, pickup_mobile, drop_address, drop_name, drop_mobile) said
WHERE (app, id) > ($1::int, $2::text) AND (app, id) <= ($3::int, $4::text) AND octet_length(said) > char_length(said)`
	updateTerms = `UPDATE tracking.tasks t SET terms = u.terms::text[]
		FROM unnest($1::int[], $2::text[], $3::bigint[], $4::text[]) u (app, id, version, terms)
		WHERE t.app = u.app AND t.id = u.id AND t.version = u.version`
)

type taskKey struct {
	app int32
	id  string
}

// renewTerms sees to it that all tasks are found by what they are found by since version 2. Each batch
// is a transaction, so that what others write waits for no more than one.
func (s *Store) renewTerms(ctx context.Context) error {
	end := taskKey{app: math.MaxInt32}
	for from, to := (taskKey{}), (taskKey{}); to != end; from = to {
		err := s.pool.QueryRow(ctx, s.sql(selectBatchEnd), from.app, from.id).Scan(&to.app, &to.id)
		if errors.Is(err, pgx.ErrNoRows) {
			to, err = end, nil
		}
		for done := false; err == nil && !done; {
			if done, err = s.renewBatch(ctx, from, to); passes(err) {
				err = letEnd(ctx)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// renewBatch does so for the tasks after one key up to another, and reports whether all are renewed:
// not one that somebody else has written meanwhile.
func (s *Store) renewBatch(ctx context.Context, from, to taskKey) (done bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		for _, set := range []string{limitLockWait, takeTime} {
			if _, err := tx.Exec(ctx, set); err != nil {
				return err
			}
		}
		found, err := tx.Query(ctx, s.sql(selectOtherScripts), from.app, from.id, to.app, to.id)
		if err != nil {
			return err
		}
		values, err := pgx.CollectRows(found, scanStale)
		values = slices.DeleteFunc(values, func(v []any) bool { return v == nil })
		if done = len(values) == 0; err != nil || done {
			return err
		}
		tag, err := tx.Exec(ctx, s.sql(updateTerms), columns(values)...)
		done = tag.RowsAffected() == int64(len(values))
		return err
	})
	return done, err
}

// scanStale are the app, id, version and terms that a task should have; nil if it has them.
func scanStale(row pgx.CollectableRow) ([]any, error) {
	var (
		app          int
		id           string
		version      int64
		t            tracking.Task
		pickup, drop placeRow
		more         *string
		terms        []string
	)
	dest := append([]any{&app, &id, &version, &t.OrderID}, pickup.dest()...)
	if err := row.Scan(append(append(dest, drop.dest()...), &more, &terms)...); err != nil {
		return nil, err
	}
	t.Pickup, t.Drop = pickup.place(), drop.place()
	if more != nil {
		if err := rows.AddMore(&t, *more); err != nil {
			return nil, err
		}
	}
	want := rows.Terms(&t, allTerms)
	if slices.Equal(terms, want) {
		return nil, nil
	}
	return []any{app, id, version, arrayValue(want)}, nil
}
