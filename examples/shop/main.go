// Shop is a web shop that embeds the service: with its own mux, login and orders, and a page that
// frames the customer's link. In orders.go is how its database and the service keep in step.
package main

import (
	"context"
	_ "embed"
	"html/template"
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

//go:embed page.html
var html string

var page = template.Must(template.New("").Parse(html))

const owner = "user:owner" // as events name him

// mount gives the shop its mux, with the service's endpoints under /delivery.
func (s *shop) mount(svc *tracking.Service, password string) (mux *http.ServeMux, err error) {
	login := func(r *http.Request) (httpadapter.Principal, error) {
		if user, given, _ := r.BasicAuth(); user != "owner" || given != password {
			return httpadapter.Principal{}, tracking.ErrUnauthorized
		}
		return httpadapter.Principal{Actor: owner}, nil
	}
	s.svc = svc
	s.delivery, err = httpadapter.New(svc, &httpadapter.Options{Prefix: "/delivery", Authenticate: login})
	if err != nil {
		return nil, err
	}
	mux = http.NewServeMux()
	s.delivery.Mount(mux)
	mux.HandleFunc("GET /{$}", s.show)
	mux.HandleFunc("POST /{$}", s.take)
	mux.HandleFunc("GET /owner", func(w http.ResponseWriter, r *http.Request) {
		if _, err := login(r); err != nil {
			w.Header().Set("WWW-Authenticate", `Basic realm="Shop"`)
			http.Error(w, "Only the owner may see this.", http.StatusUnauthorized)
			return
		}
		s.board(w, r)
	})
	return mux, nil
}

// board takes the owner to the board, signed in. A browser asks for a name and a password where an
// answer has WWW-Authenticate, and the endpoints of the service have none.
func (s *shop) board(w http.ResponseWriter, r *http.Request) {
	token, err := s.svc.SignIn(r.Context(), owner)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, s.delivery.SignInURL(token), http.StatusSeeOther)
}

// show is the page of the order that the query names, or of none. Who knows its id may look.
func (s *shop) show(w http.ResponseWriter, r *http.Request) {
	var orders []order
	err := s.db.SelectContext(r.Context(), &orders, `SELECT * FROM order_page WHERE id = ?`, r.FormValue("order"))
	if err != nil {
		fail(w, err)
	} else if err := page.Execute(w, orders); err != nil {
		log.Print(err) // the browser has gone
	}
}

func (s *shop) take(w http.ResponseWriter, r *http.Request) {
	if id, err := s.place(r.Context(), r.FormValue("address")); err != nil {
		fail(w, err)
	} else {
		http.Redirect(w, r, "/?order="+id, http.StatusSeeOther)
	}
}

func fail(w http.ResponseWriter, err error) {
	log.Print(err)
	http.Error(w, "This cannot be done now.", http.StatusServiceUnavailable)
}

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
