package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/trackingtest"
)

// openKit is a shop over a kit.
func openKit(t *testing.T) (*shop, *trackingtest.Kit, http.Handler) {
	t.Helper()
	s, err := open(filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.db.Close() })
	k := trackingtest.New(t, &tracking.Options{Notifier: s})
	h, err := s.mount(k.Service, "pw")
	if err != nil {
		t.Fatal(err)
	}
	return s, k, h
}

func get(t *testing.T, h http.Handler, path string, status int) string {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
	if strings.HasPrefix(path, "/delivery/v1") && status == 200 {
		r.SetBasicAuth("owner", "pw")
	}
	h.ServeHTTP(w, r)
	if w.Code != status {
		t.Errorf("GET %s: %d, want %d: %s", path, w.Code, status, w.Body)
	}
	return w.Body.String()
}

func TestOrder(t *testing.T) {
	s, k, h := openKit(t)
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/", strings.NewReader(url.Values{"address": {"12 Anna <Salai>"}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	h.ServeHTTP(w, r)
	at := w.Header().Get("Location")
	if p := get(t, h, at, 200); !strings.Contains(p, "12 Anna &lt;Salai&gt;: placed") || strings.Contains(p, "iframe") {
		t.Errorf("the new order's page: %s", p)
	}

	// The worker does not know whether the task was made, and asks again.
	k.Store.LoseNextAnswer()
	if err := s.ship(t.Context()); err == nil {
		t.Fatal("the lost answer went unnoticed")
	}
	for range 2 {
		if err := s.ship(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list, _, err := k.Tasks(t.Context(), tracking.TaskFilter{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d tasks, %v", len(list), err)
	}

	asha := k.NewDriver("asha", tracking.LngLat{Lng: 80.27, Lat: 13.08})
	if _, err := k.AssignTask(t.Context(), list[0].ID, "asha"); err != nil {
		t.Fatal(err)
	}
	k.Settle()
	page := get(t, h, at, 200)
	if !strings.Contains(page, ": assigned") {
		t.Errorf("the page of an order under way: %s", page)
	}
	_, link, _ := strings.Cut(page, `src="`)
	link, _, _ = strings.Cut(link, `"`)
	get(t, h, link, 200)
	asha.Deliver(list[0].ID)
	k.Settle()
	if p := get(t, h, at, 200); !strings.Contains(p, ": succeeded") {
		t.Errorf("the page of an order delivered: %s", p)
	}
}

// An event that is told twice is kept once.
func TestToldTwice(t *testing.T) {
	s, k, h := openKit(t)
	id, err := s.place(t.Context(), "12 Anna Salai")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.Settle()
	told := k.Told(tracking.EventTaskCreated)
	if len(told) != 1 {
		t.Fatalf("told %d times", len(told))
	}
	if _, err := s.db.Exec(`UPDATE news SET state = 'mine'`); err != nil {
		t.Fatal(err)
	}
	if err := s.Notify(t.Context(), tracking.Notification{Event: told[0], Attempt: 2}); err != nil {
		t.Fatal(err)
	}
	if p := get(t, h, "/?order="+id, 200); !strings.Contains(p, ": mine") {
		t.Errorf("the same event was written twice: %s", p)
	}
}

// An order that no task can be made of is set aside, and its page says why; one that may pass stays in
// the outbox. Neither holds up those behind it.
func TestOrderRefused(t *testing.T) {
	s, k, h := openKit(t)
	var ids []string
	for _, address := range []string{"", "1 Anna Salai", "2 Anna Salai"} {
		id, err := s.place(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	left := func() (list []string) {
		t.Helper()
		if err := s.db.Select(&list, `SELECT order_id FROM outbox ORDER BY n`); err != nil {
			t.Fatal(err)
		}
		return list
	}
	k.Store.FailNextCommit()
	if err := s.ship(t.Context()); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("the first that is tried when the store is away: %v", err)
	}
	if got := left(); !slices.Equal(got, ids[1:2]) {
		t.Errorf("in the outbox are %q, want the second order of %q", got, ids)
	}
	if p := get(t, h, "/?order="+ids[0], 200); !strings.Contains(p, ": refused: ") || !strings.Contains(p, "address") {
		t.Errorf("the page of an order without an address: %s", p)
	}
	if err := s.ship(t.Context()); err != nil || left() != nil {
		t.Errorf("afterwards: %v, in the outbox %q", err, left())
	}
	list, _, err := k.Tasks(t.Context(), tracking.TaskFilter{})
	if err != nil || len(list) != 2 {
		t.Errorf("%d tasks, %v", len(list), err)
	}
}

func TestWhoMayLook(t *testing.T) {
	_, _, h := openKit(t)
	get(t, h, "/delivery/v1/task/list", 401)
	get(t, h, "/delivery/v1/task/list", 200)
	get(t, h, "/orders/1", 404)
	if p := get(t, h, "/?order=1", 200); p != get(t, h, "/", 200) {
		t.Errorf("the page of no order: %s", p)
	}
}

// Who is the owner comes to the board, signed in once by that address.
func TestOwner(t *testing.T) {
	_, _, h := openKit(t)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/owner", nil))
	if got := w.Header().Get("WWW-Authenticate"); w.Code != 401 || !strings.HasPrefix(got, "Basic ") {
		t.Errorf("nobody: %d, %q", w.Code, got)
	}
	r := httptest.NewRequest("GET", "/owner", nil)
	r.SetBasicAuth("owner", "pw")
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	_, token, found := strings.Cut(w.Header().Get("Location"), "/delivery/board/#signin=")
	if w.Code != 303 || !found {
		t.Fatalf("the owner: %d, to %q", w.Code, w.Header().Get("Location"))
	}
	r = httptest.NewRequest("POST", "/delivery/v1/session", strings.NewReader(`{"token":"`+token+`"}`))
	r.Header.Set("Content-Type", "application/json")
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 200 || !strings.Contains(w.Body.String(), "user:owner") {
		t.Errorf("signing in: %d: %s", w.Code, w.Body)
	}
}

// The shop over a real socket and files, begun and ended twice: what was placed by a process that was
// cut off before it made the task is shipped by the next one.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	cut, err := open(filepath.Join(dir, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := cut.place(t.Context(), "12 Anna Salai")
	if err != nil {
		t.Fatal(err)
	}
	if err := cut.db.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- run(ctx, l, dir, "pw") }()
		base := "http://" + l.Addr().String()
		for shipped := false; !shipped; {
			r, err := http.Get(base + "/?order=" + id)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r.Body)
			r.Body.Close()
			if err != nil || r.StatusCode != 200 {
				t.Fatal(r.Status, err)
			}
			shipped = strings.Contains(string(body), "iframe")
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}
