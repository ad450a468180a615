package httpadapter

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// shutdownTime is how long requests under way are given when a server ends.
const shutdownTime = 10 * time.Second

// Serve serves on l until ctx ends, with Run of the Service beside it, and ends all in good order:
// live streams first, as the server waits for every request; then the requests under way, which are
// given 10 seconds; then Run. It returns nil after that, or why the server could not go on.
//
//	l, err := net.Listen("tcp", ":8080")
//	…
//	err = httpadapter.Serve(ctx, svc, &http.Server{Handler: mux}, l)
//	store.Close()
func Serve(ctx context.Context, svc *tracking.Service, server *http.Server, l net.Listener) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx)) // requests under way may want it
	var running sync.WaitGroup
	running.Go(func() { _ = svc.Run(working) }) // returns only the end of working
	defer running.Wait()
	defer stop()

	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err := errors.Join(svc.Close(ending), server.Shutdown(ending))
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}
