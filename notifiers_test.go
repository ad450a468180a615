package tracking_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// timed is a Notifier that takes everything and notes how long after an event it was told.
type timed struct {
	receiver
	most time.Duration
}

func (r *timed) Notify(ctx context.Context, n tracking.Notification) error {
	r.mu.Lock()
	r.most = max(r.most, time.Since(n.Event.RecordedAt))
	r.mu.Unlock()
	return r.receiver.Notify(ctx, n)
}

// takesNone are Notifiers that never take anything.
var takesNone = map[string]notifierFunc{
	"fails":  func(context.Context, tracking.Notification) error { return errors.New("down") },
	"hangs":  func(ctx context.Context, _ tracking.Notification) error { <-ctx.Done(); return ctx.Err() },
	"panics": func(context.Context, tracking.Notification) error { panic("oops") },
	"puts off": func(context.Context, tracking.Notification) error {
		return &tracking.NotifyError{RetryAfter: 24 * time.Hour, Err: errors.New("busy")}
	},
}

// A Notifier that takes nothing holds up none of the others: not the next events of the same
// subject, and not those of its application, however many subjects are stuck.
func TestRunTellsNotifiersByThemselves(t *testing.T) {
	for name, down := range takesNone {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var unnamed, works timed
				svc := running(t, &tracking.Options{
					Notifier: &unnamed, Notifiers: map[string]tracking.Notifier{"down": down, "works": &works},
				})
				var ids []string
				for range 100 { // at once, more than one application may have under way to one Notifier
					ids = append(ids, string(must(svc.CreateTask(t.Context(), newDrop()))(t).ID))
				}
				for i := range 20 { // an hour and more
					if i < 3 {
						time.Sleep(2 * time.Second) // the first tries are under way, and the second
					} else {
						time.Sleep(200 * time.Second)
					}
					for _, id := range ids {
						notes := "a" + time.Now().String()
						must(svc.UpdateTask(t.Context(), tracking.TaskID(id), tracking.TaskUpdate{Notes: &notes}))(t)
					}
				}
				time.Sleep(2 * time.Second)
				for who, r := range map[string]*timed{"unnamed": &unnamed, "works": &works} {
					for _, id := range ids {
						if got := r.seqs(id); len(got) != 21 || !slices.IsSorted(got) {
							t.Errorf("%s was told of %v", who, got)
						}
					}
					if r.most > time.Second {
						t.Errorf("%s was told up to %v late", who, r.most)
					}
				}
			})
		})
	}
}

// What one Notifier does not take dies in its own outbox, and is replayed from there to nobody
// else.
func TestNotifiersGiveUpByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		up := false
		late, works := &receiver{}, &receiver{}
		late.fail = func(tracking.Notification) error {
			mu.Lock()
			defer mu.Unlock()
			if !up {
				return errors.New("down")
			}
			return nil
		}
		svc := running(t, &tracking.Options{
			Notifiers: map[string]tracking.Notifier{"late": late, "works": works}, KeepEvents: -1,
			RetryWaits: []time.Duration{0, time.Minute},
		})
		task := must(svc.CreateTask(t.Context(), newDrop()))(t)
		time.Sleep(time.Hour)
		dead := func(outbox string) (ids []string) {
			list, _, err := svc.Events(t.Context(), tracking.EventFilter{Dead: true, Outbox: outbox})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range list {
				ids = append(ids, e.ID)
			}
			return ids
		}
		ids := dead("late")
		if len(ids) != 1 || dead("works") != nil || dead("") != nil {
			t.Fatalf("dead: %v late, %v works, %v unnamed", ids, dead("works"), dead(""))
		}
		mu.Lock()
		up = true
		mu.Unlock()
		for _, outbox := range []string{"works", "", "none", "late"} {
			if len(late.seqs(string(task.ID))) != 0 {
				t.Error("what was dead came before it was replayed")
			}
			if err := svc.Replay(t.Context(), outbox, ids...); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Second)
		}
		if a, b := late.seqs(string(task.ID)), works.seqs(string(task.ID)); !slices.Equal(a, []int64{1}) ||
			!slices.Equal(b, []int64{1}) {
			t.Errorf("late was told of %v, works of %v; want each of the one event once", a, b)
		}
		if ids := dead("late"); ids != nil {
			t.Errorf("dead after the replay: %v", ids)
		}
	})
}

