package httpadapter_test

import (
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// The description is a page for people too, beside the one for programs and under any prefix.
func TestDocs(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) { ho.Prefix = "/delivery" })
	r := s.do("GET", "/delivery/v1/docs", "")
	if r.status != 200 || r.header.Get("Content-Type") != "text/html; charset=utf-8" ||
		!strings.Contains(r.body, `<a href="openapi.json">`) || !strings.Contains(r.body, "/v1/task/create") {
		t.Errorf("served: %d %v\n%.500s", r.status, r.header, r.body)
	}
	if policy := r.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") ||
		strings.Contains(policy, "script-src") {
		t.Errorf("the policy is %s", policy)
	}
}
