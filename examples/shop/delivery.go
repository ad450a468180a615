package main

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

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

// shipOne may be cut off anywhere and done again: the same Key is the same task. What is refused for
// what it is would be for ever, and is set aside with the reason.
func (s *shop) shipOne(ctx context.Context, o order) error {
	task, err := s.svc.CreateTask(ctx, tracking.NewTask{
		Type: tracking.TypeDrop, OrderID: o.ID, Drop: &tracking.Place{Address: o.Address}, Key: o.ID,
	})
	if errors.Is(err, tracking.ErrInvalid) || errors.Is(err, tracking.ErrConflict) {
		return s.refused(ctx, o.ID, err.Error())
	}
	if err != nil {
		return err
	}
	token, err := s.svc.LinkToken(ctx, task)
	if err != nil {
		return err
	}
	return s.shipped(ctx, o.ID, s.delivery.TrackingURL(token))
}

// Notify keeps how far an order is.
func (s *shop) Notify(ctx context.Context, n tracking.Notification) error {
	if n.Event.Subject.Kind != tracking.KindTask {
		return nil
	}
	task, err := s.svc.Task(ctx, tracking.TaskID(n.Event.Subject.ID))
	if err != nil {
		return err
	}
	return s.heard(ctx, n.Event.ID, task.OrderID, cmp.Or(string(task.Outcome), string(task.Status)))
}
