package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/trackingtest"
)

// open is a shop over a kit.
func open(t *testing.T) (*shop, *trackingtest.Kit, http.Handler) {
	t.Helper()
	s, err := newShop(filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.db.Close() })
	k := trackingtest.New(t, &tracking.Options{Notifier: s})
	s.svc = k.Service
	h, err := s.handler("pw")
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
	s, k, h := open(t)
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/orders", strings.NewReader(url.Values{"address": {"12 Anna <Salai>"}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	h.ServeHTTP(w, r)
	at := w.Header().Get("Location")
	if p := get(t, h, at, 200); !strings.Contains(p, "12 Anna &lt;Salai&gt;: placed") || strings.Contains(p, "iframe") {
		t.Errorf("the new order's page: %s", p)
	}

	// The worker does not know whether the task was made, and asks again.
	k.Store.LoseNextAnswer()
	if _, err := s.ship(t.Context()); err == nil {
		t.Fatal("the lost answer went unnoticed")
	}
	for _, want := range []bool{true, false} {
		if more, err := s.ship(t.Context()); err != nil || more != want {
			t.Fatal(more, err)
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

// What is told twice, or of another order, changes nothing more.
func TestToldTwice(t *testing.T) {
	s, k, h := open(t)
	id, err := s.place(t.Context(), "12 Anna Salai")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.Settle()
	told := k.Told(tracking.EventTaskCreated)
	if len(told) != 1 {
		t.Fatalf("told %d times", len(told))
	}
	if _, err := s.db.Exec(`UPDATE orders SET state = 'mine'`); err != nil {
		t.Fatal(err)
	}
	if err := s.Notify(t.Context(), tracking.Notification{Event: told[0], Attempt: 2}); err != nil {
		t.Fatal(err)
	}
	if p := get(t, h, "/orders/"+id, 200); !strings.Contains(p, ": mine") {
		t.Errorf("the same event was written twice: %s", p)
	}
}

func TestWhoMayLook(t *testing.T) {
	_, _, h := open(t)
	get(t, h, "/delivery/v1/task/list", 401)
	get(t, h, "/delivery/v1/task/list", 200)
	get(t, h, "/orders/1", 404)
	get(t, h, "/", 200)
}

// The shop over a real socket and files, begun and ended twice: what is placed is shipped.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var at string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- run(ctx, l, dir, "pw") }()
		base := "http://" + l.Addr().String()
		if at == "" {
			r, err := http.PostForm(base+"/orders", url.Values{"address": {"12 Anna Salai"}})
			if err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			at = r.Request.URL.Path
		}
		for shipped := false; !shipped; {
			r, err := http.Get(base + at)
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
