package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

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
