package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"html/template"
	"log"
	"net/http"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

//go:embed schema.sql
var schema string

type shop struct {
	db       *sqlx.DB
	svc      *tracking.Service
	delivery *httpadapter.Handler
}

//go:embed page.html
var html string

var page = template.Must(template.New("").Parse(html))

type order struct{ ID, Address, Link, State string }

func open(file string) (*shop, error) {
	db, err := sqlx.Open("sqlite", file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec(schema)
	return &shop{db: db}, err
}

// place writes an order and its row in the outbox, both or neither.
func (s *shop) place(ctx context.Context, address string) (id string, err error) {
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer tx.Rollback()
	id = rand.Text()
	if _, err := tx.ExecContext(ctx, `INSERT INTO orders (id, address) VALUES (?, ?)`, id, address); err != nil {
		return "", err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO outbox (order_id) VALUES (?)`, id); err != nil {
		return "", err
	}
	return id, tx.Commit()
}

// work ships what is in the outbox, every second until ctx ends.
func (s *shop) work(ctx context.Context) {
	for tick := time.Tick(time.Second); ctx.Err() == nil; {
		if err := s.ship(ctx); err != nil && ctx.Err() == nil {
			log.Print("shipping is tried again: ", err)
		}
		select {
		case <-tick:
		case <-ctx.Done():
		}
	}
}

// ship makes tasks of the orders in the outbox. One that fails holds up no other.
func (s *shop) ship(ctx context.Context) error {
	var orders []order
	err := s.db.SelectContext(ctx, &orders, `SELECT id, address FROM outbox JOIN orders ON id = order_id ORDER BY n`)
	for _, o := range orders {
		err = errors.Join(err, s.shipOne(ctx, o))
	}
	return err
}

// shipped keeps where an order can be followed, after which it is in the outbox no more.
func (s *shop) shipped(ctx context.Context, id, link string) error {
	if _, err := s.db.ExecContext(ctx, `UPDATE orders SET link = ? WHERE id = ?`, link, id); err != nil {
		return err
	}
	_, err := s.db.ExecContext(ctx, `DELETE FROM outbox WHERE order_id = ?`, id)
	return err
}

// refused keeps why there is no delivery of an order, which its page shows.
func (s *shop) refused(ctx context.Context, id, why string) error {
	log.Printf("order %s is set aside: %s", id, why)
	if err := s.heard(ctx, "refused "+id, id, "refused: "+why); err != nil {
		return err
	}
	_, err := s.db.ExecContext(ctx, `DELETE FROM outbox WHERE order_id = ?`, id)
	return err
}

// heard keeps what becomes of an order. What is told again is there already.
func (s *shop) heard(ctx context.Context, event, id, state string) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO news (event_id, order_id, state) VALUES (?, ?, ?)
		ON CONFLICT (event_id) DO NOTHING`, event, id, state)
	return err
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
