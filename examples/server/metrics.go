package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// metrics are what Prometheus reads at -metrics-addr, under the names of package httpadapter/otel, which
// makes traces too. That is a module of its own: were this program to use it, everybody who embeds the
// library would list what it needs.
type metrics struct {
	mu         sync.Mutex
	operations map[series]*histogram
	requests   map[series]*histogram
	active     map[series]int
}

// series is the labels of a metric, as they are written.
type series string

// buckets are the bounds that OpenTelemetry advises for durations of requests, in seconds.
var buckets = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

// helps say what each metric is.
var helps = map[string]string{
	"http_server_request_duration_seconds":    "How long requests took.",
	"http_server_active_requests":             "Requests under way, streams among them.",
	"tracking_operation_duration_seconds":     "How long operations of the service took.",
	"tracking_tasks":                          "Tasks that are not completed.",
	"tracking_tasks_waiting":                  "Tasks that a driver is looked for.",
	"tracking_tasks_waiting_age_seconds":      "For how long the one has waited that waits longest.",
	"tracking_tasks_late":                     "Tasks whose promise is not kept.",
	"tracking_drivers":                        "Drivers on duty.",
	"tracking_drivers_silent":                 "Drivers on duty who are silent.",
	"tracking_store_queue":                    "Writes that wait for their turn in this process.",
	"tracking_events_undelivered":             "Events that are to be delivered.",
	"tracking_events_undelivered_age_seconds": "For how long the one has waited that waits longest.",
	"tracking_events_dead":                    "Events whose delivery was given up.",
}

// head begins a metric.
func head(page *bytes.Buffer, name, kind string) {
	fmt.Fprintf(page, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, helps[name], kind)
}

type histogram struct {
	counts [15]uint64 // up to each bound, and beyond the last
	sum    float64
}

func (h *histogram) add(d time.Duration) {
	i, _ := slices.BinarySearch(buckets, d.Seconds())
	h.counts[i]++
	h.sum += d.Seconds()
}

func newMetrics() *metrics {
	return &metrics{
		operations: map[series]*histogram{}, requests: map[series]*histogram{}, active: map[series]int{},
	}
}

// labelled is a series; labels are names and values in turn. What has no value is left out, but for
// an outbox, whose name may be empty.
func labelled(labels ...string) series {
	var list []string
	for i := 0; i < len(labels); i += 2 {
		if name, value := labels[i], labels[i+1]; value != "" || name == "tracking_outbox" {
			value = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value)
			list = append(list, name+`="`+value+`"`)
		}
	}
	return series(strings.Join(list, ","))
}

func (m *metrics) took(all map[series]*histogram, of series, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if all[of] == nil {
		all[of] = &histogram{}
	}
	all[of].add(d)
}

// observe is tracking.Options.Observe.
func (m *metrics) observe(ctx context.Context, op string) (context.Context, func(tracking.ErrorCode)) {
	start := time.Now()
	return ctx, func(code tracking.ErrorCode) {
		m.took(m.operations, labelled("error_type", string(code), "tracking_operation", op), time.Since(start))
	}
}

// measure measures what next serves.
func (m *metrics) measure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, method := time.Now(), r.Method
		if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method) {
			method = "_OTHER"
		}
		count := func(n int) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.active[labelled("http_request_method", method, "url_scheme", "http")] += n
		}
		count(1)
		rec := &statusRecorder{ResponseWriter: w}
		returned := false
		defer func() { // also when a stream is broken off by a panic
			count(-1)
			status := cmp.Or(rec.status, http.StatusOK)
			if !returned {
				status = cmp.Or(rec.status, http.StatusInternalServerError)
			}
			_, route, _ := strings.Cut(r.Pattern, " ")
			failed := ""
			if status >= 500 {
				failed = strconv.Itoa(status)
			}
			m.took(m.requests, labelled("error_type", failed, "http_request_method", method,
				"http_response_status_code", strconv.Itoa(status), "http_route", route, "url_scheme", "http"), time.Since(start))
		}()
		next.ServeHTTP(rec, r)
		returned = true
	})
}

