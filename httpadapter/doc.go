// Package httpadapter serves a [tracking.Service] over HTTP: the /v1 interface for applications and
// drivers, the tracking page that customers open, the web app that drivers work with, the board of
// those who dispatch, and the addresses that phone GPS apps send positions to. The file openapi.json,
// served as /v1/openapi.json, describes the interface, and /v1/docs shows it to people; package
// [github.com/seed-8aba7b13/tracking/httpadapter/web] holds the pages, and Options.Site says how
// they look.
//
//	h, err := httpadapter.New(svc, &httpadapter.Options{BaseURL: "https://track.example"})
//	if err != nil {
//		return err
//	}
//	err = http.ListenAndServe(":8080", h)
//
// A program that serves other things too mounts it on its own mux, if need be under a prefix:
//
//	h.Mount(mux) // /v1/, /track/, /join/, /driver/, /ingest/, /board/
//
// # Who may call
//
// Application routes take an API key, in the query parameter apikey or the header X-Api-Key. The
// keys are those that [tracking.Service.CreateKey] makes, and those of Options.Keys. Programs with
// logins of their own set Options.Authenticate: it says for which application the call is and in
// whose name, before anything else of the call is looked at. A key that comes in a query reaches
// neither a log line nor an answer of this package.
//
// People at a browser sign in: POST /v1/session gives a cookie for an API key, or for a token by
// which the program signs somebody in ([tracking.Service.SignIn]); it is put in the fragment of a
// link, and its page sends it. The cookie is for 12 hours, at this server alone, and dead with the
// key. Nothing of it is kept here, so that DELETE /v1/session signs out this browser, and not a copy.
// A [Principal] whose Role is [tracking.RoleView] looks at everything and changes nothing. A call
// without a key that comes with what a browser sends by itself (cookies, ours or the program's, a
// login of the Authorization header but Bearer, a certificate) is refused where a page of another
// site has the browser make it ([http.CrossOriginProtection]).
//
// The board, at /board/, is where they do so. A link that signs in is of the form
// https://example.com/board/#signin=TOKEN, and works once; opening the page alone uses up nothing.
//
// Drivers' routes take Authorization: Bearer with the token that POST /v1/driver/join gave.
// Tracking and invite links are public: they hold secrets themselves.
//
// # Answers
//
// A success is {"message", "success": true, "data"}. A failure is {"message", "success": false,
// "error": {"code", "field", "request_id"}}, of which the message is for people and the code for
// programs: invalid (400), unauthorized (401), forbidden (403), not_found (404), method_not_allowed
// (405), conflict (409), too_large (413), uri_too_long (414), unsupported_media_type (415),
// rate_limited (429), internal (500), unavailable (503). The field is there when one is to blame. The request id is
// also in the log.
//
// Calls are checked in this order: path, method, form of the query, key or token, then the rest.
// Bodies and queries are read strictly; see the README for what is refused that other servers let
// through.
//
// # What does not reach the handler
//
// A server of net/http answers some requests by itself, in plain text and outside of the shape
// above; no handler can change that. They are those whose path has a broken escape (/v1/trips/%),
// whose header is larger than http.Server.MaxHeaderBytes (431), or has no Host, several, or one
// that is none; a version of HTTP (505), a Transfer-Encoding (501) or an Expect (417) that it does
// not know; a Content-Length that is no number; and what is no HTTP at all. OPTIONS * it answers
// with 200, unless http.Server.DisableGeneralOptionsHandler is set. A mux in front redirects paths
// that are not clean (see [Handler.Mount]) and has a page of its own for those that are not
// mounted. Proxies have their own answers too. So a program that calls reads the status first, and
// then the body, if it is JSON.
//
// # Tracking links
//
// What the page behind a tracking link shows, pages of your own can show too: GET
// /track/{token}/state has it as data.tracking, and GET /track/{token}/live sends it as server-sent
// events. The first event is a state, the same object; so is each change, except that of a driver
// who does nothing but move. Then comes a move:
//
//	event: move
//	data: {"position":{"lnglat":[80.257642,13.009588],"time":"2026-03-14T09:12:10.000Z","live":true},"path_add":[[80.257642,13.009588]],"eta":{…}}
//
// It replaces position and eta (without one, there is none any more) and lengthens path; the result
// is what /state has now:
//
//	const live = new EventSource(link + '/live')
//	let tracking
//	live.addEventListener('state', (e) => { tracking = JSON.parse(e.data) })
//	live.addEventListener('move', (e) => {
//	  const { position, path_add, eta } = JSON.parse(e.data)
//	  tracking = { ...tracking, position, eta, path: [...tracking.path, ...path_add] }
//	})
//	live.addEventListener('end', () => live.close())
//
// Who knows nothing of moves asks for the state every few seconds. The driver is at the door when
// eta.time is eta.computed_at.
//
// A driver's photos, and who took the delivery, are there once the task has succeeded or failed, if
// Site.ShowProof says so: photos are ids, each of a picture at link + '/proof/' + id. A PIN that the
// task asks for is there as pin while the driver is under way.
//
// # What goes on in an application
//
// GET /v1/live is what a dispatcher's board lives on, ours and those of others: server-sent events,
// of which the first are all that is under way ([tracking.Service.Live]). Each task and driver comes
// as the lists show it, and replaces the one before:
//
//	const live = new EventSource('/v1/live'), tasks = {}, drivers = {}
//	live.addEventListener('task', (e) => { const t = JSON.parse(e.data); tasks[t.task_id] = t })
//	live.addEventListener('driver', (e) => { const d = JSON.parse(e.data); drivers[d.driver_id] = d })
//	live.addEventListener('position', (e) => {
//	  const { driver_id, lnglat, accuracy, at } = JSON.parse(e.data)
//	  Object.assign(drivers[driver_id], { lnglat, accuracy, located_at: at })
//	})
//	live.addEventListener('gone', (e) => {
//	  const { task_id, driver_id } = JSON.parse(e.data)
//	  delete tasks[task_id]
//	  delete drivers[driver_id]
//	})
//	live.addEventListener('reset', () => { … }) // forget all: it comes anew
//	live.addEventListener('ready', () => { … }) // all that is under way is known
//
// A browser that is signed in takes the stream up again by itself, and goes on where it was. A
// comment comes every 5 s, or Options.Heartbeat if that is shorter: who has heard nothing for longer
// is not live any more. As often it is asked whether the caller still may look, and else the stream
// ends.
//
// # Pictures
//
// What a driver gives as proof is the body of a PUT: JPEG, PNG or WebP by its content, whatever its
// Content-Type says, as long as that is of an image or application/octet-stream. Nothing but the
// picture is kept: thumbnails, colour profile, comments, text, and who took it where and with what
// are taken out without making it anew; the way it is to be turned stays. What phones put behind a
// JPEG (another size of it, a film) is cut off. Refused are a file that is something else (415), one
// that is cut short, or has something else behind the picture (400), more than 2 MiB or 40 million
// pixels (413), an eleventh for the task (409). No picture is ever unpacked here. They are answered
// with their type, nosniff and a Content-Security-Policy that runs nothing, to the application as an
// attachment.
//
// # Data that goes
//
// POST /v1/task/delete {task_id} and POST /v1/contact/erase {mobile} are
// [tracking.Service.DeleteTask] and [tracking.Service.EraseContact]. A task from which a person was
// erased has erased_at. Webhooks tell task.erased, with the task as it is then, and nothing of a task
// that was deleted, also nothing that was still to be told.
//
// # Webhooks
//
// [Webhook] makes a notifier for the service that tells a URL of every event. [Handler.Fill] gives
// its requests the rows as the interface shows them; a receiver in Go checks them with
// [VerifyWebhook].
//
// # Decisions
//
// Where the interface leaves it open:
//   - GET /v1/driver/tasks shows as today's the tasks completed within the last 24 hours.
//   - An empty user_id on /v1/invite_user is refused; leave it out to have one made.
//   - Answers to the application show a task's pin, and as wrong_pins how often its driver was wrong; a driver is shown neither, nor who received what is over. Webhooks
//     hold no PIN.
//   - A signature is never on a link.
//   - /v1/events takes at most one of task_id, driver_id and trip_id; with none it lists all events of the application. Its data are events and has_more.
//   - /v1/events?dead=true lists what could not be delivered to the receiver that outbox names, as in tracking.Options.Notifiers; left out it is that of
//     tracking.Options.Notifier. POST /v1/events/replay takes 1000 ids at most; what is not dead there, or nobody's, is passed over, so that it may be repeated.
//   - Each answer names its call in X-Request-Id: the one that the request had, of 8 to 64 letters, digits, '-', '_' and '.', or else a new one.
//   - A query parameter that must not be empty and is: 400. properties.<key> is one of them, so drivers with an empty property cannot be asked for.
//   - A JSON body may have 131,072 members in all its objects together, twice as many as the largest batch of tasks whose every field is set.
//   - apikey and X-Api-Key that differ are refused even if one of them is empty.
//   - multipart/form-data is taken by /v1/assign_trip beside the usual form.
//   - /v1/driver/notifications without after begins with the oldest notice that is kept. Last-Event-ID counts before after. A notice shows a task only
//     while it is the driver's, and its contacts only while it is open.
//   - The page, state and stream of a tracking link are compressed for those who take gzip; other answers with people's data are not. Compression gives a secret
//     away where an attacker has text of his own in the answer that holds it (BREACH). These answers repeat nothing of the request, and all they hold belongs to
//     whoever has the link, the customer's note too, which nobody else can write.
//   - POST /track/{token}/note has to say that its body is application/json, which no form of another site's can; 4 KiB at most. It answers nothing but that the note
//     was sent. A driver is shown the note while the task is open, an application always.
//   - retry_of, retried_by and customer_note of a task, and reason_code and customer_note of a link, are always there, empty where there is none.
//   - A stream sends a state, too, when the path has been thinned or its past has changed; who is slow is sent a state instead of the moves that he missed.
//   - A revoked tracking link ends the streams on it within a second, a revoked driver token within Options.Heartbeat.
//   - A body that does not arrive in time is answered 400, if anybody still listens, and the connection is closed.
package httpadapter
