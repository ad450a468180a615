package httpadapter

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// who may call a route.
type who int

const (
	public      who = iota
	application     // with an API key
	driver          // with a driver's app token
)

// route is one line of the table.
type route struct {
	method   string
	pattern  string // segments in braces take anything that is not empty
	who      who
	handle   func(*request) (answer, error)
	takes    *endpoint // instead of handle: a handler that is given the body, as its own type
	page     bool      // errors are shown as a page
	lenient  bool      // the query is the handler's own business
	front    bool      // a file of the web front ends, which is no part of the interface
	segments []string
	name     string // as that of an http.ServeMux
}

// routes is the whole interface.
func (h *Handler) routes() []route {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	list := []route{
		{method: post, pattern: "/v1/task/create", who: application, takes: body(h.createTask)},
		{
			method: post, pattern: "/v1/task/batch", who: application,
			takes: batchBody(maxTasksBody, h.createTasks),
		},
		{method: get, pattern: "/v1/task/list", who: application, handle: h.listTasks},
		{method: get, pattern: "/v1/task/counts", who: application, handle: h.countTasks},
		{method: get, pattern: "/v1/task", who: application, handle: h.getTask},
		{method: get, pattern: "/v1/task/candidates", who: application, handle: h.candidates},
		{method: post, pattern: "/v1/task/assign", who: application, takes: body(h.assignTask)},
		{method: post, pattern: "/v1/task/unassign", who: application, takes: body(h.unassignTask)},
		{method: post, pattern: "/v1/task/update", who: application, takes: body(h.updateTask)},
		{method: post, pattern: "/v1/task/cancel", who: application, takes: body(h.cancelTask)},
		{method: post, pattern: "/v1/task/complete", who: application, takes: body(h.completeTask)},
		{method: post, pattern: "/v1/task/retry", who: application, takes: body(h.retryTask)},
		{method: get, pattern: "/v1/task/proof", who: application, handle: h.getProof},
		{method: post, pattern: "/v1/task/reopen", who: application, takes: body(h.reopenTask)},
		{method: post, pattern: "/v1/geocode", who: application, takes: body(h.findPlace)},
		{method: post, pattern: "/v1/task/settle", who: application, takes: body(h.settleTask)},
		{method: get, pattern: "/v1/task/trackingurl/{task_id}", who: application, handle: h.taskLink},
		{method: post, pattern: "/v1/task/trackingurl/revoke", who: application, takes: body(h.revokeTaskLink)},

		{method: get, pattern: "/v1/trips", who: application, handle: h.listTrips},
		{method: get, pattern: "/v1/trips/{trip_id}", who: application, handle: h.getTrip},
		{method: get, pattern: "/v1/triphistory/{trip_id}", who: application, handle: h.tripHistory},
		{method: get, pattern: "/v1/trips/trackingurl/{trip_id}", who: application, handle: h.tripLink},
		{method: post, pattern: "/v1/trips/trackingurl/revoke", who: application, takes: body(h.revokeTripLink)},
		{method: post, pattern: "/v1/task/delete", who: application, takes: body(h.deleteTask)},
		{method: post, pattern: "/v1/contact/erase", who: application, takes: body(h.eraseContact)},
		{method: post, pattern: "/v1/assign_trip", who: application, takes: textsBody(h.requestTrip)},

		{method: get, pattern: "/v1/users/drivers", who: application, handle: h.listDrivers},
		{method: get, pattern: "/v1/users/driver", who: application, handle: h.getDriver},
		{method: post, pattern: "/v1/users/driver", who: application, takes: body(h.saveDriver)},
		{method: get, pattern: "/v1/users/driver/route", who: application, handle: h.getRoute},
		{method: post, pattern: "/v1/users/driver/route", who: application, takes: body(h.setRoute)},
		{method: post, pattern: "/v1/users/driver/revoke", who: application, takes: body(h.revokeDriver)},
		{method: post, pattern: "/v1/users/driver/delete", who: application, takes: body(h.deleteDriver)},
		{method: post, pattern: "/v1/users/driver/handover", who: application, takes: body(h.handOver)},
		{method: post, pattern: "/v1/invite_user", who: application, takes: optionalBody(h.invite)},
		{method: post, pattern: "/v1/session", takes: pageBody(h.openSession)},
		{method: get, pattern: "/v1/session", who: application, handle: h.getSession},
		{method: del, pattern: "/v1/session", handle: h.closeSession},
		{method: get, pattern: "/v1/events", who: application, handle: h.events},
		{method: post, pattern: "/v1/events/replay", who: application, takes: body(h.replayEvents)},
		{method: get, pattern: "/v1/live", who: application, handle: h.live},

		{method: post, pattern: "/v1/driver/join", takes: body(h.join)},
		{method: get, pattern: "/v1/driver/me", who: driver, handle: h.driverMe},
		{method: post, pattern: "/v1/driver/availability", who: driver, takes: body(h.driverAvailability)},
		{method: post, pattern: "/v1/driver/fixes", who: driver, takes: batchBody(maxFixesBody, h.driverFixes)},
		{method: get, pattern: "/v1/driver/tasks", who: driver, handle: h.driverTasks},
		{
			method: post, pattern: "/v1/driver/tasks/{task_id}/start", who: driver,
			takes: optionalBody(h.driverStartTask),
		},
		{
			method: post, pattern: "/v1/driver/tasks/{task_id}/arrive", who: driver,
			takes: optionalBody(h.driverArrive),
		},
		{
			method: post, pattern: "/v1/driver/tasks/{task_id}/pickup", who: driver,
			takes: optionalBody(h.driverPickUpTask),
		},
		{
			method: post, pattern: "/v1/driver/tasks/{task_id}/complete", who: driver,
			takes: optionalBody(h.driverFinishTask),
		},
		{
			method: post, pattern: "/v1/driver/tasks/{task_id}/decline", who: driver,
			takes: optionalBody(h.driverDeclineTask),
		},
		{
			method: post, pattern: "/v1/driver/tasks/{task_id}/undo", who: driver,
			takes: optionalBody(h.driverUndoTask),
		},
		{
			method: post, pattern: "/v1/driver/tasks/{task_id}/stuck", who: driver,
			takes: body(h.driverStuck),
		},
		{
			method: post, pattern: "/v1/driver/tasks/{task_id}/settle", who: driver,
			takes: optionalBody(h.driverSettle),
		},
		{method: get, pattern: "/v1/driver/route", who: driver, handle: h.driverRoute},
		{method: post, pattern: "/v1/driver/route", who: driver, takes: body(h.driverReorder)},
		{
			method: put, pattern: "/v1/driver/tasks/{task_id}/proof/{kind}", who: driver,
			takes: &endpoint{handle: h.driverAddProof, picture: true},
		},
		{method: get, pattern: "/v1/driver/proof", who: driver, handle: h.driverGetProof},
		{method: get, pattern: "/v1/driver/trips", who: driver, handle: h.driverTrips},
		{method: post, pattern: "/v1/driver/trips", who: driver, takes: body(h.driverStartTrip)},
		{method: post, pattern: "/v1/driver/trips/{trip_id}/stop", who: driver, takes: optionalBody(h.driverStopTrip)},
		{
			method: post, pattern: "/v1/driver/trips/{trip_id}/discard", who: driver,
			takes: optionalBody(h.driverDiscardTrip),
		},
		{method: get, pattern: "/v1/driver/requests", who: driver, handle: h.driverRequests},
		{method: get, pattern: "/v1/driver/notifications", who: driver, handle: h.driverNotices},
		{method: post, pattern: "/v1/driver/push", who: driver, takes: body(h.driverPush)},
		{method: post, pattern: "/v1/driver/push/delete", who: driver, takes: body(h.driverPushEnd)},
		{method: get, pattern: "/v1/driver/phone", who: driver, handle: h.driverPhone},

		{method: get, pattern: "/ingest/{token}", lenient: true, handle: h.ingest},
		{method: post, pattern: "/ingest/{token}", lenient: true, handle: h.ingest},

		{method: get, pattern: "/v1/openapi.json", handle: h.openapi},
		{method: get, pattern: "/v1/docs", front: true, page: true, lenient: true, handle: h.docs},

		{method: get, pattern: "/track/assets/{file}", front: true, lenient: true, handle: h.asset},
		{method: get, pattern: "/track/{token}", page: true, lenient: true, handle: h.trackPage},
		{method: get, pattern: "/track/{token}/state", lenient: true, handle: h.trackState},
		{method: get, pattern: "/track/{token}/live", lenient: true, handle: h.trackLive},
		{method: post, pattern: "/track/{token}/note", lenient: true, takes: pageBody(h.trackNote)},
		{method: get, pattern: "/track/{token}/proof/{id}", lenient: true, handle: h.trackPhoto},

		{method: get, pattern: "/join/{token}", page: true, lenient: true, handle: h.driverPage},
		{method: get, pattern: "/driver", front: true, lenient: true, handle: h.toFront("/driver/")},
		{method: get, pattern: "/driver/", front: true, page: true, lenient: true, handle: h.driverPage},
		{method: get, pattern: "/driver/assets/{file}", front: true, lenient: true, handle: h.asset},
		{method: get, pattern: "/driver/map/{file}", front: true, lenient: true, handle: h.baseMap},
		{method: get, pattern: "/driver/sw.js", front: true, lenient: true, handle: h.worker},
		{method: get, pattern: "/driver/manifest.webmanifest", front: true, lenient: true, handle: h.manifest},
	}
	if !h.opts.NoBoard {
		list = append(list,
			route{method: get, pattern: "/board", front: true, lenient: true, handle: h.toFront("/board/")},
			route{method: get, pattern: "/board/", front: true, page: true, lenient: true, handle: h.boardPage},
		)
	}
	if h.opts.Health != nil {
		list = append(list, route{method: get, pattern: "/healthz", lenient: true, handle: h.health})
	}
	for i, rt := range list {
		if rt.takes != nil {
			list[i].handle = rt.takes.handle
		}
	}
	return list
}