// statusRecorder notes the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (w *statusRecorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// serve serves /metrics at an address of its own, until it is closed.
func (m *metrics) serve(addr string, svc *tracking.Service, logger *slog.Logger) (io.Closer, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler: m.handler(svc), ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	go func() { _ = server.Serve(listener) }() // returns only that it was closed
	logger.Info("metrics are served", "url", "http://"+listener.Addr().String()+"/metrics")
	return server, nil
}

// handler serves /metrics in the text format of Prometheus.
func (m *metrics) handler(svc *tracking.Service) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		n, err := svc.Stats(r.Context())
		if err != nil {
			http.Error(w, "The numbers cannot be had now.", http.StatusServiceUnavailable)
			return
		}
		var page bytes.Buffer
		m.write(&page)
		writeStats(&page, n, svc.Options().Now())
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Write(page.Bytes())
	})
	return mux
}

// write writes what was counted here.
func (m *metrics) write(page *bytes.Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range []struct {
		name string
		all  map[series]*histogram
	}{{"http_server_request_duration_seconds", m.requests}, {"tracking_operation_duration_seconds", m.operations}} {
		head(page, h.name, "histogram")
		for _, of := range slices.Sorted(maps.Keys(h.all)) {
			all := uint64(0)
			for i, n := range h.all[of].counts {
				bound := "+Inf"
				if i < len(buckets) {
					bound = strconv.FormatFloat(buckets[i], 'g', -1, 64)
				}
				all += n
				fmt.Fprintf(page, "%s_bucket{%s,le=%q} %d\n", h.name, of, bound, all)
			}
			fmt.Fprintf(page, "%s_sum{%s} %g\n%[1]s_count{%[2]s} %[4]d\n", h.name, of, h.all[of].sum, all)
		}
	}
	head(page, "http_server_active_requests", "gauge")
	for _, of := range slices.Sorted(maps.Keys(m.active)) {
		fmt.Fprintf(page, "http_server_active_requests{%s} %d\n", of, m.active[of])
	}
}

// writeStats writes what the store counts.
func writeStats(page *bytes.Buffer, n tracking.Stats, now time.Time) {
	last := ""
	gauge := func(name string, value float64, labels ...string) {
		if name != last {
			head(page, name, "gauge")
			last = name
		}
		if len(labels) > 0 {
			name = fmt.Sprintf("%s{%s}", name, labelled(labels...))
		}
		fmt.Fprintf(page, "%s %g\n", name, value)
	}
	age := func(since time.Time) float64 {
		if since.IsZero() {
			return 0
		}
		return max(0, now.Sub(since).Seconds())
	}
	gauge("tracking_tasks", float64(n.Created), "tracking_task_status", string(tracking.StatusCreated))
	gauge("tracking_tasks", float64(n.Assigned), "tracking_task_status", string(tracking.StatusAssigned))
	gauge("tracking_tasks", float64(n.InProgress), "tracking_task_status", string(tracking.StatusInProgress))
	gauge("tracking_tasks_waiting", float64(n.Waiting))
	gauge("tracking_tasks_waiting_age_seconds", age(n.OldestWaiting))
	gauge("tracking_tasks_late", float64(n.Late))
	gauge("tracking_drivers", float64(n.OnDuty))
	gauge("tracking_drivers_silent", float64(n.Silent))
	gauge("tracking_store_queue", float64(n.Queue))
	for _, o := range n.Outboxes {
		gauge("tracking_events_undelivered", float64(o.Undelivered), "tracking_outbox", o.Name)
	}
	for _, o := range n.Outboxes {
		gauge("tracking_events_undelivered_age_seconds", age(o.Oldest), "tracking_outbox", o.Name)
	}
	for _, o := range n.Outboxes {
		gauge("tracking_events_dead", float64(o.Dead), "tracking_outbox", o.Name)
	}
}
