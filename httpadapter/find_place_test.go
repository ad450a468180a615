package httpadapter_test

import (
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// TestFindPlaceOverHTTP: where an address is, for those who may make tasks.
func TestFindPlaceOverHTTP(t *testing.T) {
	s := newServer(t, func(o *tracking.Options, _ *httpadapter.Options) { o.Geocoder = oneAddress{} })
	r := s.app("POST", "/v1/geocode", `{"address":"Anna Salai 12"}`)
	if want := `{"message":"Place","success":true,"data":{"lnglat":[80.25,13.06]}}` + "\n"; r.body != want {
		t.Errorf("got %s, want %s", r.body, want)
	}
	s.check("unknown", s.app("POST", "/v1/geocode", `{"address":"elsewhere"}`), 404, "address")
	s.check("none", s.app("POST", "/v1/geocode", `{"address":""}`), 400, "address")
	s.check("without a geocoder", newServer(t).app("POST", "/v1/geocode", `{"address":"Anna Salai 12"}`), 409, "")
}
