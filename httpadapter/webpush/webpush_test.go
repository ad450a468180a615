package webpush_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
	"github.com/seed-8aba7b13/tracking/httpadapter/webpush"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const contact = "mailto:ops@tracking.example.com"

// world is a service with a notifier that reaches a push service.
type world struct {
	*tracking.Service
	t       *testing.T
	store   tracking.Store
	push    *webpush.Notifier
	service *pushService
	key     string // applicationServerKey
}

func newWorld(t *testing.T, opts webpush.Options) *world {
	t.Helper()
	w := &world{t: t, service: newPushService(t)}
	if opts.Transport == nil {
		opts.Transport = w.service.rt
	}
	w.open(opts, func(n tracking.Notifier) tracking.Notifier { return n })
	return w
}

// open makes the service, with what notifier makes of the push notifier.
func (w *world) open(opts webpush.Options, notifier func(tracking.Notifier) tracking.Notifier) {
	w.t.Helper()
	if opts.Contact == "" {
		opts.Contact = contact
	}
	push, err := webpush.New(nil, &opts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { push.Close() })
	w.push, w.store = push, memory.New()
	w.t.Cleanup(func() { w.store.Close() })
	w.Service, err = tracking.New(w.store, &tracking.Options{
		Notifier: notifier(push), Logger: slog.New(slog.DiscardHandler), Secret: []byte(strings.Repeat("s", 32)),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	push.Bind(w.Service)
	if w.key, err = push.PublicKey(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// driver makes one with n phones.
func (w *world) driver(svc *tracking.Service, id tracking.DriverID, n int) []*phone {
	w.t.Helper()
	if _, err := svc.SaveDriver(w.t.Context(), tracking.DriverUpdate{ID: id}); err != nil {
		w.t.Fatal(err)
	}
	phones := make([]*phone, n)
	for i := range phones {
		phones[i] = w.service.phone(w.key)
		if err := svc.SubscribePush(w.t.Context(), id, phones[i].subscription()); err != nil {
			w.t.Fatal(err)
		}
	}
	return phones
}

func (w *world) assigned(id tracking.DriverID) tracking.Task {
	w.t.Helper()
	task, err := w.CreateTask(w.t.Context(), tracking.NewTask{
		Type: tracking.TypeDrop, OrderID: "secret-order", Notes: "secret-notes",
		Drop: &tracking.Place{
			Address: "secret-address", Customer: &tracking.Contact{Name: "secret-name", Mobile: "secret-mobile"},
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if task, err = w.AssignTask(w.t.Context(), task.ID, id); err != nil {
		w.t.Fatal(err)
	}
	return task
}

func (w *world) deliver() {
	w.t.Helper()
	for {
		n, err := w.DeliverEvents(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// endpoints are those that the service has of a driver.
func (w *world) endpoints(id tracking.DriverID) []string {
	w.t.Helper()
	d, err := w.Driver(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for _, s := range d.Push {
		list = append(list, string(s.Endpoint))
	}
	return list
}

// note is a notification of a notice to each of drivers.
func note(attempt int, drivers ...tracking.DriverID) tracking.Notification {
	now := time.Now()
	e := tracking.Event{
		ID: "01kab3vq5e8h0c7m2x9tj4wznd", Type: tracking.EventTaskAssigned, Time: now, RecordedAt: now,
		Subject: tracking.Subject{Kind: tracking.KindTask, ID: "t1"},
	}
	for i, d := range drivers {
		e.Notices = append(e.Notices, tracking.Notice{
			ID: int64(i + 1), DriverID: d, Kind: tracking.NoticeAssigned, EventID: e.ID, TaskID: "t1", Time: now,
		})
	}
	return tracking.Notification{App: tracking.DefaultApp, Event: e, Attempt: attempt}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// What happens to a driver's tasks reaches his phones, and theirs only, as it stands in his feed.
func TestNotices(t *testing.T) {
	w := newWorld(t, webpush.Options{})
	ctx := t.Context()
	old, young := w.driver(w.Service, "old", 2), w.driver(w.Service, "young", 1)
	other := w.driver(w.ForApp("other"), "young", 1)
	w.driver(w.Service, "none", 0)

	task := w.assigned("none")
	for _, step := range []func() error{
		func() error { _, err := w.AssignTask(ctx, task.ID, "old"); return err },
		func() error { _, err := w.AssignTask(ctx, task.ID, "young"); return err },
		func() error {
			text := "more"
			_, err := w.UpdateTask(ctx, task.ID, tracking.TaskUpdate{Notes: &text})
			return err
		},
		func() error { _, err := w.CancelTask(ctx, task.ID, tracking.Reason{}); return err },
		func() error {
			return w.RequestTrip(ctx, tracking.NewRequest{
				DriverID: "young", TrackingID: "ü <1>", Message: "secret-message",
			})
		},
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		w.deliver()
	}

	titles := map[tracking.NoticeKind]string{
		"assigned": "New task", "unassigned": "A task was taken from you", "updated": "A task has changed",
		"cancelled": "A task was cancelled", "trip_request": "New trip request",
	}
	kinds := map[tracking.NoticeKind]bool{}
	for id, phones := range map[tracking.DriverID][]*phone{"old": old, "young": young} {
		feed, _, err := w.Notices(ctx, id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		var want []message
		for _, n := range feed {
			kinds[n.Kind] = true
			p := map[string]any{
				"kind": string(n.Kind), "id": float64(n.ID), "event_id": n.EventID, "time": stamp(n.Time),
				"tag": fmt.Sprint(n.ID), "title": titles[n.Kind],
			}
			if n.TaskID != "" {
				p["task_id"] = string(n.TaskID)
			}
			if n.TrackingID != "" {
				p["tracking_id"] = string(n.TrackingID)
			}
			want = append(want, message{Topic: n.EventID, Payload: p, Size: 86 + 256 + 16})
		}
		for i, phone := range phones {
			got := phone.messages()
			if d := cmp.Diff(want, got, cmpopts.IgnoreFields(message{}, "TTL")); d != "" {
				t.Errorf("phone %d of %s got (-want +got):\n%s", i+1, id, d)
			}
			for _, m := range got {
				if m.TTL > 86400 || m.TTL < 86400-60 {
					t.Errorf("TTL %d, want a day", m.TTL)
				}
				if strings.Contains(fmt.Sprint(m.Payload), "secret") {
					t.Errorf("personal data: %v", m.Payload)
				}
			}
		}
	}
	if len(kinds) != len(titles) {
		t.Errorf("the kinds told are %v, want all of them", kinds)
	}
	if got := other[0].messages(); got != nil {
		t.Errorf("another application's driver got %v", got)
	}
}

// A browser that has gone is forgotten, and the others are told all the same.
func TestGone(t *testing.T) {
	for _, code := range []int{http.StatusNotFound, http.StatusGone} {
		w := newWorld(t, webpush.Options{})
		phones := w.driver(w.Service, "d", 3)
		phones[1].answers(status(code))
		w.assigned("d")
		w.deliver()
		w.assigned("d")
		w.deliver()
		if d := cmp.Diff([]string{phones[0].endpoint, phones[2].endpoint}, w.endpoints("d")); d != "" {
			t.Errorf("%d: kept (-want +got):\n%s", code, d)
		}
		for i, want := range []int{2, 1, 2} {
			if got := phones[i].requests(); got != want {
				t.Errorf("%d: phone %d was asked %d times, want %d", code, i+1, got, want)
			}
		}
		if dead, _, err := w.Events(t.Context(), tracking.EventFilter{Dead: true}); err != nil || len(dead) != 0 {
			t.Errorf("%d: given up: %v, %v", code, dead, err)
		}
	}
}

// Nothing can be sent to a browser whose keys or address are no such thing.
func TestUseless(t *testing.T) {
	w := newWorld(t, webpush.Options{})
	phones := w.driver(w.Service, "d", 1)
	good := phones[0].subscription()
	for _, change := range []func(*tracking.PushSubscription){
		func(s *tracking.PushSubscription) { s.P256dh = strings.Repeat("B", 87) }, // no point of the curve
		func(s *tracking.PushSubscription) { s.P256dh = "?" },
		func(s *tracking.PushSubscription) { s.Auth = "AAAA" },
		func(s *tracking.PushSubscription) { s.Auth = "?" },
		func(s *tracking.PushSubscription) { s.Endpoint = "http://push.example.com/1" },
		func(s *tracking.PushSubscription) { s.Endpoint = "https:///1" },
		func(s *tracking.PushSubscription) { s.Endpoint = "%" },
	} {
		bad := good
		bad.Endpoint = tracking.Secret(w.service.url + "/unused")
		change(&bad)
		d, err := w.Driver(t.Context(), "d")
		if err != nil {
			t.Fatal(err)
		}
		d.Push = []tracking.PushSubscription{bad, good}
		if _, err := w.store.Commit(t.Context(), tracking.DefaultApp,
			&tracking.Changeset{Drivers: []tracking.Driver{d}}); err != nil {
			t.Fatal(err)
		}
		if err := w.push.Notify(t.Context(), note(1, "d")); err != nil {
			t.Errorf("%+v: %v", bad, err)
		}
		if d := cmp.Diff([]string{string(good.Endpoint)}, w.endpoints("d")); d != "" {
			t.Errorf("%+v: kept (-want +got):\n%s", bad, d)
		}
	}
	// Padding is what some libraries write, and means nothing.
	good.P256dh, good.Auth = good.P256dh+"=", good.Auth+"=="
	if err := w.SubscribePush(t.Context(), "d", good); err != nil {
		t.Fatal(err)
	}
	before := len(phones[0].messages())
	if err := w.push.Notify(t.Context(), note(1, "d")); err != nil || len(phones[0].messages()) != before+1 {
		t.Errorf("with padding: %v", err)
	}
}

func TestAnswers(t *testing.T) {
	w := newWorld(t, webpush.Options{})
	phones := w.driver(w.Service, "d", 1)
	type outcome struct {
		fails, permanent bool
		wait             time.Duration
	}
	later, final := outcome{fails: true}, outcome{fails: true, permanent: true}
	after := func(d time.Duration) outcome { return outcome{fails: true, wait: d} }
	for _, tt := range []struct {
		status, attempt int
		retryAfter      string
		want            outcome
	}{
		{200, 1, "", outcome{}}, {201, 1, "", outcome{}}, {202, 3, "9", outcome{}}, {204, 9, "", outcome{}},
		{301, 1, "", final}, {307, 1, "", final}, {400, 1, "", final}, {401, 1, "", final}, {403, 1, "", final},
		{413, 1, "60", final},
		{408, 1, "", later}, {425, 2, "", later}, {429, 1, "", later}, {500, 1, "", later}, {502, 2, "", later},
		{503, 1, "", later},
		{429, 1, "120", after(2 * time.Minute)}, {
			503, 2, "7", after(7 * time.Second),
		}, {429, 1, "86400", after(time.Hour)}, {429, 1, "soon", later},
		{429, 3, "120", final}, {503, 3, "", final}, {500, 4, "", final},
	} {
		phones[0].answers(func(w http.ResponseWriter, _ int) {
			w.Header().Set("Retry-After", tt.retryAfter)
			w.Header().Set("Location", "https://127.0.0.1/elsewhere")
			w.WriteHeader(tt.status)
		})
		before := phones[0].requests()
		err := w.push.Notify(t.Context(), note(tt.attempt, "d"))
		var ne *tracking.NotifyError
		got := outcome{fails: errors.As(err, &ne)}
		if ne != nil {
			got.permanent, got.wait = ne.Permanent, ne.RetryAfter
			var se *webpush.StatusError
			if !errors.As(err, &se) || se.Status != tt.status {
				t.Errorf("%+v: %v", tt, err)
			}
		}
		if got != tt.want || err != nil && ne == nil {
			t.Errorf("%d %q at attempt %d is %+v, want %+v: %v", tt.status, tt.retryAfter, tt.attempt, got, tt.want,
				err)
		}
		if n := phones[0].requests() - before; n != 1 {
			t.Errorf("%d: asked %d times", tt.status, n)
		}
		if len(w.endpoints("d")) != 1 {
			t.Fatalf("%d: the browser is forgotten", tt.status)
		}
	}
}

// Only those who lack a notice are told again, until that makes no sense any more.
func TestRetriesReachTheRest(t *testing.T) {
	w := newWorld(t, webpush.Options{})
	phones := append(w.driver(w.Service, "a", 4), w.driver(w.Service, "b", 1)...)
	const good, flaky, down, picky, other = 0, 1, 2, 3, 4
	phones[flaky].answers(func(w http.ResponseWriter, nth int) {
		if nth == 1 {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	phones[down].answers(status(http.StatusServiceUnavailable))
	phones[picky].answers(status(http.StatusForbidden))

	for i, want := range []tracking.NotifyError{{RetryAfter: 30 * time.Second}, {}, {Permanent: true}} {
		var ne *tracking.NotifyError
		if err := w.push.Notify(t.Context(), note(i+1, "a", "b")); !errors.As(err, &ne) ||
			ne.Permanent != want.Permanent || ne.RetryAfter != want.RetryAfter {
			t.Errorf("attempt %d: %+v, want %+v", i+1, ne, want)
		}
	}
	for i, want := range map[int]int{good: 1, flaky: 2, down: 3, picky: 1, other: 1} {
		if got := phones[i].requests(); got != want {
			t.Errorf("phone %d was asked %d times, want %d", i, got, want)
		}
	}

	// What was refused earlier is not hidden by what went well later.
	phones[down].answers(func(w http.ResponseWriter, nth int) {
		if nth == 4 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	var ne *tracking.NotifyError
	if err := w.push.Notify(t.Context(), note(1, "a", "b")); !errors.As(err, &ne) || ne.Permanent {
		t.Errorf("replayed: %v", err)
	}
	if err := w.push.Notify(t.Context(), note(2, "a", "b")); !errors.As(err, &ne) || !ne.Permanent {
		t.Errorf("in the end: %v", err)
	}
	for i, want := range map[int]int{good: 2, flaky: 3, down: 5, picky: 2, other: 2} {
		if got := phones[i].requests(); got != want {
			t.Errorf("replayed, phone %d was asked %d times, want %d", i, got, want)
		}
	}
	if got := len(w.endpoints("a")); got != 4 {
		t.Errorf("%d browsers are known, want 4", got)
	}
	if got := w.push.Underway(); got != 0 {
		t.Errorf("%d events are remembered, want none", got)
	}
}

// The same event of another application is another event.
func TestApplicationsApart(t *testing.T) {
	w := newWorld(t, webpush.Options{})
	phones := w.driver(w.Service, "d", 2)
	phones[1].answers(status(http.StatusServiceUnavailable))
	w.driver(w.ForApp("other"), "d", 0)
	// one browser for both
	if err := w.ForApp("other").SubscribePush(t.Context(), "d", phones[0].subscription()); err != nil {
		t.Fatal(err)
	}
	if err := w.push.Notify(t.Context(), note(1, "d")); err == nil {
		t.Error("no error")
	}
	there := note(2, "d")
	there.App = "other"
	if err := w.push.Notify(t.Context(), there); err != nil {
		t.Error(err)
	}
	if got := []int{phones[0].requests(), phones[1].requests()}; !cmp.Equal(got, []int{2, 1}) {
		t.Errorf("told %v times, want [2 1]", got)
	}
}

// A first try is for all: the event is new, or was given up and is replayed.
func TestReplay(t *testing.T) {
	w := newWorld(t, webpush.Options{})
	phones := w.driver(w.Service, "d", 2)
	phones[1].answers(func(w http.ResponseWriter, nth int) {
		if nth == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	if err := w.push.Notify(t.Context(), note(1, "d")); err == nil {
		t.Error("no error")
	}
	if got := w.push.Underway(); got != 1 {
		t.Errorf("%d events are remembered, want 1", got)
	}
	if err := w.push.Notify(t.Context(), note(1, "d")); err != nil {
		t.Error(err)
	}
	if got := []int{phones[0].requests(), phones[1].requests()}; !cmp.Equal(got, []int{2, 2}) {
		t.Errorf("told %v times, want [2 2]", got)
	}
	if got := w.push.Underway(); got != 0 {
		t.Errorf("%d events are remembered, want none", got)
	}
}

// Old news is no news.
func TestExpired(t *testing.T) {
	var ahead time.Duration
	w := newWorld(t, webpush.Options{TTL: time.Minute, Now: func() time.Time { return time.Now().Add(ahead) }})
	phones := w.driver(w.Service, "d", 1)
	n := note(1, "d")
	for _, tt := range []struct {
		ahead time.Duration
		sent  int
	}{{0, 1}, {50 * time.Second, 2}, {time.Minute, 2}, {time.Hour, 2}} {
		ahead = tt.ahead
		if err := w.push.Notify(t.Context(), n); err != nil {
			t.Error(err)
		}
		got := phones[0].messages()
		if len(got) != tt.sent {
			t.Errorf("after %v it was sent %d times, want %d", tt.ahead, len(got), tt.sent)
		}
		if ttl := got[len(got)-1].TTL; tt.sent == 2 && (ttl > 10 || ttl < 1) {
			t.Errorf("TTL %d, want what is left of the minute", ttl)
		}
	}
	// To come again when it is of no use any more makes no sense.
	ahead = 0
	phones[0].answers(func(w http.ResponseWriter, _ int) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	var ne *tracking.NotifyError
	if err := w.push.Notify(t.Context(), n); !errors.As(err, &ne) || !ne.Permanent {
		t.Errorf("%v", err)
	}
}

func TestAddressesRefused(t *testing.T) {
	w := newWorld(t, webpush.Options{})
	w.push.Close()
	w.open(webpush.Options{Transport: nil}, func(n tracking.Notifier) tracking.Notifier { return n }) // its own
	p := w.driver(w.Service, "d", 1)[0]
	port := p.endpoint[strings.LastIndex(p.endpoint, ":"):]
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "10.0.0.1", "192.168.1.1",
		"169.254.169.254", "100.64.0.1", "[64:ff9b::7f00:1]", "[fd00::1]", "[fe80::1]",
	} {
		sub := p.subscription()
		sub.Endpoint = tracking.Secret("https://" + host + port)
		if err := w.SubscribePush(t.Context(), "d", sub); err != nil {
			t.Fatal(err)
		}
	}
	err := w.push.Notify(t.Context(), note(1, "d"))
	var ne *tracking.NotifyError
	var ae *webpush.AddressError
	if !errors.As(err, &ne) || ne.Permanent || !errors.As(err, &ae) {
		t.Fatalf("%v", err)
	}
	if got := strings.Count(err.Error(), "is not public"); got != len(w.endpoints("d")) || got != 10 {
		t.Errorf("%d of %d addresses refused: %v", got, len(w.endpoints("d")), err)
	}
	if got := p.requests(); got != 0 {
		t.Errorf("reached %d times", got)
	}
}

// Whoever knows an endpoint can send to it.
func TestErrorsHideEndpoint(t *testing.T) {
	srv := httptest.NewServer(nil)
	srv.Close()
	w := newWorld(t, webpush.Options{})
	w.push.Close()
	w.open(webpush.Options{Allow: loopback}, func(n tracking.Notifier) tracking.Notifier { return n })
	p := newPhone(t, strings.Replace(srv.URL, "http:", "https:", 1)+"/capability?x=t0k", w.key)
	w.driver(w.Service, "d", 0)
	if err := w.SubscribePush(t.Context(), "d", p.subscription()); err != nil {
		t.Fatal(err)
	}
	err := w.push.Notify(t.Context(), note(1, "d"))
	var ne *tracking.NotifyError
	if !errors.As(err, &ne) || ne.Permanent || strings.Contains(err.Error(), "capability") ||
		strings.Contains(err.Error(), "t0k") {
		t.Errorf("%v", err)
	}
}

func TestNothingToTell(t *testing.T) {
	w := newWorld(t, webpush.Options{})
	w.driver(w.Service, "none", 0)
	for name, n := range map[string]tracking.Notification{
		"no notice": note(1), "no browser": note(1, "none"), "no driver": note(1, "deleted", "none"),
	} {
		if err := w.push.Notify(t.Context(), n); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnbound(t *testing.T) {
	push, err := webpush.New(nil, &webpush.Options{Contact: contact})
	if err != nil {
		t.Fatal(err)
	}
	var ne *tracking.NotifyError
	if err := push.Notify(t.Context(), note(9, "d")); !errors.As(err, &ne) || ne.Permanent {
		t.Errorf("%v", err)
	}
	if _, err := push.PublicKey(t.Context()); err == nil {
		t.Error("it has a key of no service")
	}
	if err := push.Notify(t.Context(), note(1)); err != nil {
		t.Errorf("without a notice: %v", err)
	}
}

// While the store is away nothing is given up.
func TestStoreAway(t *testing.T) {
	w := newWorld(t, webpush.Options{})
	w.driver(w.Service, "d", 1)
	w.store.Close()
	var ne *tracking.NotifyError
	if err := w.push.Notify(t.Context(), note(9, "d")); !errors.As(err, &ne) || ne.Permanent ||
		!errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

// away is a store that cannot commit.
type away struct{ tracking.Store }

func (away) Commit(context.Context, tracking.AppID, *tracking.Changeset) (tracking.Written, error) {
	return tracking.Written{}, tracking.ErrUnavailable
}

// A browser that has gone and cannot be forgotten now is forgotten later, however often that was
// tried.
func TestForgottenLater(t *testing.T) {
	w := newWorld(t, webpush.Options{})
	phones := w.driver(w.Service, "d", 2)
	phones[0].answers(status(http.StatusGone))
	svc, err := tracking.New(away{w.store}, &tracking.Options{
		Logger: slog.New(slog.DiscardHandler), Secret: []byte(strings.Repeat("s", 32)),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.push.Bind(svc)
	var ne *tracking.NotifyError
	if err := w.push.Notify(t.Context(), note(9, "d")); !errors.As(err, &ne) || ne.Permanent {
		t.Errorf("%v", err)
	}
	w.push.Bind(w.Service)
	if err := w.push.Notify(t.Context(), note(10, "d")); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]string{phones[1].endpoint}, w.endpoints("d")); d != "" || len(phones[1].messages()) != 1 {
		t.Errorf("the other one got %d messages; kept (-want +got):\n%s", len(phones[1].messages()), d)
	}
}

func TestTitle(t *testing.T) {
	long := strings.Repeat("x", webpush.MaxPlaintext)
	w := newWorld(t, webpush.Options{Title: func(app tracking.AppID, kind tracking.NoticeKind) string {
		if app == "long" {
			return long
		}
		return string(app) + " <" + string(kind) + "> é"
	}})
	short, tooLong := w.driver(w.ForApp("short"), "d", 1)[0], w.driver(w.ForApp("long"), "d", 1)[0]
	for _, app := range []tracking.AppID{"short", "long"} {
		n := note(1, "d")
		n.App = app
		n.Event.Notices[0].TrackingID = tracking.TrackingID(strings.Repeat("\u2028", 128))
		if err := w.push.Notify(t.Context(), n); err != nil {
			t.Errorf("%s: %v", app, err)
		}
	}
	if got := short.messages(); len(got) != 1 || got[0].Payload["title"] != "short <assigned> é" {
		t.Errorf("%v", got)
	}
	if got := tooLong.messages(); len(got) != 1 || got[0].Payload["title"] != nil || got[0].Payload["task_id"] != "t1" {
		t.Errorf("%v", got)
	}
}

// One application's key is every application's, and lasts.
func TestPublicKey(t *testing.T) {
	w := newWorld(t, webpush.Options{})
	again, err := webpush.New(w.ForApp("other"), &webpush.Options{Contact: contact})
	if err != nil {
		t.Fatal(err)
	}
	if key, err := again.PublicKey(t.Context()); err != nil || key != w.key || len(key) != 87 {
		t.Errorf("the key is %s, want %s: %v", key, w.key, err)
	}
	other, err := tracking.New(w.store, &tracking.Options{Secret: []byte(strings.Repeat("t", 32))})
	if err != nil {
		t.Fatal(err)
	}
	again.Bind(other)
	if key, err := again.PublicKey(t.Context()); err != nil || key == w.key {
		t.Errorf("with another secret the key is %s: %v", key, err)
	}
}

// Webhooks and pushes of one service: each gets its own, and one that fails does not double the
// other.
func TestFanout(t *testing.T) {
	w := &world{t: t, service: newPushService(t)}
	hooked := &webhook.Recorder{Answer: func(_ context.Context, n tracking.Notification) error {
		if n.Attempt == 1 && n.Event.Type == tracking.EventTaskAssigned {
			return &tracking.NotifyError{Err: errors.New("down"), RetryAfter: time.Nanosecond}
		}
		return nil
	}}
	fan := func(push tracking.Notifier) tracking.Notifier { return webhook.NewFanout(hooked, push) }
	w.open(webpush.Options{Transport: w.service.rt}, fan)
	phones := w.driver(w.Service, "d", 2)
	phones[1].answers(func(w http.ResponseWriter, nth int) {
		if nth == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})

	// The service's first wait is too long for a test: the second try is made by hand.
	fanout := fan(w.push)
	first := fanout.Notify(t.Context(), note(1, "d"))
	if first == nil {
		t.Error("the first try fails for both, and says nothing")
	}
	if err := fanout.Notify(t.Context(), note(2, "d")); err != nil {
		t.Errorf("the second try: %v", err)
	}
	if got := []int{
		len(hooked.Events()), len(hooked.Deliveries()), phones[0].requests(), phones[1].requests(),
	}; !cmp.Equal(got, []int{1, 2, 1, 2}) {
		t.Errorf("taken by and sent to the webhook, sent to the phones: %v, want [1 2 1 2]", got)
	}

	hooked.Reset()
	if err := w.RequestTrip(t.Context(), tracking.NewRequest{DriverID: "d", TrackingID: "x"}); err != nil {
		t.Fatal(err)
	}
	w.deliver()
	if got := []int{
		len(hooked.Events()), len(phones[0].messages()), len(phones[1].messages()),
	}; !cmp.Equal(got, []int{1, 2, 2}) {
		t.Errorf("told by the service: %v, want [1 2 2]", got)
	}
}

func TestNew(t *testing.T) {
	for name, o := range map[string]*webpush.Options{
		"nil": nil, "no contact": {},
		"negative tries": {Contact: contact, Tries: -1}, "negative timeout": {Contact: contact, Timeout: -1},
		"negative TTL": {Contact: contact, TTL: -1},
		"short TTL":    {Contact: contact, TTL: time.Second - 1}, "long TTL": {
			Contact: contact, TTL: 28*24*time.Hour + 1,
		},
	} {
		if n, err := webpush.New(nil, o); err == nil || n != nil || !strings.HasPrefix(err.Error(), "webpush: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []string{
		"mailto:a@example.com", "https://example.com", "https://example.com:8443/imprint?x=1",
		"mailto:a.b+c@mail.example.co.uk", "https://xn--bcher-kva.example.com",
	} {
		if _, err := webpush.New(nil, &webpush.Options{Contact: c}); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
	for _, c := range []string{
		"a@example.com", "example.com", "http://example.com", "mailto:", "mailto:a", "mailto:@example.com", "mailto:a@",
		"mailto:<a@example.com>", "mailto: a@example.com", "mailto:a@example.com?subject=x",
		"mailto:a@b@example.com", "mailto:a@localhost", "mailto:a@host.local", "mailto:a@x.invalid",
		"https://localhost", "https://localhost:8080", "https://push.test", "https://app.internal",
		"https://example.com.",
		"https://127.0.0.1", "https://[2606:4700::1111]", "https://", "https:example.com", "https://user@example.com",
		"mailto:a@[127.0.0.1]", "https://.example.com", "ftp://example.com", "%",
	} {
		if _, err := webpush.New(nil, &webpush.Options{Contact: c}); err == nil {
			t.Errorf("%q is taken for a contact", c)
		}
	}
}
