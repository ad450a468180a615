package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

const (
	selectAppNumber = `SELECT n FROM tracking.apps WHERE id = $1`
	selectAppID     = `SELECT id FROM tracking.apps WHERE n = $1`
	insertApp       = `INSERT INTO tracking.apps (id) VALUES ($1) ON CONFLICT DO NOTHING`
)

// number is an application's; 0, which none has, while it has committed nothing.
func (s *Store) number(ctx context.Context, app tracking.AppID) (n int32, err error) {
	if n, ok := s.apps.Number(app); ok || !rows.Text(app) {
		return n, nil
	}
	err = s.on(ctx, func(ctx context.Context, c conn) error {
		found, err := c.Query(ctx, s.sql(selectAppNumber), string(app))
		if err == nil {
			n, err = pgx.CollectOneRow(found, pgx.RowTo[int32])
		}
		return err
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, nil
	case err == nil:
		s.apps.Add(n, app)
	}
	return n, err
}

// register is the number of an application that is to commit something. It is given in a transaction
// of its own, so that two that commit first do not wait for each other: an application without rows
// cannot be seen.
func (s *Store) register(ctx context.Context, app tracking.AppID) (int32, error) {
	n, err := s.number(ctx, app)
	if n != 0 || err != nil {
		return n, err
	}
	if _, err := s.pool.Exec(ctx, s.sql(insertApp), string(app)); err != nil {
		return 0, err
	}
	return s.number(ctx, app)
}

// appID is the application with a number.
func (s *Store) appID(ctx context.Context, n int32) (app tracking.AppID, err error) {
	if app, ok := s.apps.ID(n); ok {
		return app, nil
	}
	if err = s.pool.QueryRow(ctx, s.sql(selectAppID), n).Scan(&app); err == nil {
		s.apps.Add(n, app)
	}
	return app, err
}

// numberOf is number as a call of its own, if it is not known.
func (s *Store) numberOf(ctx context.Context, app tracking.AppID) (n int32, err error) {
	if n, ok := s.apps.Number(app); ok {
		return n, nil
	}
	err = s.call(ctx, func(ctx context.Context) error {
		n, err = s.number(ctx, app)
		return err
	})
	return n, err
}

// appOf is appID as a call of its own, if it is not known.
func (s *Store) appOf(ctx context.Context, n int32) (app tracking.AppID, err error) {
	if app, ok := s.apps.ID(n); ok {
		return app, nil
	}
	err = s.call(ctx, func(ctx context.Context) error {
		app, err = s.appID(ctx, n)
		return err
	})
	return app, err
}
