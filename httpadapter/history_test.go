package httpadapter_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// longPath is a store whose fixes are made while they are read, so that only what the adapter holds
// shows in memory.
type longPath struct {
	tracking.Store
	n     int
	after int // fixes until it fails; 0: it does not
	peak  func()
}

func (p *longPath) Fixes(ctx context.Context, app tracking.AppID, driver tracking.DriverID,
	r tracking.FixRange) iter.Seq2[tracking.Fix, error] {
	return func(yield func(tracking.Fix, error) bool) {
		for i := range p.n {
			if p.after > 0 && i == p.after {
				yield(tracking.Fix{}, tracking.ErrUnavailable)
				return
			}
			if i%10_000 == 0 && p.peak != nil {
				p.peak()
			}
			f := tracking.Fix{
				LngLat: tracking.LngLat{Lng: 80 + float64(i)*1e-6, Lat: 13},
				Time:   r.From.Add(time.Duration(i) * time.Second), EventID: "e\"<",
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}

// get serves p and asks for the history of a trip.
func (p *longPath) get(t *testing.T) (*http.Response, tracking.TripID) {
	t.Helper()
	p.Store = memory.New()
	svc, err := tracking.New(p, &tracking.Options{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpadapter.New(svc, &httpadapter.Options{
		Keys: map[string]httpadapter.Principal{"k": {}}, Logger: quiet(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "ravi"}); err != nil {
		t.Fatal(err)
	}
	trip, err := svc.StartTrip(t.Context(), "ravi", "T", tracking.Step{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Get(newHTTPServer(t, h) + "/v1/triphistory/" + string(trip.ID) + "?apikey=k")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res, trip.ID
}

func TestLongHistory(t *testing.T) {
	const n = 200_000
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	var most atomic.Uint64
	res, _ := (&longPath{n: n, peak: func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most.Store(max(most.Load(), m.HeapAlloc))
	}}).get(t)

	// Read as a stream, too.
	points := 0
	d := json.NewDecoder(bufio.NewReader(res.Body))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if tok == "event_id" {
			points++
		}
	}
	if points != n {
		t.Errorf("%d points, want %d", points, n)
	}
	if used := int64(most.Load()) - int64(before); used > 64<<20 {
		t.Errorf("%d MiB of extra memory", used>>20)
	}
}

func TestHistoryBrokenOff(t *testing.T) {
	early, _ := (&longPath{n: 10, after: 5}).get(t)
	if early.StatusCode != 503 {
		t.Errorf("broken off at once: %d", early.StatusCode)
	}
	res, _ := (&longPath{n: 10_000, after: 9_000}).get(t)
	if b, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("a path that breaks off looks whole: %s", b)
	}
}

func TestEmptyHistory(t *testing.T) {
	res, trip := (&longPath{}).get(t)
	b, err := io.ReadAll(res.Body)
	if want := fmt.Sprintf(`{"message":"Trip History","success":true,"data":{"loc":[],"tracking_id":"T","trip_id":%q}}`+
		"\n", trip); err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
}

// TestHistoryFailsInTime: what fails before the first point is an error like any other.
func TestHistoryFailsInTime(t *testing.T) {
	p := &failingStore{Store: memory.New()}
	svc, err := tracking.New(p, &tracking.Options{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	log := &syncBuffer{}
	h, err := httpadapter.New(svc, &httpadapter.Options{
		Keys: map[string]httpadapter.Principal{"k": {}}, Logger: loggerTo(log),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "ravi"}); err != nil {
		t.Fatal(err)
	}
	trip, err := svc.StartTrip(t.Context(), "ravi", "T", tracking.Step{})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{T: t, url: newHTTPServer(t, h)}
	for _, c := range []struct {
		err    error
		panics bool
		status int
	}{
		{err: fmt.Errorf("disk: %w", tracking.ErrUnavailable), status: 503},
		{err: errors.New("column s3cret is missing"), status: 500},
		{panics: true, status: 500},
	} {
		p.fail, p.panics = c.err, c.panics
		for _, target := range []string{
			"/v1/task?task_id=a", "/v1/triphistory/" + string(trip.ID), "/v1/task/list?apikey=stored",
		} {
			if !strings.Contains(target, "?") {
				target += "?x=1"
			}
			if !strings.Contains(target, "apikey") {
				target += "&apikey=k"
			}
			r := s.do("GET", target, "")
			s.check(fmt.Sprintf("%s with %v", target, c.err), r, c.status, "")
			if c.status == 503 && r.header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
			}
			if strings.Contains(r.body, "s3cret") || strings.Contains(r.body, "disk") {
				t.Errorf("%s tells what happened inside: %s", target, r.body)
			}
			var v struct {
				Error struct {
					ID string `json:"request_id"`
				}
			}
			json.Unmarshal([]byte(r.body), &v)
			if !strings.Contains(log.String(), "request_id="+v.Error.ID) {
				t.Errorf("the log does not know %q", v.Error.ID)
			}
		}
	}
	if !strings.Contains(log.String(), "column s3cret is missing") || !strings.Contains(log.String(), "panic: store") {
		t.Errorf("the log does not tell what happened: %s", log.String())
	}
}

// failingStore fails reads when told to.
type failingStore struct {
	tracking.Store
	fail   error
	panics bool
}

func (s *failingStore) do() error {
	if s.panics {
		panic("store")
	}
	return s.fail
}

func (s *failingStore) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	if err := s.do(); err != nil {
		return tracking.Task{}, err
	}
	return s.Store.Task(ctx, app, id)
}

func (s *failingStore) KeyByHash(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Key, error) {
	if err := s.do(); err != nil {
		return "", tracking.Key{}, err
	}
	return s.Store.KeyByHash(ctx, hash)
}

func (s *failingStore) Fixes(ctx context.Context, app tracking.AppID, driver tracking.DriverID,
	r tracking.FixRange) iter.Seq2[tracking.Fix, error] {
	return func(yield func(tracking.Fix, error) bool) {
		if err := s.do(); err != nil {
			yield(tracking.Fix{}, err)
			return
		}
		s.Store.Fixes(ctx, app, driver, r)(yield)
	}
}
