package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
	"github.com/seed-8aba7b13/tracking/store/postgres"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// storeFlags say where the data is. Every command has them.
type storeFlags struct {
	spec    string
	migrate bool
	secret  string // of tracking.Options; "": the store's own

	compactOnRequest bool // of sqlite.Options; no flag
}

func (s *storeFlags) add(flags *flag.FlagSet) {
	flags.StringVar(&s.spec, "store", "memory",
		"where the data is: `memory|sqlite:FILE|postgres://USER@HOST/DATABASE`; in memory it is gone when the server ends, "+
			"in PostgreSQL several servers share it (pool_max_conns in the URL is how many connections each has)")
	flags.BoolVar(&s.migrate, "migrate", true,
		"bring the schema in PostgreSQL up to date; without it the server ends when it is not")
	flags.StringVar(&s.secret, "secret", "",
		"`TEXT` of 32 characters or more that links, codes and tokens are made with, kept elsewhere than the store and always the same: without it a copy of the store can make its links (default: one that the store keeps)")
}

// check says what is wrong with them.
func (s *storeFlags) check() error {
	file, isFile := strings.CutPrefix(s.spec, "sqlite:")
	switch {
	case s.secret != "" && len(s.secret) < 32:
		return errors.New("-secret must have 32 characters or more")
	case isFile && file == "":
		return errors.New("-store sqlite: names no file: write sqlite:FILE")
	case isPostgres(s.spec):
		if _, err := url.Parse(s.spec); err != nil {
			return errors.New("-store is no URL of a database, such as postgres://user@host/database")
		}
	case !isFile && s.spec != "memory":
		return errors.New("-store must be memory, sqlite:FILE or postgres://USER@HOST/DATABASE")
	}
	return nil
}

func isPostgres(spec string) bool {
	return strings.HasPrefix(spec, "postgres://") || strings.HasPrefix(spec, "postgresql://")
}

// key is tracking.Options.Secret.
func (s *storeFlags) key() []byte {
	if s.secret == "" {
		return nil
	}
	return []byte(s.secret)
}

// kept reports whether the data outlives the process.
func (s *storeFlags) kept() bool { return s.spec != "memory" }

// open opens the store that the checked flags name.
func (s *storeFlags) open(ctx context.Context, logger *slog.Logger) (tracking.Store, error) {
	file, isFile := strings.CutPrefix(s.spec, "sqlite:")
	var store tracking.Store
	var err error
	switch {
	case isFile:
		store, err = sqlite.Open(file, &sqlite.Options{Logger: logger, CompactOnRequest: s.compactOnRequest})
	case isPostgres(s.spec):
		store, err = postgres.Open(ctx, s.spec, &postgres.Options{CheckOnly: !s.migrate, Logger: logger})
	default:
		return memory.New(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("-store %s: %w", placeOf(s.spec), err)
	}
	return store, nil
}

// placeOf is a checked -store as it may be shown. Of a database that is what pgx connects to, as it
// reads some addresses otherwise than net/url, and nothing else that was given.
func placeOf(spec string) string {
	if !isPostgres(spec) {
		return spec
	}
	c, err := pgconn.ParseConfig(spec)
	if err != nil {
		return "postgres"
	}
	return "postgres://" + c.Host + "/" + c.Database
}

// backUp copies a store to a file, at once and then again and again, until ctx ends. A copy that
// fails leaves the one before it.
func backUp(ctx context.Context, store tracking.Store, file string, every time.Duration, logger *slog.Logger) {
	s, ok := store.(interface {
		Backup(ctx context.Context, path string) error
	})
	if !ok {
		return // checked before: only the store in a file is copied
	}
	next := time.NewTicker(every)
	defer next.Stop()
	for {
		began := time.Now()
		switch err := s.Backup(ctx, file); {
		case ctx.Err() != nil:
			return
		case err != nil:
			logger.Error("the store could not be backed up", "file", file, "err", err)
		default:
			logger.Info("the store is backed up", "file", file, "took", time.Since(began))
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
	}
}

// health says whether a store can be read, and where the store itself knows of what stops it,
// whether it can be written.
func health(store tracking.Store, svc *tracking.Service) func(context.Context) error {
	return func(ctx context.Context) error {
		if s, ok := store.(interface{ Health() error }); ok {
			if err := s.Health(); err != nil {
				return err
			}
		}
		_, err := svc.Keys(ctx)
		return err
	}
}
