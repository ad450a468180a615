// Package otel makes metrics and traces of a tracking service, after the semantic conventions of
// OpenTelemetry. It is a module of its own, so that whoever does without carries nothing of it.
//
//	provider, metrics, err := otel.Prometheus() // or a MeterProvider and a TracerProvider of yours
//	…
//	tel, err := otel.New(&otel.Options{MeterProvider: provider})
//	…
//	svc, err := tracking.New(store, &tracking.Options{Observe: tel.Observe})
//	…
//	err = tel.Watch(svc)
//	…
//	h, err := httpadapter.New(svc, nil)
//	…
//	go http.ListenAndServe("127.0.0.1:9464", metrics) // for Prometheus alone, not for everybody
//	http.ListenAndServe(":8080", tel.Handler(h))
//
// # Metrics
//
//	http.server.request.duration   s, by http.request.method, http.route, http.response.status_code, url.scheme
//	http.server.active_requests    by http.request.method, url.scheme
//	tracking.operation.duration    s, by tracking.operation, which is a method of tracking.Service
//	tracking.tasks                 tasks that are not completed, by tracking.task.status
//	tracking.tasks.waiting         tasks that a driver is looked for
//	tracking.tasks.waiting.age     s, of the one that waits longest; 0 where none waits
//	tracking.tasks.late            tasks
//	tracking.drivers               drivers on duty
//	tracking.drivers.silent        those of them who are silent
//	tracking.events.undelivered    events, by tracking.outbox
//	tracking.events.undelivered.age  s, of the one that waits longest, by tracking.outbox
//	tracking.events.dead           events whose delivery was given up, by tracking.outbox
//	tracking.store.queue           writes that wait for their turn in this process
//
// What failed has error.type as well: the status from 500 on, and the code of the tracking.Error. The
// numbers of tasks, drivers and events come from [tracking.Service.Stats], asked for with each reading;
// they are of all applications and the same in each process on one store. In Prometheus the names have
// underscores for dots, and the unit: tracking_operation_duration_seconds_bucket.
//
// # Traces
//
// A request is a server span named by method and route, an operation within it a span of its own, as
// "tracking.CreateTask", and an operation of that one a span within it. What Run does begins no
// traces. Whose trace a request belongs to is told by the global propagator, which by default
// believes nobody.
//
// No attribute holds a path, a query, a token, an address or an id of anybody: url.path, which the
// conventions ask for, is left out, because paths hold the tokens of customers' links.
package otel
