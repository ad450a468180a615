package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/server/internal/demo"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// serve serves until ctx ends and then shuts down.
func serve(ctx context.Context, args []string, std streams) (err error) {
	cfg, err := parseFlags(args, std)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(std.log, nil))
	cfg.options.Logger, cfg.options.Secret = logger, cfg.store.key()

	if cfg.mapFile != "" {
		m, err := web.OpenMap(cfg.mapFile)
		if err != nil {
			return fmt.Errorf("-map: %w", err)
		}
		defer m.Close()
		cfg.site.Map = m
	}

	var tiles http.Handler
	if cfg.demo && cfg.mapFile == "" && cfg.site.Tiles.URL == "" {
		if tiles, err = demo.Tiles(); err != nil {
			return err
		}
		cfg.site.Tiles = cfg.demoTiles()
	}

	store, err := cfg.store.open(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var made secrets
	if cfg.webhook != "" && cfg.webhookSecrets == nil {
		if cfg.webhookSecrets, made.webhook, err = webhookSecret(ctx, store, cfg.options.Secret); err != nil {
			return err
		}
	}
	var handler *httpadapter.Handler
	told, err := cfg.notifiers(logger, func(ctx context.Context, n tracking.Notification) (any, error) {
		return handler.Fill(ctx, n)
	})
	if err != nil {
		return err
	}
	defer told.close()
	cfg.options.Notifiers = told.all()
	var numbers *metrics
	if cfg.metrics != "" {
		numbers = newMetrics()
		cfg.options.Observe = numbers.observe
	}
	svc, err := tracking.New(store, &cfg.options)
	if err != nil {
		return err
	}
	if cfg.site.PushKey, err = told.bind(ctx, svc); err != nil {
		return err
	}
	if len(cfg.keys) == 0 {
		if made.key, err = firstKey(ctx, store, svc); err != nil {
			return err
		}
	}
	keys := map[string]httpadapter.Principal{}
	for i, key := range cfg.keys {
		keys[key] = httpadapter.Principal{Actor: fmt.Sprintf("key:%d", i+1)}
	}
	from, err := cfg.clientIP()
	if err != nil {
		return err
	}
	handler, err = httpadapter.New(svc, &httpadapter.Options{
		ClientIP: from,
		Keys:     keys, BaseURL: cfg.baseURL, Site: cfg.site, Logger: cfg.requestLogger(logger, std.log),
		Health: health(store, svc),
	})
	if err != nil {
		return err
	}

	listener, err := net.Listen("tcp", cfg.addr)
	if err != nil {
		return err
	}
	start := &startPage{next: handler, tiles: tiles, name: cfg.site.Name, demo: cfg.demo, kept: cfg.store.kept()}
	server := &http.Server{
		Handler: start,
		// How long a body may take to arrive and a write to leave, the handler says for each
		// request: limits for the whole of one would cut live streams.
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,

		DisableGeneralOptionsHandler: true, // so that OPTIONS * is answered like the rest
		ErrorLog:                     slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}

	if numbers != nil {
		server.Handler = numbers.measure(server.Handler)
		watched, err := numbers.serve(cfg.metrics, svc, logger)
		if err != nil {
			return errors.Join(fmt.Errorf("-metrics-addr: %w", err), listener.Close())
		}
		defer watched.Close()
	}

	// What works beside the server outlives it: requests still under way may want it.
	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	var workers sync.WaitGroup
	defer workers.Wait()
	defer stopWorking()
	workers.Go(func() { _ = svc.Run(working) }) // returns only the end of working

	if cfg.backup != "" {
		workers.Go(func() { backUp(working, store, cfg.backup, cfg.backupEvery, logger) })
	}

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	w := welcome{out: std.out, base: cfg.publicURL(listener.Addr()), made: made, page: start}
	signIn, err := svc.SignIn(ctx, "terminal")
	if err != nil { // the key signs in, too
		logger.Error("there is no link that signs in", "err", err)
	}
	w.start(cfg, signIn)
	if cfg.demo {
		if err := w.invite(ctx, svc); err != nil {
			logger.Error("the demo has no invite", "err", err)
		}
		workers.Go(func() {
			err := demo.Run(working, svc, &demo.Options{
				Logger: logger, Guest: guest,
				SetsOff: func(courier string, t tracking.Task) { w.setsOff(working, svc, courier, t) },
				Past: func(now func() time.Time) (*tracking.Service, error) {
					o := cfg.options
					o.Now, o.Notifiers, o.Observe, o.Logger = now, nil, nil, slog.New(slog.DiscardHandler)
					return tracking.New(store, &o)
				},
			})
			if working.Err() == nil {
				logger.Error("the demo has ended", "err", err)
			}
		})
	}

	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	logger.Info("shutting down")
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	// Live streams first: the server waits for every request to end.
	err = errors.Join(svc.Close(ending), server.Shutdown(ending))
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

// requestLogger gets a line for each request. In the demo only failures are worth one, since the
// links that it prints would be lost among them.
func (c *config) requestLogger(logger *slog.Logger, log io.Writer) *slog.Logger {
	if !c.demo {
		return logger
	}
	return slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

const shutdownTime = 10 * time.Second
