package otel_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/otel"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

type down struct{}

func (down) Notify(context.Context, tracking.Notification) error { return errors.New("down") }

// watched is a service and its server, as a program sets them up.
type watched struct {
	*testing.T
	svc     *tracking.Service
	url     string
	metrics http.Handler
	spans   *tracetest.InMemoryExporter
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{T: t, spans: tracetest.NewInMemoryExporter()}
	provider, metrics, err := otel.Prometheus()
	if err != nil {
		t.Fatal(err)
	}
	w.metrics = metrics
	tel, err := otel.New(&otel.Options{
		MeterProvider: provider, TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans)),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.svc, err = tracking.New(memory.New(), &tracking.Options{
		Observe: tel.Observe, Notifiers: map[string]tracking.Notifier{"webhook": down{}},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := tel.Watch(w.svc); err != nil {
		t.Fatal(err)
	}
	h, err := httpadapter.New(w.svc, &httpadapter.Options{
		Keys: map[string]httpadapter.Principal{"canary-key": {}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(tel.Handler(h))
	t.Cleanup(func() {
		_ = w.svc.Close(context.Background()) // returns nil
		srv.Close()
	})
	w.url = srv.URL
	return w
}

func (w *watched) do(method, target, body string) string {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, w.url+target, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "canary-key")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

func (w *watched) scrape() string {
	w.Helper()
	rec := httptest.NewRecorder()
	w.metrics.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusOK {
		w.Fatalf("/metrics answers %d: %s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// finished waits until so many requests are over, whose spans end just after their answers.
func (w *watched) finished(n int) tracetest.SpanStubs {
	w.Helper()
	for range 500 {
		list, requests := w.spans.GetSpans(), 0
		for _, s := range list {
			if s.SpanKind == trace.SpanKindServer {
				requests++
			}
		}
		if requests >= n {
			return list
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.Fatalf("the spans of %d requests are not there", n)
	return nil
}

// The metrics have the names and labels of those that examples/server serves, for which its dashboard
// is made.
func TestNames(t *testing.T) {
	w := newWatched(t)
	w.do("POST", "/v1/task/create", `{"type":2,"drop":{"address":"canary street"}}`)
	w.do("GET", "/v1/task?task_id=canary-task", "")
	w.do("GET", "/track/canary-token/state?apikey=canary-query", "")
	w.finished(3)
	text := w.scrape()
	if strings.Contains(text, "canary") {
		t.Error("the metrics tell a secret")
	}
	promised, err := os.ReadFile("../../examples/server/testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for line := range strings.Lines(string(promised)) {
		words := strings.Fields(line)
		want[words[0]] = words[1:]
	}
	sample := regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? `)
	label := regexp.MustCompile(`([a-z_]+)="`)
	found := map[string]bool{}
	for _, m := range sample.FindAllStringSubmatch(text, -1) {
		labels, ok := want[m[1]]
		if !ok {
			t.Errorf("%s is none that the server has", m[1])
		}
		found[m[1]] = true
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(labels, l[1]) {
				t.Errorf("%s has the label %s, which that of the server has not", m[1], l[1])
			}
		}
	}
	for name := range want {
		if !found[name] {
			t.Errorf("there is no %s", name)
		}
	}
	for _, line := range []string{
		`tracking_tasks{tracking_task_status="created"} 1`, `tracking_events_undelivered{tracking_outbox="webhook"} 1`,
		`tracking_operation_duration_seconds_count{tracking_operation="CreateTask"} 1`,
		`http_server_request_duration_seconds_count{http_request_method="POST",http_response_status_code="200",http_route="/v1/task/create",url_scheme="http"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no line %s", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// A request is a span, what it does are spans within, and none holds what it was called with.
func TestSpans(t *testing.T) {
	w := newWatched(t)
	w.do("POST", "/v1/task/batch?apikey=canary-key", `{"tasks":[{"type":2,"drop":{"address":"canary street"}}]}`)
	w.do("GET", "/v1/trips/canary-trip", "")
	w.do("GET", "/canary-path", "")
	if _, err := w.svc.AssignWaiting(t.Context()); err != nil { // as Run does
		t.Fatal(err)
	}
	spans := w.finished(3)
	by := map[string]tracetest.SpanStub{}
	for _, s := range spans {
		by[s.Name] = s
		for _, a := range s.Attributes {
			if strings.Contains(a.Value.String(), "canary") {
				t.Errorf("%s has %s = %s", s.Name, a.Key, a.Value.String())
			}
		}
	}
	for child, parent := range map[string]string{
		"tracking.CreateTasks": "POST /v1/task/batch", "tracking.CreateTask": "tracking.CreateTasks",
		"tracking.Trip": "GET /v1/trips/{trip_id}",
	} {
		if by[child].Parent.SpanID() != by[parent].SpanContext.SpanID() || !by[child].Parent.IsValid() {
			t.Errorf("%s is no part of %s", child, parent)
		}
	}
	if s := by["GET"]; s.SpanKind != trace.SpanKindServer || s.Status.Code != codes.Unset || s.Parent.IsValid() {
		t.Errorf("of a path that there is not: %+v", s)
	}
	if _, ok := by["tracking.AssignWaiting"]; ok {
		t.Error("what nobody has asked for has a span")
	}
}

// A stream passes through, is flushed as it goes, and is counted while it is open.
func TestStream(t *testing.T) {
	w := newWatched(t)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/v1/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "canary-key")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := res.Body.Read(first); err != nil {
		t.Fatal(err)
	}
	if text := w.scrape(); !strings.Contains(text, `http_server_active_requests{http_request_method="GET",url_scheme="http"} 1`) {
		t.Errorf("while the stream is open:\n%s", text)
	}
	cancel()
	res.Body.Close()
	w.finished(1)
	if text := w.scrape(); !strings.Contains(text, `http_server_active_requests{http_request_method="GET",url_scheme="http"} 0`) ||
		!strings.Contains(text, `http_response_status_code="200",http_route="/v1/live"`) {
		t.Errorf("after the stream:\n%s", text)
	}
}

// What breaks an answer off is counted, and passes by.
func TestPanic(t *testing.T) {
	w := newWatched(t)
	provider, metrics, err := otel.Prometheus()
	if err != nil {
		t.Fatal(err)
	}
	tel, err := otel.New(&otel.Options{MeterProvider: provider})
	if err != nil {
		t.Fatal(err)
	}
	w.metrics = metrics
	func() {
		defer func() {
			if recover() != http.ErrAbortHandler {
				t.Error("the panic did not pass")
			}
		}()
		tel.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })).
			ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("BREW", "/", nil))
	}()
	const want = `http_server_request_duration_seconds_count{error_type="500",http_request_method="_OTHER",http_response_status_code="500",url_scheme="http"} 1`
	if text := w.scrape(); !strings.Contains(text, want) {
		t.Errorf("after a panic:\n%s", text)
	}
}
