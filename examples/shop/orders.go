package main

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"log"
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

// shipOne may be cut off anywhere and done again: the same Key is the same task.
func (s *shop) shipOne(ctx context.Context, o order) error {
	task, err := s.svc.CreateTask(ctx, tracking.NewTask{
		Type: tracking.TypeDrop, OrderID: o.ID, Drop: &tracking.Place{Address: o.Address}, Key: o.ID,
	})
	if err != nil {
		return err
	}
	token, err := s.svc.LinkToken(ctx, task)
	if err != nil {
		return err
	}
	link := s.delivery.TrackingURL(token)
	if _, err := s.db.ExecContext(ctx, `UPDATE orders SET link = ? WHERE id = ?`, link, o.ID); err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, `DELETE FROM outbox WHERE order_id = ?`, o.ID)
	return err
}

// Notify keeps how far an order is. An event that is told again is there already.
func (s *shop) Notify(ctx context.Context, n tracking.Notification) error {
	if n.Event.Subject.Kind != tracking.KindTask {
		return nil
	}
	task, err := s.svc.Task(ctx, tracking.TaskID(n.Event.Subject.ID))
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, `INSERT INTO news (event_id, order_id, state) VALUES (?, ?, ?)
		ON CONFLICT (event_id) DO NOTHING`, n.Event.ID, task.OrderID, cmp.Or(string(task.Outcome), string(task.Status)))
	return err
}
