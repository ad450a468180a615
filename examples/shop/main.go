// Shop is a web shop that embeds the service: with its own mux, login and orders, and a page that
// frames the customer's link. What embeds the service is in delivery.go; in orders.go is how its
// database and the service keep in step.
package main

import (
	"context"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// run serves until ctx ends, and then ends in good order: requests, the worker, the databases.
func run(ctx context.Context, l net.Listener, dir, password string) error {
	store, err := sqlite.Open(filepath.Join(dir, "deliveries.db"), nil)
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := open(filepath.Join(dir, "shop.db"))
	if err != nil {
		return err
	}
	defer s.db.Close()
	svc, err := tracking.New(store, &tracking.Options{Notifier: s})
	if err != nil {
		return err
	}
	mux, err := s.mount(svc, password)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	var worker sync.WaitGroup
	worker.Go(func() { s.work(working) })
	defer worker.Wait()
	defer stop()
	return httpadapter.Serve(ctx, svc, &http.Server{Handler: mux}, l)
}

func main() {
	password := os.Getenv("SHOP_PASSWORD")
	if password == "" {
		log.Fatal("Set SHOP_PASSWORD: with it the owner signs in, as \"owner\".")
	}
	l, err := net.Listen("tcp", "localhost:8081")
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("The shop is at http://%s/; its owner's board at http://%[1]s/owner", l.Addr())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, l, ".", password); err != nil {
		log.Fatal(err)
	}
}
