package otel

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-8aba7b13/tracking"
)

const scope = "github.com/seed-8aba7b13/tracking/httpadapter/otel"

// Options say where metrics and spans go. The zero value of each field means the global one.
type Options struct {
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
}

// Telemetry makes metrics and spans. It is safe for concurrent use.
type Telemetry struct {
	tracer     trace.Tracer
	meter      metric.Meter
	requests   metric.Float64Histogram
	active     metric.Int64UpDownCounter
	operations metric.Float64Histogram
}

// buckets are those that the conventions advise for durations of requests, in seconds.
func buckets() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
}

// New makes a Telemetry. Nil options work.
func New(opts *Options) (*Telemetry, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	t := &Telemetry{tracer: o.TracerProvider.Tracer(scope), meter: o.MeterProvider.Meter(scope)}
	var errs [3]error
	t.requests, errs[0] = t.meter.Float64Histogram("http.server.request.duration", metric.WithUnit("s"),
		metric.WithDescription("How long requests took."), metric.WithExplicitBucketBoundaries(buckets()...))
	t.active, errs[1] = t.meter.Int64UpDownCounter("http.server.active_requests", metric.WithUnit("{request}"),
		metric.WithDescription("Requests under way, streams among them."))
	t.operations, errs[2] = t.meter.Float64Histogram("tracking.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("How long operations of the service took."),
		metric.WithExplicitBucketBoundaries(buckets()...))
	return t, cmp.Or(errs[0], errs[1], errs[2])
}

// Observe is for tracking.Options.Observe.
func (t *Telemetry) Observe(ctx context.Context, op string) (context.Context, func(tracking.ErrorCode)) {
	start := time.Now()
	attrs := []attribute.KeyValue{attribute.String("tracking.operation", op)}
	span := trace.SpanFromContext(context.Background()) // does nothing
	if trace.SpanContextFromContext(ctx).IsValid() {
		ctx, span = t.tracer.Start(ctx, "tracking."+op, trace.WithAttributes(attrs...))
	}
	return ctx, func(code tracking.ErrorCode) {
		if code != "" {
			kind := attribute.String("error.type", string(code))
			attrs = append(attrs, kind)
			span.SetAttributes(kind)
			if code == tracking.ErrInternal || code == tracking.ErrUnavailable {
				span.SetStatus(codes.Error, "")
			}
		}
		t.operations.Record(ctx, time.Since(start).Seconds(), metric.WithAttributes(attrs...))
		span.End()
	}
}

// Handler measures and traces what next serves. Next is an httpadapter.Handler, or has one, and
// other handlers that say their route in the request's Pattern, as an http.ServeMux does.
func (t *Telemetry) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		attrs := []attribute.KeyValue{
			attribute.String("http.request.method", method(r)), attribute.String("url.scheme", scheme),
		}
		same := metric.WithAttributes(slices.Clone(attrs)...)
		ctx := otel.GetTextMapPropagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.tracer.Start(ctx, method(r), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attrs...))
		t.active.Add(ctx, 1, same)
		r = r.WithContext(ctx)
		rec := &recorder{ResponseWriter: w}
		returned := false
		defer func() { // a panic, of a stream that is broken off, passes by
			status := cmp.Or(rec.status, http.StatusOK)
			if !returned {
				status = cmp.Or(rec.status, http.StatusInternalServerError)
			}
			more := []attribute.KeyValue{attribute.Int("http.response.status_code", status)}
			if _, route, ok := strings.Cut(r.Pattern, " "); ok {
				more = append(more, attribute.String("http.route", route))
				span.SetName(method(r) + " " + route)
			}
			if status >= 500 {
				more = append(more, attribute.String("error.type", strconv.Itoa(status)))
				span.SetStatus(codes.Error, "")
			}
			span.SetAttributes(more...)
			t.active.Add(ctx, -1, same)
			t.requests.Record(ctx, time.Since(start).Seconds(), metric.WithAttributes(append(attrs, more...)...))
			span.End()
		}()
		next.ServeHTTP(rec, r)
		returned = true
	})
}

// method is a request's method, if it is one of those that are known.
func method(r *http.Request) string {
	known := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"}
	if slices.Contains(known, r.Method) {
		return r.Method
	}
	return "_OTHER"
}

// recorder notes the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Watch makes metrics of svc's [tracking.Service.Stats], which are asked for with each reading. It is
// for one Service, of whatever application: the numbers are of all.
func (t *Telemetry) Watch(svc *tracking.Service) error {
	var err error
	var all []metric.Observable
	gauge := func(name, unit, about string) metric.Float64ObservableGauge {
		g, failed := t.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(about))
		err = cmp.Or(err, failed)
		all = append(all, g)
		return g
	}
	tasks := gauge("tracking.tasks", "{task}", "Tasks that are not completed.")
	waiting := gauge("tracking.tasks.waiting", "{task}", "Tasks that a driver is looked for.")
	waitingAge := gauge("tracking.tasks.waiting.age", "s", "For how long the one has waited that waits longest.")
	late := gauge("tracking.tasks.late", "{task}", "Tasks whose promise is not kept.")
	drivers := gauge("tracking.drivers", "{driver}", "Drivers on duty.")
	silent := gauge("tracking.drivers.silent", "{driver}", "Drivers on duty who are silent.")
	undelivered := gauge("tracking.events.undelivered", "{event}", "Events that are to be delivered.")
	undeliveredAge := gauge("tracking.events.undelivered.age", "s", "For how long the one has waited that waits longest.")
	dead := gauge("tracking.events.dead", "{event}", "Events whose delivery was given up.")
	queue := gauge("tracking.store.queue", "{write}", "Writes that wait for their turn in this process.")
	if err != nil {
		return err
	}
	now := svc.Options().Now
	_, err = t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		n, err := svc.Stats(ctx)
		if err != nil {
			return err
		}
		age := func(since time.Time) float64 {
			if since.IsZero() {
				return 0
			}
			return max(0, now().Sub(since).Seconds())
		}
		for status, count := range map[tracking.TaskStatus]int{
			tracking.StatusCreated: n.Created, tracking.StatusAssigned: n.Assigned, tracking.StatusInProgress: n.InProgress,
		} {
			o.ObserveFloat64(tasks, float64(count), metric.WithAttributes(
				attribute.String("tracking.task.status", string(status))))
		}
		o.ObserveFloat64(waiting, float64(n.Waiting))
		o.ObserveFloat64(waitingAge, age(n.OldestWaiting))
		o.ObserveFloat64(late, float64(n.Late))
		o.ObserveFloat64(drivers, float64(n.OnDuty))
		o.ObserveFloat64(silent, float64(n.Silent))
		o.ObserveFloat64(queue, float64(n.Queue))
		for _, b := range n.Outboxes {
			of := metric.WithAttributes(attribute.String("tracking.outbox", b.Name))
			o.ObserveFloat64(undelivered, float64(b.Undelivered), of)
			o.ObserveFloat64(undeliveredAge, age(b.Oldest), of)
			o.ObserveFloat64(dead, float64(b.Dead), of)
		}
		return nil
	}, all...)
	return err
}
