// Package httpadapter serves a [tracking.Service] over HTTP: the /v1 interface for applications and drivers, the tracking page that customers open, the web app that
// drivers work with, and the addresses that phone GPS apps send positions to. The file openapi.json, served as /v1/openapi.json, describes the interface;
// package [github.com/seed-8aba7b13/tracking/httpadapter/web] holds the pages, and Options.Site says how they look.
//
//	h, err := httpadapter.New(svc, &httpadapter.Options{BaseURL: "https://track.example"})
//	if err != nil {
//		return err
//	}
//	err = http.ListenAndServe(":8080", h)
//
// A program that serves other things too mounts it on its own mux, if need be under a prefix:
//
//	h.Mount(mux) // /v1/, /track/, /join/, /driver/, /ingest/
//
// # Who may call
//
// Application routes take an API key, in the query parameter apikey or the header X-Api-Key. The keys are those that [tracking.Service.CreateKey]
// makes, and those of Options.Keys. Programs with logins of their own set Options.Authenticate: it says for which application the call
// is and in whose name, before anything else of the call is looked at. A key that comes in a query reaches neither a log line nor an answer of this package.
//
// Drivers' routes take Authorization: Bearer with the token that POST /v1/driver/join gave. Tracking and invite links are public: they hold secrets themselves.
//
// # Answers
//
// A success is {"message", "success": true, "data"}. A failure is {"message", "success": false, "error": {"code", "field", "request_id"}}, of which the message is
// for people and the code for programs: invalid (400), unauthorized (401), not_found (404), method_not_allowed (405), conflict (409), too_large (413), uri_too_long (414),
// unsupported_media_type (415), rate_limited (429), internal (500), unavailable (503). The field is there when one is to blame. The request id is also in the log.
//
// Calls are checked in this order: path, method, form of the query, key or token, then the rest.
// Bodies and queries are read strictly; see the README for what is refused that other servers let through.
//
// # Webhooks
//
// [Webhook] makes a notifier for the service that tells a URL of every event. [Handler.Fill] gives its requests the rows as the interface shows them; a receiver in Go checks them
// with [VerifyWebhook].
//
// # Decisions
//
// Where the interface leaves it open:
//   - GET /v1/driver/tasks shows as today's the tasks completed within the last 24 hours.
//   - An empty user_id on /v1/invite_user is refused; leave it out to have one made.
//   - /v1/events takes at most one of task_id, driver_id and trip_id; with none it lists all events of the application. Its data are events and has_more.
//   - A query parameter that must not be empty and is: 400. properties.<key> is one of them, so drivers with an empty property cannot be asked for.
//   - apikey and X-Api-Key that differ are refused even if one of them is empty.
//   - multipart/form-data is taken by /v1/assign_trip beside the usual form.
//   - /v1/driver/notifications without after begins with the oldest notice that is kept. Last-Event-ID counts before after. A notice shows a task only
//     while it is the driver's, and its contacts only while it is open.
//   - A revoked tracking link ends the streams on it within 10 seconds, a revoked driver token within Options.Heartbeat.
//   - A body that does not arrive in time is answered 400, if anybody still listens, and the connection is closed.
package httpadapter
