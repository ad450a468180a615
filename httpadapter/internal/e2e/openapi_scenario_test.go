package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// scenario drives a server over HTTP and holds each answer to the description.
type scenario struct {
	*testing.T
	c      *checker
	url    string
	sick   error          // what /healthz says
	worked map[string]int // successes by operation
	failed map[string]int // failures by operation
	kept   []exchange
}

const scenarioKey = "scenario-key"

func newScenario(t *testing.T) *scenario {
	t.Helper()
	c, err := newChecker(openapiFile)
	if err != nil {
		t.Fatal(err)
	}
	s := &scenario{T: t, c: c, worked: map[string]int{}, failed: map[string]int{}}
	logger := slog.New(slog.DiscardHandler)
	svc, err := tracking.New(memory.New(), &tracking.Options{Logger: logger, Geocoder: oneStreet{}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpadapter.New(svc, &httpadapter.Options{
		Keys: map[string]httpadapter.Principal{scenarioKey: {}}, BaseURL: "https://track.example", Logger: logger,
		Health: func(context.Context) error { return s.sick }, Site: web.Site{ShowProof: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		svc.Close(t.Context())
		srv.Close()
	})
	s.url = srv.URL
	return s
}

// oneStreet is a geocoder that knows Beach Road alone.
type oneStreet struct{}

func (oneStreet) Point(_ context.Context, address string) (tracking.LngLat, error) {
	if address != "Beach Road" {
		return tracking.LngLat{}, tracking.ErrNotFound
	}
	return tracking.LngLat{Lng: 80.28, Lat: 13.06}, nil
}

func (oneStreet) Address(context.Context, tracking.LngLat) (string, error) {
	return "", tracking.ErrNotFound
}

// call makes one call, and checks that its answer has this status and is as described. Headers are
// "Name: value".
func (s *scenario) call(status int, method, target, body string, headers ...string) exchange {
	s.Helper()
	ctx, stop := context.WithTimeout(s.Context(), time.Minute) // only keeps a broken test from hanging
	defer stop()
	req, err := http.NewRequestWithContext(ctx, method, s.url+target, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if len(body) > 256<<10 { // else who is refused may find the connection reset while still sending, and not see why
		req.Header.Set("Expect", "100-continue")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	var b []byte
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		b = firstEvent(res.Body)
	} else if b, err = io.ReadAll(res.Body); err != nil {
		s.Fatal(err)
	}
	e := exchange{s.Name(), method, target, req.Header, []byte(body), res.StatusCode, res.Header, b, false}
	if e.Status != status {
		s.Errorf("%v, want %d\n%s", e, status, e.Body)
	}
	operation, err := s.c.check(e)
	if err != nil {
		s.Errorf("%v\n%v", e, err)
	}
	if e.Status < 300 {
		s.worked[operation]++
	} else {
		s.failed[operation]++
	}
	s.kept = append(s.kept, e)
	return e
}

// firstEvent reads a stream up to the end of its first event.
func firstEvent(r io.Reader) (b []byte) {
	part := make([]byte, 4096)
	for {
		n, err := r.Read(part)
		b = append(b, part[:n]...)
		if i := bytes.Index(b, []byte("data: ")); err != nil || i >= 0 && bytes.Contains(b[i:], []byte("\n\n")) {
			return b
		}
	}
}

// app calls with the application's key.
func (s *scenario) app(status int, method, target, body string, headers ...string) exchange {
	s.Helper()
	return s.call(status, method, target, body, append(headers, "X-Api-Key: "+scenarioKey)...)
}

// text is a text within the data of an answer.
func (s *scenario) text(e exchange, path ...string) string {
	s.Helper()
	var v struct{ Data any }
	if err := json.Unmarshal(e.Body, &v); err != nil {
		s.Fatalf("%v: %v", e, err)
	}
	at := v.Data
	for _, p := range path {
		m, _ := at.(map[string]any)
		at = m[p]
	}
	t, ok := at.(string)
	if !ok {
		s.Fatalf("%v: no %v in %s", e, path, e.Body)
	}
	return t
}

func (s *scenario) task(extra string) string {
	s.Helper()
	return s.text(s.app(200, "POST", "/v1/task/create",
		`{"type":3,"pickup":{"lnglat":[80.26,13.0]},"drop":{"address":"12 Beach Road","customer":{"name":"Asha"}},"order_id":"#1"`+extra+`}`), "task", "task_id")
}

func (s *scenario) driver(id string) (token, ingest string) {
	s.Helper()
	link := s.text(s.app(200, "POST", "/v1/invite_user", fmt.Sprintf(`{"user_id":%q,"name":"Ravi Kumar"}`, id)), "url")
	joined := s.call(200, "POST", "/v1/driver/join",
		fmt.Sprintf(`{"invite":%q}`, link[strings.LastIndex(link, "/")+1:]))
	u, err := url.Parse(s.text(joined, "ingest_url"))
	if err != nil {
		s.Fatal(err)
	}
	return s.text(joined, "token"), u.Path
}

// run goes through every operation of the description, with a success and the failures that are
// typical of it.
func (s *scenario) run() {
	s.T.Helper()
	s.publicRoutes()
	token, ingest := s.driver("ravi")
	as := func(status int, method, target, body string, headers ...string) exchange {
		s.Helper()
		return s.call(status, method, target, body, append(headers, "Authorization: Bearer "+token)...)
	}
	s.dutyAndFixes(as, ingest)
	s.tasks(as)
	s.triesAgain(as)
	s.takesBack(as)
	s.proof(as)
	s.trips(as)
	s.drivers()
	s.erasures()
	s.notices(as)
	s.wrongInput()
	s.anyPath()
}

type caller func(status int, method, target, body string, headers ...string) exchange

func (s *scenario) publicRoutes() {
	s.Helper()
	s.call(200, "GET", "/v1/openapi.json", "")
	s.call(400, "GET", "/v1/openapi.json?a=%zz", "")
	s.call(200, "HEAD", "/v1/openapi.json", "")
	s.call(200, "GET", "/healthz", "")
	s.sick = errors.New("disk")
	s.call(503, "GET", "/healthz", "")
	s.sick = nil
	s.call(200, "GET", "/join/anything", "")
	for _, below := range []string{"", "/state", "/live"} {
		s.call(404, "GET", "/track/unknown"+below, "")
	}
	s.call(404, "POST", "/v1/driver/join", `{"invite":"unknown"}`)
	for range 5 {
		s.call(404, "POST", "/v1/driver/join", `{"invite_code":"000000"}`)
	}
	s.call(429, "POST", "/v1/driver/join", `{"invite_code":"000000"}`)
	s.app(200, "POST", "/v1/invite_user", "")
	s.app(400, "POST", "/v1/invite_user", `{"user_id":""}`)
}

func (s *scenario) dutyAndFixes(as caller, ingest string) {
	s.Helper()
	as(200, "GET", "/v1/driver/me", "")
	as(200, "POST", "/v1/driver/availability", `{"availability":true}`)
	as(400, "POST", "/v1/driver/availability", `{"availability":"true"}`)
	now := time.Now().UTC().Format(time.RFC3339Nano)
	as(200, "POST", "/v1/driver/fixes",
		fmt.Sprintf(`{"fixes":[{"lnglat":[80.25,13.01],"time":%q,"accuracy":5,"speed":null,"bearing":74.5,"battery":1},null]}`, now))
	as(413, "POST", "/v1/driver/fixes", `{"fixes":[`+strings.Repeat("1,", 1000)+`1]}`)
	as(400, "POST", "/v1/driver/fixes", `{}`)
	as(200, "GET", "/v1/driver/phone", "")
	as(200, "POST", "/v1/driver/push",
		fmt.Sprintf(`{"endpoint":"https://push.example/1","keys":{"p256dh":%q,"auth":%q}}`,
			"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
			strings.Repeat("A", 22)))
	as(400, "POST", "/v1/driver/push", `{"endpoint":"https://push.example/1","keys":{"p256dh":"AAAA","auth":"AAAA"}}`)
	as(200, "POST", "/v1/driver/push/delete", `{"endpoint":"https://push.example/1"}`)
	as(400, "POST", "/v1/driver/push/delete", `{}`)
	s.call(200, "GET", ingest+"?lat=13.01&lon=80.26&timestamp="+fmt.Sprint(time.Now().Unix()), "")
	s.call(200, "GET", ingest+".properties", "")
	s.call(200, "POST", ingest, `{"_type":"location","lat":13.01,"lon":80.26,"tst":`+fmt.Sprint(time.Now().Unix())+`}`,
		"Content-Type: application/json")
	s.call(401, "GET", "/ingest/unknown", "")
	s.call(401, "POST", "/ingest/unknown", "")
	s.call(413, "POST", ingest, strings.Repeat(" ", 1<<20+1), "Content-Type: application/json")
}

func (s *scenario) trips(as caller) {
	s.Helper()
	s.app(200, "POST", "/v1/assign_trip",
		`{"tracking_id":"van-7","user_id":"ravi","message":"Go","dest":[80.26,13.0],"desc":"<b>Gate 4</b>"}`)
	s.app(200, "POST", "/v1/assign_trip", "tracking_id=van-8&user_id=ravi&dest=Central+Station",
		"Content-Type: application/x-www-form-urlencoded")
	s.app(200, "POST", "/v1/assign_trip?tracking_id=van-9&user_id=ravi&message=Go", "")
	s.app(404, "POST", "/v1/assign_trip?tracking_id=van-9&user_id=unknown", "")
	s.app(400, "POST", "/v1/assign_trip?tracking_id=van-9", "")
	as(200, "GET", "/v1/driver/requests", "")

	trip := s.text(as(200, "POST", "/v1/driver/trips", `{"tracking_id":"van-7","lnglat":[80.25,13.01]}`), "trip", "_id")
	as(400, "POST", "/v1/driver/trips", `{"tracking_id":"a,b"}`)
	link := strings.TrimPrefix(s.text(s.app(200, "GET", "/v1/trips/trackingurl/"+trip, ""), "webUrl"),
		"https://track.example")
	s.app(404, "GET", "/v1/trips/trackingurl/unknown", "")
	s.call(200, "GET", link+"/state", "")
	s.app(200, "GET", "/v1/trips/"+trip, "")
	s.app(404, "GET", "/v1/trips/unknown", "")
	as(200, "POST", "/v1/driver/trips/"+trip+"/stop", "")
	as(409, "POST", "/v1/driver/trips/"+trip+"/discard", "")
	other := s.text(as(200, "POST", "/v1/driver/trips", `{"tracking_id":"van-8"}`), "trip", "_id")
	as(200, "POST", "/v1/driver/trips/"+other+"/discard", "")
	as(409, "POST", "/v1/driver/trips/"+other+"/stop", "")
	as(200, "GET", "/v1/driver/trips?status=2&limit=1&tracking_id=van-7", "")
	as(400, "GET", "/v1/driver/trips?status=4", "")
	s.call(200, "GET", link+"/state", "")
	s.app(200, "GET", "/v1/trips/"+trip, "")
	s.app(200, "GET", "/v1/trips?operator_id=ravi&status=0", "")
	s.app(400, "GET", "/v1/trips?page=0", "")
	s.app(200, "GET", "/v1/triphistory/"+trip, "")
	s.app(404, "GET", "/v1/triphistory/unknown", "")
	s.app(200, "POST", "/v1/trips/trackingurl/revoke", `{"trip_id":"`+trip+`"}`)
	s.app(404, "POST", "/v1/trips/trackingurl/revoke", `{"trip_id":"unknown"}`)
}

func (s *scenario) drivers() {
	s.Helper()
	s.app(200, "POST", "/v1/users/driver",
		`{"driver_id":"meena","availability":true,"lnglat":[179.9,-0.5],"properties":{"zipcode":"600004","none":null},"email":null}`)
	s.app(400, "POST", "/v1/users/driver", `{"driver_id":"me,ena"}`)
	s.app(200, "GET", "/v1/users/driver?driver_id=meena", "")
	s.app(404, "GET", "/v1/users/driver?driver_id=unknown", "")
	s.app(200, "GET", "/v1/users/drivers?position=-179.9,1e-3&availability=true&properties.zipcode=600004&limit=5", "")
	s.app(200, "GET", "/v1/users/drivers", "")
	s.app(400, "GET", "/v1/users/drivers?availability=yes", "")
	s.app(200, "GET", "/v1/events?driver_id=ravi&limit=1000", "")
	s.app(200, "GET", "/v1/events", "")
	s.app(404, "GET", "/v1/events?after=unknown", "")
	s.app(200, "GET", "/v1/live", "")
	s.app(200, "GET", "/v1/live", "", "Last-Event-ID: unknown")
	s.app(200, "POST", "/v1/users/driver/delete", `{"driver_id":"meena"}`)
	s.app(404, "POST", "/v1/users/driver/delete", `{"driver_id":"meena"}`)
	s.app(404, "POST", "/v1/users/driver/revoke", `{"driver_id":"meena"}`)
}

func (s *scenario) erasures() {
	s.Helper()
	task := s.text(s.app(200, "POST", "/v1/task/create",
		`{"type":2,"drop":{"address":"7 Mount Road","customer":{"name":"Uma","mobile":"+91 44 700 700"}}}`), "task", "task_id")
	s.app(409, "POST", "/v1/contact/erase", `{"mobile":"+91 44 700 700"}`)
	s.app(400, "POST", "/v1/contact/erase", `{"mobile":"nobody"}`)
	s.app(200, "POST", "/v1/task/cancel", `{"task_id":"`+task+`"}`)
	s.app(200, "POST", "/v1/contact/erase", `{"mobile":"+91 44 700 700"}`)
	s.app(200, "GET", "/v1/task?task_id="+task, "")
	s.app(200, "GET", "/v1/events?task_id="+task, "")
	s.app(409, "GET", "/v1/task/trackingurl/"+task, "")
	s.app(200, "POST", "/v1/task/delete", `{"task_id":"`+task+`"}`)
	s.app(404, "POST", "/v1/task/delete", `{"task_id":"`+task+`"}`)
	s.app(400, "POST", "/v1/task/delete", `{}`)
	s.app(200, "POST", "/v1/events/replay", `{"ids":["none"]}`)
	s.app(400, "POST", "/v1/events/replay", `{"ids":[]}`)
}

func (s *scenario) notices(as caller) {
	s.Helper()
	as(200, "GET", "/v1/driver/notifications", "")
	as(200, "GET", "/v1/driver/notifications?after=999999", "")
	as(400, "GET", "/v1/driver/notifications?after=x", "")
	as(200, "GET", "/v1/driver/notifications", "", "Accept: text/event-stream")
	as(200, "GET", "/v1/driver/notifications", "", "Accept: text/event-stream", "Last-Event-ID: 999999")
	other, _ := s.driver("lost")
	s.call(200, "GET", "/v1/driver/notifications?after=999999", "", "Authorization: Bearer "+other)
	s.app(200, "POST", "/v1/users/driver/revoke", `{"driver_id":"ravi"}`)
	as(401, "GET", "/v1/driver/me", "")
}

// wrongInput tries every operation without a key or token, with a malformed query, one that is too
// long, and a body of another type.
func (s *scenario) wrongInput() {
	s.Helper()
	for path, item := range s.c.doc.Paths.Map() {
		if !strings.HasPrefix(path, "/v1/") {
			continue
		}
		target := somewhere(path)
		for method, op := range item.Operations() {
			if path == "/v1/session" && method == "POST" {
				continue // it is for who has no key yet
			}
			if op.Responses.Status(401) != nil {
				s.call(401, method, target, "")
				s.call(401, method, target, "", "X-Api-Key: wrong", "Authorization: Bearer wrong")
			}
			s.call(400, method, target+"?a=1&a=1", "")
			s.call(414, method, target+"?a="+strings.Repeat("x", 8<<10), "")
			if op.RequestBody != nil && !strings.HasPrefix(path, "/v1/driver/") {
				s.app(415, method, target, "x", "Content-Type: text/plain")
				limit := 64 << 10
				if path == "/v1/task/batch" {
					limit = 2 << 20
				}
				s.app(413, method, target, strings.Repeat(" ", limit+1))
			}
		}
	}
}

// somewhere is a path with x for each parameter.
func somewhere(path string) string { return regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "x") }

// anyPath tries what every path answers, and paths that there are not.
func (s *scenario) anyPath() {
	s.Helper()
	for path := range s.c.doc.Paths.Map() {
		target := somewhere(path)
		s.call(204, "OPTIONS", target, "")
		s.call(405, "PATCH", target, "")
	}
	for _, path := range []string{"/v1/nothing", "/v1/task/", "/V1/task"} {
		s.call(404, "GET", path, "")
		s.call(404, "POST", path, "{}")
	}
}