// call is what a route is found by; match is what is found.
type (
	call  struct{ method, path string }
	match struct{ found, path *route }
)

// fixedRoutes is what match finds for paths without names in braces, which most calls have: there it
// compares them all.
func (h *Handler) fixedRoutes() map[call]match {
	fixed := map[call]match{}
	for _, rts := range h.table {
		for _, rt := range rts {
			if strings.Contains(rt.pattern, "{") {
				continue
			}
			as := call{rt.method, h.opts.Prefix + rt.pattern}
			r := &request{Request: &http.Request{Method: as.method, URL: &url.URL{Path: as.path}}}
			if found, path := h.compare(r, as.method); found == rt {
				fixed[as] = match{found, path}
			}
		}
	}
	return fixed
}

// match finds the route of a call and fills in the request's path values. Path is a route of the
// same path, whatever the call's method; nil: there is no such path. Paths are compared segment by
// segment and as they came: none is cleaned, and nothing is redirected.
func (h *Handler) match(r *request) (found, path *route) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if r.URL.RawPath == "" {
		if m, ok := h.fixed[call{method, r.URL.Path}]; ok {
			return m.found, m.path
		}
	}
	return h.compare(r, method)
}

// compare is match without the fixed routes.
func (h *Handler) compare(r *request, method string) (found, path *route) {
	segments := h.segments(r)
	var wild bool
	for _, rt := range h.table[len(segments)] {
		values, ok := rt.match(segments)
		if !ok {
			continue
		}
		path = rt
		if rt.method == method && (found == nil || wild && values == nil) {
			found, r.path, wild = rt, values, values != nil
		}
	}
	return found, path
}

