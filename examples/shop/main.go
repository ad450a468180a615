// Shop is a web shop that embeds the delivery-tracking service: its own mux, login and orders, and a
// page that shows where an order is. An order and the row that asks for its delivery are written in
// one transaction of the shop's; a worker makes a task of it, safe to repeat by its Key; what becomes
// of the task comes back by a Notifier, each event once.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"html/template"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

const schema = `
CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, address TEXT, state TEXT, link TEXT);
CREATE TABLE IF NOT EXISTS outbox (n INTEGER PRIMARY KEY, order_id TEXT); -- orders that no task is made of yet
CREATE TABLE IF NOT EXISTS told (event_id TEXT PRIMARY KEY);`

type shop struct {
	db     *sql.DB
	svc    *tracking.Service
	placed chan struct{} // wakes the worker
}

func newShop(file string) (*shop, error) {
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(5000)")
	if err == nil {
		db.SetMaxOpenConns(1)
		_, err = db.Exec(schema)
	}
	return &shop{db: db, placed: make(chan struct{}, 1)}, err
}

// write runs a transaction of the shop's.
func (s *shop) write(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// place takes an order: the order and the wish for its delivery, both or neither. Who knows its id may
// look at it.
func (s *shop) place(ctx context.Context, address string) (id string, err error) {
	id = rand.Text()
	err = s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO orders VALUES (?, ?, 'placed', '')`, id, address)
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO outbox (order_id) VALUES (?)`, id)
		}
		return err
	})
	if err == nil {
		select {
		case s.placed <- struct{}{}:
		default:
		}
	}
	return id, err
}

// ship makes a task of the oldest order that has none yet. Cut off anywhere, it is done again: the same
// Key gives the same task.
func (s *shop) ship(ctx context.Context) (more bool, err error) {
	var id, address string
	q := `SELECT id, address FROM orders JOIN outbox ON order_id = id ORDER BY n LIMIT 1`
	if err := s.db.QueryRowContext(ctx, q).Scan(&id, &address); errors.Is(err, sql.ErrNoRows) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	task, err := s.svc.CreateTask(ctx, tracking.NewTask{
		Type: tracking.TypeDrop, OrderID: id, Drop: &tracking.Place{Address: address}, Key: "order-" + id,
	})
	if err != nil {
		return false, err
	}
	link, err := s.svc.TaskLink(ctx, task.ID)
	if err != nil {
		return false, err
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE orders SET link = ? WHERE id = ?`, link, id)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM outbox WHERE order_id = ?`, id)
		}
		return err
	})
	return err == nil, err
}

// work ships what is placed until ctx ends. What fails is tried again.
func (s *shop) work(ctx context.Context) {
	for ctx.Err() == nil {
		more, err := s.ship(ctx)
		if err != nil && ctx.Err() == nil {
			log.Print("shipping: ", err)
		}
		if more {
			continue
		}
		select {
		case <-s.placed:
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// Notify writes what has become of an order, once however often it is told.
func (s *shop) Notify(ctx context.Context, n tracking.Notification) error {
	if n.Event.Subject.Kind != tracking.KindTask {
		return nil
	}
	task, err := s.svc.Task(ctx, tracking.TaskID(n.Event.Subject.ID))
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, `INSERT INTO told VALUES (?) ON CONFLICT DO NOTHING`, n.Event.ID)
		if err != nil {
			return err
		}
		if fresh, err := r.RowsAffected(); fresh == 0 {
			return err
		}
		state := cmp.Or(string(task.Outcome), string(task.Status))
		_, err = tx.ExecContext(ctx, `UPDATE orders SET state = ? WHERE id = ?`, state, task.OrderID)
		return err
	})
}

var page = template.Must(template.New("").Parse(`<!doctype html><title>Shop</title>
<form method="post" action="/orders"><input name="address" placeholder="Deliver to" required> <button>Order</button></form>
{{with .}}<p>Your order to {{.Address}}: {{.State}}</p>
{{with .Link}}<iframe src="/delivery/track/{{.}}" width="100%" height="600"></iframe>{{end}}{{end}}`))

// handler is the shop's mux, with the service's endpoints under /delivery.
func (s *shop) handler(password string) (http.Handler, error) {
	web, err := httpadapter.New(s.svc, &httpadapter.Options{
		Prefix: "/delivery",
		Authenticate: func(r *http.Request) (httpadapter.Principal, error) { // the shop's own login
			if user, given, _ := r.BasicAuth(); user == "owner" && given == password {
				return httpadapter.Principal{Actor: "user:owner"}, nil
			}
			return httpadapter.Principal{}, tracking.ErrUnauthorized
		},
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	web.Mount(mux)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { page.Execute(w, nil) })
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		id, err := s.place(r.Context(), r.FormValue("address"))
		if err != nil {
			http.Error(w, "The order could not be taken.", http.StatusServiceUnavailable)
			return
		}
		http.Redirect(w, r, "/orders/"+id, http.StatusSeeOther)
	})
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		var o struct{ Address, State, Link string }
		q := `SELECT address, state, link FROM orders WHERE id = ?`
		row := s.db.QueryRowContext(r.Context(), q, r.PathValue("id"))
		if row.Scan(&o.Address, &o.State, &o.Link) != nil {
			http.NotFound(w, r)
			return
		}
		page.Execute(w, o)
	})
	return mux, nil
}

// run serves the shop until ctx ends, and then ends in good order.
func run(ctx context.Context, l net.Listener, dir, password string) error {
	store, err := sqlite.Open(filepath.Join(dir, "deliveries.db"), nil)
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := newShop(filepath.Join(dir, "shop.db"))
	if err != nil {
		return err
	}
	defer s.db.Close()
	if s.svc, err = tracking.New(store, &tracking.Options{Notifier: s}); err != nil {
		return err
	}
	h, err := s.handler(password)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() { s.work(ctx) })
	defer working.Wait()
	defer stop()
	return httpadapter.Serve(ctx, s.svc, &http.Server{Handler: h}, l)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	l, err := net.Listen("tcp", "localhost:8081")
	if err != nil {
		log.Fatal(err)
	}
	password := os.Getenv("SHOP_PASSWORD")
	if password == "" {
		password = rand.Text()
		log.Printf("the owner's password is %s", password)
	}
	log.Printf("http://%s/ is the shop; the owner sees its tasks at /delivery/v1/task/list", l.Addr())
	if err := run(ctx, l, ".", password); err != nil {
		log.Fatal(err)
	}
}
