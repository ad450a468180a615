// Server is the whole delivery-tracking service as a program: the HTTP interface over a store, and a demo in which couriers deliver along streets.
//
//	go run ./examples/server
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/server/internal/demo"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends and then shuts down.
func run(ctx context.Context, args []string, out, log io.Writer) (err error) {
	cfg, err := parseFlags(args, log)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(log, nil))
	cfg.options.Logger = logger

	store, err := openStore(cfg.store, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var handler *httpadapter.Handler
	told, err := cfg.notifiers(logger, func(ctx context.Context, n tracking.Notification) (any, error) { return handler.Fill(ctx, n) })
	if err != nil {
		return err
	}
	defer told.close()
	cfg.options.Notifiers = told.all()
	svc, err := tracking.New(store, &cfg.options)
	if err != nil {
		return err
	}
	if cfg.site.PushKey, err = told.bind(ctx, svc); err != nil {
		return err
	}
	keys := map[string]httpadapter.Principal{}
	for i, key := range cfg.keys {
		keys[key] = httpadapter.Principal{Actor: fmt.Sprintf("key:%d", i+1)}
	}
	handler, err = httpadapter.New(svc, &httpadapter.Options{
		Keys: keys, BaseURL: cfg.baseURL, Site: cfg.site, Logger: cfg.requestLogger(logger, log),
		Health: health(store, svc),
	})
	if err != nil {
		return err
	}

	listener, err := net.Listen("tcp", cfg.addr)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: handler,
		// How long a body may take to arrive and a write to leave, the handler says for each request: limits for the whole of one would cut live streams.
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
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

	w := welcome{out: out, base: cfg.publicURL(listener.Addr()), key: cfg.keys[0], made: cfg.keyMade}
	w.start(cfg)
	if cfg.demo {
		if err := w.invite(ctx, svc); err != nil {
			logger.Error("the demo has no invite", "err", err)
		}
		workers.Go(func() {
			err := demo.Run(working, svc, &demo.Options{Logger: logger, Guest: guest, SetsOff: func(courier string, t tracking.Task) { w.setsOff(working, svc, courier, t) }})
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

// requestLogger gets a line for each request. In the demo only failures are worth one, since the links that it prints would be lost among them.
func (c *config) requestLogger(logger *slog.Logger, log io.Writer) *slog.Logger {
	if !c.demo {
		return logger
	}
	return slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

const shutdownTime = 10 * time.Second
