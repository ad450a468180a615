package httpadapter_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// BenchmarkHandler is what a call costs, over the memory store and without a network.
func BenchmarkHandler(b *testing.B) {
	clock := &fakeClock{t: time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)}
	svc, err := tracking.New(memory.New(), &tracking.Options{Logger: quiet(), Now: clock.Now})
	if err != nil {
		b.Fatal(err)
	}
	h, err := httpadapter.New(svc, &httpadapter.Options{
		Keys: map[string]httpadapter.Principal{"k": {}}, Logger: quiet(),
	})
	if err != nil {
		b.Fatal(err)
	}
	inv, err := svc.InviteDriver(b.Context(), tracking.NewInvite{DriverID: "ravi"})
	if err != nil {
		b.Fatal(err)
	}
	joined, err := svc.Join(b.Context(), tracking.JoinRequest{Token: inv.Token})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := svc.SetAvailability(b.Context(), "ravi", true, time.Time{}); err != nil {
		b.Fatal(err)
	}
	call := func(b *testing.B, method, target, body string) string {
		b.Helper()
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.Header.Set("X-Api-Key", "k")
		r.Header.Set("Authorization", "Bearer "+joined.Token)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != 200 {
			b.Fatalf("%s %s: %d %s", method, target, w.Code, w.Body)
		}
		return w.Body.String()
	}
	const create = `{"type":3,"pickup":{"lnglat":[80.26,13],"address":"Depot"},"drop":{"lnglat":[80.27,13.08],"address":"12 Beach Road",` +
		`"customer":{"name":"Asha","mobile":"+91 98"}},"order_id":"#1001","notes":"Ring twice","time":"2026-03-14T15:30+05:30"}`
	var made struct {
		Data struct{ Task struct{ Task_ID string } }
	}
	if err := json.Unmarshal([]byte(call(b, "POST", "/v1/task/create", create)), &made); err != nil {
		b.Fatal(err)
	}
	for range 99 {
		call(b, "POST", "/v1/task/create", create)
	}
	for _, of := range []struct{ name, method, target, body string }{
		{"get", "GET", "/v1/task?task_id=" + made.Data.Task.Task_ID, ""},
		{"list", "GET", "/v1/task/list?limit=20&status=created,assigned", ""},
		{"create", "POST", "/v1/task/create", create},
		{
			"save driver", "POST", "/v1/users/driver",
			`{"driver_id":"ravi","name":"Ravi Kumar","mobile":"+91 44","email":"r@example.com","properties":{"zone":"1"}}`,
		},
	} {
		b.Run(of.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call(b, of.method, of.target, of.body)
			}
		})
	}
	b.Run("100 fixes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var fixes []string
			for range 100 {
				clock.Advance(time.Second)
				fixes = append(fixes,
					fmt.Sprintf(`{"lnglat":[80.2571,13.0102],"time":%q,"accuracy":8,"speed":7.2,"bearing":74}`,
						clock.Now().Format(time.RFC3339)))
			}
			call(b, "POST", "/v1/driver/fixes", `{"fixes":[`+strings.Join(fixes, ",")+`]}`)
		}
	})
}
