package e2e_test

import (
	"bytes"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

const openapiFile = "../../openapi.json"

// TestRecordedExchanges holds everything that the adapter's own tests were answered to the
// description. They note it in the folder that TRACKING_EXCHANGES names.
func TestRecordedExchanges(t *testing.T) {
	dir := os.Getenv("TRACKING_EXCHANGES")
	if dir == "" {
		if os.Getenv("TRACKING_LONG") == "1" {
			t.Fatal("TRACKING_EXCHANGES is not set")
		}
		t.Skip("TRACKING_EXCHANGES is not set: run the tests of httpadapter with it first")
	}
	c, err := newChecker(openapiFile)
	if err != nil {
		t.Fatal(err)
	}
	total, wrong, seen := 0, 0, map[string]int{}
	if err := readExchanges(dir, func(e exchange) {
		total++
		operation, err := c.check(e)
		seen[operation]++
		if err != nil {
			if wrong++; wrong <= 50 {
				t.Errorf("%v\n%v", e, err)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if total == 0 {
		t.Fatalf("%s holds no exchange", dir)
	}
	t.Logf("%d of %d exchanges are as described", total-wrong, total)
	var missing []string
	for path, item := range c.doc.Paths.Map() {
		for method := range item.Operations() {
			if seen[method+" "+path] == 0 {
				missing = append(missing, method+" "+path)
			}
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("no test of the adapter calls %q", missing)
	}
}

// Every operation of the description works and fails as described.
func TestScenario(t *testing.T) {
	s := newScenario(t)
	s.run()
	var untried []string
	for path, item := range s.c.doc.Paths.Map() {
		for method, op := range item.Operations() {
			name := method + " " + path
			if s.worked[name] == 0 {
				untried = append(untried, name+" has not worked")
			}
			// opening an invite's page can fail only by a fault of ours
			if s.failed[name] == 0 && op.OperationID != "joinPage" {
				untried = append(untried, name+" has not failed")
			}
		}
	}
	slices.Sort(untried)
	for _, u := range untried {
		t.Error(u)
	}
	t.Logf("%d exchanges are as described", len(s.kept))
}

// planted is a change to an exchange that the checker must find.
type planted struct {
	name      string
	operation string // whose first answer with this status is changed
	status    int
	change    func(*exchange)
	want      string // in what it says
}

func replaced(old, with string) func(*exchange) {
	return func(e *exchange) {
		b := bytes.Replace(e.Body, []byte(old), []byte(with), 1)
		if bytes.Equal(b, e.Body) {
			panic("nothing to replace: " + old + " in " + string(e.Body))
		}
		e.Body = b
	}
}

func header(name, value string) func(*exchange) {
	return func(e *exchange) {
		e.Header = e.Header.Clone()
		if e.Header.Del(name); value != "" {
			e.Header.Set(name, value)
		}
	}
}

// The checker finds wrong answers.
func TestPlantedAnswersAreFound(t *testing.T) {
	s := newScenario(t)
	s.run()
	status := func(n int) func(*exchange) { return func(e *exchange) { e.Status = n } }
	for _, p := range []planted{
		{
			"a member too many", "GET /v1/task", 200, replaced(`"notes":`, `"tenant":"a","notes":`),
			`property "tenant" is unsupported`,
		},
		{
			"a contact where none is shown", "GET /v1/task", 200,
			replaced(`"address":`, `"customer":{"name":"Asha","mobile":""},"address":`),
			`property "customer" is unsupported`,
		},
		{"a member too few", "GET /v1/task", 200, replaced(`"outcome":"",`, ``), `property "outcome" is missing`},
		{"a member of another type", "GET /v1/task", 200, replaced(`"type":3`, `"type":"3"`), `/data/task/type: `},
		{"another word", "GET /v1/task", 200, replaced(`"status":"created"`, `"status":"new"`), `/data/task/status: `},
		{"another message", "GET /v1/task", 200, replaced(`"message":"Task"`, `"message":"task"`), `/message: `},
		{"no success", "GET /v1/task", 200, replaced(`"success":true`, `"success":false`), `/success: `},
		{"time without milliseconds", "GET /v1/task", 200, replaced(`.000Z"`, `Z"`), `/data/task/time: `},
		{
			"three coordinates", "GET /v1/task", 200, replaced(`[80.26,13]`, `[80.26,13,0]`),
			`/data/task/pickup/lnglat: `,
		},
		{"null for a list", "GET /v1/task/list", 200, func(e *exchange) {
			e.Body = []byte(`{"message":"Task List","success":true,"data":{"task_list":null,"has_more":false}}`)
		}, `/data/task_list: `},
		{
			"data too many", "POST /v1/assign_trip", 200, replaced(`"success":true`, `"success":true,"data":{}`),
			`property "data" is unsupported`,
		},
		{
			"a position with a blank", "GET /v1/trips", 200, replaced(`"starts_at":"13.01,`, `"starts_at":"13.01, `),
			`/data/trips/0/starts_at: `,
		},
		{
			"an invite code that is no integer", "POST /v1/invite_user", 200,
			replaced(`"invite_code":`, `"invite_code":0.`), `/data/invite_code: `,
		},
		{"an unknown outcome", "POST /v1/driver/fixes", 200, replaced(`"invalid"`, `"bad"`), `/data/outcomes/1: `},
		{
			"a mobile number on a public link", "GET /track/{token}/state", 200,
			replaced(`"order_id":`, `"mobile":"+91","order_id":`), `/data/tracking: property "mobile" is unsupported`,
		},
		{
			"the same in a stream", "GET /track/{token}/live", 200,
			replaced(`"order_id":`, `"mobile":"+91","order_id":`), `event state: /: property "mobile" is unsupported`,
		},
		{
			"a feed that begins anew without its lists", "GET /v1/driver/notifications", 200,
			replaced(`"reset":false`, `"reset":true`), `property "task_list" is missing`,
		},
		{
			"personal data in an event", "GET /v1/events", 200, replaced(`"data":{}`, `"data":{"mobile":"+91"}`),
			`/data/events/0/data: property "mobile" is unsupported`,
		},
		{"a status that is not described", "GET /v1/task", 404, status(410), `status 410 is not described`},
		{
			"a code that is not the status's", "GET /v1/task", 404, replaced(`"not_found"`, `"conflict"`),
			`/error/code: `,
		},
		{"a code that there is not", "GET /v1/task", 404, replaced(`"not_found"`, `"gone"`), `/error/code: `},
		{
			"a failure without request_id", "GET /v1/task", 404, replaced(`"request_id"`, `"request"`),
			`property "request_id" is missing`,
		},
		{
			"a field on an answer about the key", "GET /v1/task", 401, replaced(`"code":`, `"field":"apikey","code":`),
			`/error: `,
		},
		{"no Retry-After", "GET /healthz", 503, header("Retry-After", ""), `response header "Retry-After" missing`},
		{"Retry-After of 0", "GET /healthz", 503, header("Retry-After", "0"), `response header "Retry-After"`},
		{"an answer that may be kept", "GET /v1/task", 200, header("Cache-Control", ""), `header Cache-Control`},
		{
			"an answer whose type may be guessed", "GET /v1/task", 200, header("X-Content-Type-Options", ""),
			`header X-Content-Type-Options`,
		},
		{
			"another content type", "GET /v1/task", 200, header("Content-Type", "application/json"),
			`content type "application/json" is not described`,
		},
		{
			"JSON for a page", "GET /track/{token}", 200, header("Content-Type", "application/json; charset=utf-8"),
			`content type "application/json; charset=utf-8" is not described`,
		},
		{
			"a stream of another type", "GET /track/{token}/live", 200,
			header("Content-Type", "text/plain; charset=utf-8"),
			`content type "text/plain; charset=utf-8" is not described`,
		},
		{"204 with a body", "GET /track/{token}/live", 204, func(e *exchange) {
			e.Body = []byte("x")
		}, `204 has a body`},
		{"no Allow", "", 405, header("Allow", ""), `header Allow`},
		{"Allow with a method too many", "", 405, func(e *exchange) {
			header("Allow", e.Header.Get("Allow")+", PATCH")(e)
		}, `header Allow`},
		{"an unknown path that is answered", "GET /v1/task", 200, func(e *exchange) {
			e.URL = "/v1/other"
		}, `status 200 is not described`},
		{"a wrong request that is answered", "POST /v1/task/create", 200, func(e *exchange) {
			e.RequestBody = bytes.Replace(e.RequestBody, []byte(`"type":3`), []byte(`"type":4`), 1)
		}, `the request is not as described: request body has an error: doesn't match schema: /type: `},
		{"a wrong query that is answered", "GET /v1/task/list", 200, func(e *exchange) {
			e.URL = "/v1/task/list?limit=1001"
		}, `parameter "limit" in query`},
		{"a required parameter that is absent", "GET /v1/task", 200, func(e *exchange) {
			e.URL = "/v1/task"
		}, `parameter "task_id" in query`},
		{"half a body", "GET /v1/task", 200, func(e *exchange) {
			e.Body = e.Body[:len(e.Body)/2]
		}, `failed to decode response body`},
	} {
		t.Run(p.name, func(t *testing.T) {
			i := slices.IndexFunc(s.kept, func(e exchange) bool {
				operation, _ := s.c.check(e)
				return operation == p.operation && e.Status == p.status && e.Method != http.MethodHead
			})
			if i < 0 {
				t.Fatal("the scenario has no such answer")
			}
			e := s.kept[i]
			p.change(&e)
			if _, err := s.c.check(e); err == nil || !strings.Contains(err.Error(), p.want) {
				t.Errorf("%v, want %q: %v\n%s", err, p.want, e, e.Body)
			}
		})
	}
}
