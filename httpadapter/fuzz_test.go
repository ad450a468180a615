package httpadapter_test

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// fuzzed is a handler without a network, a driver's token, and the routes with a method.
func fuzzed(f *testing.F, method string) (h *httpadapter.Handler, token string, routes []string) {
	f.Helper()
	svc, err := tracking.New(memory.New(), &tracking.Options{Logger: quiet()})
	if err != nil {
		f.Fatal(err)
	}
	h, err = httpadapter.New(svc, &httpadapter.Options{
		Keys: map[string]httpadapter.Principal{"k": {}}, Logger: quiet(),
	})
	if err != nil {
		f.Fatal(err)
	}
	inv, err := svc.InviteDriver(f.Context(), tracking.NewInvite{DriverID: "ravi"})
	if err != nil {
		f.Fatal(err)
	}
	joined, err := svc.Join(f.Context(), tracking.JoinRequest{Token: inv.Token})
	if err != nil {
		f.Fatal(err)
	}
	for _, rt := range h.Routes() {
		if rt.Method == method && strings.HasPrefix(rt.Pattern, "/v1/") && !slices.Contains([]string{"/v1/openapi.json", "/v1/live"}, rt.Pattern) {
			routes = append(routes, strings.NewReplacer("{task_id}", "t", "{trip_id}", "t").Replace(rt.Pattern))
		}
	}
	return h, joined.Token, routes
}

// answered asserts what every answer has, whatever was sent.
func answered(t *testing.T, what string, w *httptest.ResponseRecorder) {
	t.Helper()
	var v struct {
		Success *bool
		Error   struct{ Code string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || v.Success == nil || *v.Success != (w.Code == 200) ||
		w.Code >= 500 || !*v.Success && codes[w.Code] != v.Error.Code {
		t.Errorf("%s: %d %v %s", what, w.Code, err, w.Body)
	}
}

// FuzzBody sends one body to every route that takes one.
func FuzzBody(f *testing.F) {
	h, token, routes := fuzzed(f, "POST")
	for _, s := range []string{
		``, `{}`, `{"type":3,"pickup":{"lnglat":[80,13],"address":"a","customer":{"name":"n","mobile":"1"}},"drop":{"address":"b"},"time":"2026-03-14T09:00Z","order_id":"1","auto_assign":true}`,
		`{"task_id":"t","driver_id":"ravi","outcome":"failed","reason":"r","notes":"n"}`,
		`{"tracking_id":"T","user_id":"ravi","dest":[80,13],"desc":"<b>"}`, `tracking_id=T&user_id=ravi`,
		`{"driver_id":"d","properties":{"k":"v"},"lnglat":[80,13],"availability":true}`,
		`{"fixes":[{"lnglat":[80,13],"time":"2026-03-14T09:00:00.5Z","accuracy":5}],"at":"2026-03-14T09:00Z"}`,
		`{"invite_code":123456,"nonce":"n"}`, `{"invite":"x"}`, `{"user_id":"u","email":"a@b.c"}`,
	} {
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, body string, form bool) {
		for _, path := range routes {
			r := httptest.NewRequest("POST", path+"?apikey=k", strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer "+token)
			if form {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			answered(t, path, w)
		}
	})
}

// FuzzQuery sends one query to every route that is read.
func FuzzQuery(f *testing.F) {
	h, token, routes := fuzzed(f, "GET")
	for _, s := range []string{
		"", "page=1&limit=2", "status=created,assigned&driver_id=d&order_id=o", "task_id=t", "driver_id=ravi",
		"position=80,13&availability=true&properties.k=v", "status=1&operator_id=d&tracking_id=t", "after=0",
		"trip_id=t&after=x&limit=5", "a=%zz", "a;b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range routes {
			r := httptest.NewRequest("GET", path, nil)
			r.URL.RawQuery = query
			r.Header.Set("X-Api-Key", "k")
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			answered(t, path, w)
		}
	})
}
