// Package trackingtest helps to test a program that embeds tracking: a whole service in memory whose
// clock stands until it is moved, whose ids are the same in each run, whose drivers drive, and whose
// store fails when told to. Nothing of it needs a network, sleeps, or leaves a goroutine behind.
//
//	func TestRefund(t *testing.T) {
//		shop := newShop()
//		k := trackingtest.New(t, &tracking.Options{Notifier: shop})
//		asha := k.NewDriver("asha", tracking.LngLat{Lng: 80.27, Lat: 13.08})
//		task, err := k.CreateTask(t.Context(), tracking.NewTask{…, AutoAssign: true})
//		…
//		k.Settle() // the task is asha's now, and the shop has been told
//		asha.Fail(task.ID, tracking.Reason{Code: tracking.ReasonNotHome})
//		k.Settle()
//		// has shop refunded?
//	}
//
// A [Kit] is a [tracking.Service], so the program under test gets k.Service where it gets its own in
// earnest. What Service.Run does by itself there, [Kit.Settle] does here at once and to the end, and
// [Kit.Advance] as time goes by.
package trackingtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// TB is what a Kit needs of a *testing.T, *testing.B or *testing.F.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Kit is a service under test.
type Kit struct {
	*tracking.Service
	Clock *Clock // what the service goes by; it begins at Start
	Store *Store // where it keeps everything

	t     TB
	ctx   context.Context
	told  *recorder
	steps []step
}

// Start is when the clock of each Kit begins: a Monday.
var Start = time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)

// New returns a service over a new memory store. Of opts all counts but Now, which is the Kit's clock;
// Rand, Secret and Logger are there where they are not given, so that ids and links are the same each
// time and nothing is logged. With t nil, as in an Example, what goes wrong panics.
func New(t TB, opts *tracking.Options) *Kit {
	if t == nil {
		t = panics{}
	}
	t.Helper()
	var o tracking.Options
	if opts != nil {
		o = *opts
	}
	k := &Kit{
		Clock: &Clock{now: Start}, Store: &Store{Store: memory.New()},
		t: t, ctx: context.Background(), told: &recorder{},
	}
	o.Now = k.Clock.Now
	if o.Rand == nil {
		o.Rand = &counter{}
	}
	if o.Secret == nil {
		o.Secret = []byte("a secret that everybody may know")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Notifiers = maps.Clone(o.Notifiers)
	if o.Notifiers == nil {
		o.Notifiers = map[string]tracking.Notifier{}
	}
	o.Notifiers[outbox] = k.told
	var err error
	if k.Service, err = tracking.New(k.Store, &o); err != nil {
		t.Fatalf("trackingtest: the service cannot be made: %v", err)
	}
	t.Cleanup(func() { k.Store.Close() })
	k.steps = []step{
		{"MarkDueTasks", k.MarkDueTasks}, {"EndDueTrips", k.EndDueTrips}, {"MarkSilent", k.MarkSilent},
		{"Geocode", k.Geocode}, {"AssignWaiting", k.AssignWaiting}, {"DeliverEvents", k.DeliverEvents},
		{"Purge", func(ctx context.Context) (int, error) { p, err := k.Purge(ctx); return p.Total(), err }},
	}
	return k
}

// step is a part of Service.Run.
type step struct {
	name string
	do   func(context.Context) (int, error)
}

// rounds is how often Settle goes round before it says that there is no end.
const rounds = 10_000

// Settle does all that Service.Run would do now, until none of its parts has work left: events are
// delivered, tasks that wait are given to drivers, trips that are over end. It fails when a part
// does; an answer of [Store.FailNextCommit] is asked for again, as Run does.
func (k *Kit) Settle() {
	k.t.Helper()
	for range rounds {
		work := 0
		for _, s := range k.steps {
			n, err := again(func() (int, error) { return s.do(k.ctx) })
			if err != nil {
				k.t.Fatalf("trackingtest: %s: %v", s.name, err)
			}
			work += n
		}
		if work == 0 {
			return
		}
	}
	k.t.Fatalf("trackingtest: there is no end of work for Settle: does what is told of an event make another one?")
}

// Advance moves the clock, and does at each moment what Service.Run would have done then: a task is
// late, a trip over, and a driver silent at the time that it is due. In between it settles once an
// hour, so that what a Notifier has refused is tried again.
func (k *Kit) Advance(d time.Duration) {
	k.t.Helper()
	end := k.Clock.Now().Add(d)
	k.Settle()
	for now := k.Clock.Now(); now.Before(end); now = k.Clock.Now() {
		to := end
		if hour := now.Add(time.Hour); hour.Before(to) {
			to = hour
		}
		k.Clock.set(k.nextDue(now, to))
		k.Settle()
	}
}

// nextDue is the first second after now at which something comes due, or to.
func (k *Kit) nextDue(now, to time.Time) time.Time {
	k.t.Helper()
	if k.due(now) { // by a clock that was wrong, or for a driver who may be silent and is not
		return to
	}
	for lo := now; to.Sub(lo) > time.Second; {
		mid := lo.Add(to.Sub(lo) / 2)
		if k.due(mid) {
			to = mid
		} else {
			lo = mid
		}
	}
	return to
}

// due says whether something comes due by then.
func (k *Kit) due(by time.Time) bool {
	k.t.Helper()
	age := k.Options().MaxFixAge
	for _, kind := range []tracking.DueKind{tracking.DueTrips, tracking.DueTasks, tracking.DueSilence} {
		q := tracking.DueQuery{Kind: kind, Before: by, Limit: 1}
		if kind == tracking.DueSilence {
			q.Before = by.Add(-age)
		}
		list, err := k.Store.Due(k.ctx, q)
		if err != nil {
			k.t.Fatalf("trackingtest: what is due cannot be read: %v", err)
		}
		if len(list) > 0 {
			return true
		}
	}
	return false
}

// tries is how often a call that is answered by ErrUnavailable is made.
const tries = 5

// again makes a call until it is not answered by ErrUnavailable, as everybody does who means it.
func again[T any](call func() (T, error)) (v T, err error) {
	for range tries {
		if v, err = call(); !unavailable(err) {
			break
		}
	}
	return v, err
}

// counter is a source of what looks random and is the same each time: 1, 2, 3 …
type counter struct{ n uint64 }

func (c *counter) Read(b []byte) (int, error) {
	c.n++
	var last [8]byte
	binary.BigEndian.PutUint64(last[:], c.n)
	clear(b)
	copy(b[max(0, len(b)-8):], last[max(0, 8-len(b)):])
	return len(b), nil
}

var _ io.Reader = (*counter)(nil)

// panics stands where there is no test.
type panics struct{}

func (panics) Helper()                           {}
func (panics) Cleanup(func())                    {}
func (panics) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
