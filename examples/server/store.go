package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// checkStore says what is wrong with a -store.
func checkStore(spec string) error {
	file, isFile := strings.CutPrefix(spec, "sqlite:")
	switch {
	case isFile && file == "":
		return errors.New("-store sqlite: names no file: write sqlite:FILE")
	case !isFile && spec != "memory":
		return errors.New("-store must be memory or sqlite:FILE")
	}
	return nil
}

// openStore opens the store that a checked -store names.
func openStore(spec string, logger *slog.Logger) (tracking.Store, error) {
	file, isFile := strings.CutPrefix(spec, "sqlite:")
	if !isFile {
		return memory.New(), nil
	}
	store, err := sqlite.Open(file, &sqlite.Options{Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("-store %s: %w", spec, err)
	}
	return store, nil
}

// backUp copies a store to a file, at once and then again and again, until ctx ends. A copy that fails leaves the one before it.
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

// health says whether a store can be read, and where the store itself knows of what stops it, whether it can be written.
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
