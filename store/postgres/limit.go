package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

var _ tracking.Limiter = (*Store)(nil)

var (
	// A name that is new has a row, too, so that whoever comes at the same time waits for it.
	lockLimit = `
INSERT INTO tracking.limits AS l (name, value, until) VALUES ($1, '', 0)
ON CONFLICT (name) DO UPDATE SET until = l.until
RETURNING CASE WHEN until > ` + nowOr("NULL") + ` THEN value END`

	updateLimit = `UPDATE tracking.limits SET value = $2, until = ` + nowOr("NULL") + ` + $3::bigint WHERE name = $1`

	deleteLimits = `DELETE FROM tracking.limits WHERE until < ` + nowOr("NULL")
)

const deleteLimit = `DELETE FROM tracking.limits WHERE name = $1`

// Limit implements [tracking.Limiter].
func (s *Store) Limit(ctx context.Context, name string, keep time.Duration, count func(value []byte) []byte) error {
	if err := cmp.Or(ctx.Err(), rows.Texts(name)); err != nil {
		return err
	}
	return s.write(ctx, func(ctx context.Context, x *tx) error {
		var found [][]byte
		queueRows(x, &found, pgx.RowTo[[]byte], lockLimit, name)
		if err := x.flush(ctx); err != nil {
			return err
		}
		if value := count(found[0]); value != nil {
			x.queue(updateLimit, name, value, keep.Milliseconds())
		} else {
			x.queue(deleteLimit, name)
		}
		return nil
	})
}