// A name that is left out keeps its events until a Notifier of that name takes them; a new one gets
// those from then on.
func TestNotifiersComeAndGo(t *testing.T) {
	store := memory.New()
	defer store.Close()
	at := start
	service := func(n map[string]tracking.Notifier) *tracking.Service {
		return must(tracking.New(store, &tracking.Options{Notifiers: n, Now: func() time.Time {
			return at
		}, KeepEvents: time.Hour}))(t)
	}
	deliver := func(svc *tracking.Service, want int) {
		t.Helper()
		if n := must(svc.DeliverEvents(t.Context()))(t); n != want {
			t.Errorf("%d deliveries, want %d", n, want)
		}
	}
	var a, b, c receiver
	both := service(map[string]tracking.Notifier{"a": &a, "b": &b})
	must(both.CreateTask(t.Context(), newDrop()))(t)
	must(both.CreateTask(t.Context(), newDrop()))(t)

	without := service(map[string]tracking.Notifier{"a": &a, "c": &c})
	deliver(without, 2)
	must(without.CreateTask(t.Context(), newDrop()))(t)
	deliver(without, 2)
	if len(a.got) != 3 || len(b.got) != 0 || len(c.got) != 1 {
		t.Errorf("told: a %d, b %d, c %d times; want 3, 0, 1", len(a.got), len(b.got), len(c.got))
	}
	at = at.Add(2 * time.Hour)
	if p := must(without.Purge(t.Context()))(t); p.Events != 1 {
		t.Errorf("purged %d events, want the one that b was not to have", p.Events)
	}
	deliver(service(nil), 0)
	deliver(service(map[string]tracking.Notifier{"b": notifierFunc(func(context.Context, tracking.Notification) error {
		return nil
	})}), 2)
	if p := must(without.Purge(t.Context()))(t); p.Events != 2 {
		t.Errorf("purged %d events, want 2", p.Events)
	}
}

func TestNotifiersOptions(t *testing.T) {
	r := &receiver{}
	for name, o := range map[string]*tracking.Options{
		`nil under "a"`:    {Notifiers: map[string]tracking.Notifier{"a": nil}},
		"one and the same": {Notifier: r, Notifiers: map[string]tracking.Notifier{"": r}},
		"UTF-8":            {Notifiers: map[string]tracking.Notifier{"a\xff": r}},
		"without NUL":      {Notifiers: map[string]tracking.Notifier{"a\x00": r}},
		"1024 bytes":       {Notifiers: map[string]tracking.Notifier{strings.Repeat("a", 1025): r}},
	} {
		if _, err := tracking.New(memory.New(), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}

	// Of several faults it is always the same one that is named.
	several := &tracking.Options{
		Notifiers: map[string]tracking.Notifier{"d": nil, "b": nil, "a": r, "c": nil, "e\x00": r},
	}
	for range 30 {
		if _, err := tracking.New(memory.New(), several); err == nil ||
			!strings.Contains(err.Error(), `nil under "b"`) {
			t.Fatal(err)
		}
	}

	// What becomes of the map afterwards, before or after New, is nobody else's affair.
	all := map[string]tracking.Notifier{"a": r}
	w := newWorld(t, func(o *tracking.Options) { o.Notifiers = all })
	clear(all)
	o := w.Options()
	if got := slices.Collect(maps.Keys(o.Notifiers)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the options in force name %q", got)
	}
	clear(o.Notifiers)
	w.create(false)
	if n := must(w.DeliverEvents(w.ctx))(t); n != 1 || len(r.got) != 1 || len(w.Options().Notifiers) != 1 {
		t.Errorf("%d deliveries, of which %d arrived", n, len(r.got))
	}

	// The one named "" may stand in the map, too.
	w = newWorld(t, func(o *tracking.Options) { o.Notifiers = map[string]tracking.Notifier{"": r} })
	w.create(false)
	if n := must(w.DeliverEvents(w.ctx))(t); n != 1 || len(r.got) != 2 {
		t.Errorf("%d deliveries", n)
	}
}