// allowed names the methods of a call's path, with commas between.
func (h *Handler) allowed(r *request) string {
	segments := h.segments(r)
	list := []string{http.MethodOptions}
	for _, rt := range h.table[len(segments)] {
		if _, ok := rt.match(segments); ok {
			list = append(list, rt.method)
		}
	}
	if slices.Contains(list, http.MethodGet) {
		list = append(list, http.MethodHead)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}

// segments are the parts of a call's path behind the prefix; none: it is nothing of ours.
func (h *Handler) segments(r *request) []string {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), h.opts.Prefix+"/")
	if !ok || strings.Count(rest, "/") >= 8 {
		return nil
	}
	segments := strings.Split(rest, "/")
	for i, s := range segments {
		var err error
		if segments[i], err = url.PathUnescape(s); err != nil {
			return nil
		}
	}
	return segments
}

// match compares a path's segments, and returns what stands for the names in braces.
func (rt *route) match(segments []string) (values pathValues, ok bool) {
	for i, want := range rt.segments {
		if !strings.HasPrefix(want, "{") {
			if segments[i] != want {
				return nil, false
			}
			continue
		}
		if segments[i] == "" {
			return nil, false
		}
		values = append(values, pathValue{want[1 : len(want)-1], segments[i]})
	}
	return values, true
}

// pathValues are what stands in a path for the names in its pattern. A map would take ten times the
// memory for as long as a stream is open.
type (
	pathValues []pathValue
	pathValue  struct{ name, value string }
)

func (p pathValues) of(name string) string {
	for _, v := range p {
		if v.name == name {
			return v.value
		}
	}
	return ""
}
