package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/courier/internal/trace"
	"github.com/seed-8aba7b13/tracking/httpadapter/ingest"
	"github.com/seed-8aba7b13/tracking/store/storetest/declared"
)

// notDriven are the dialects of apps that courier cannot be, each with the reason.
var notDriven = map[ingest.Dialect]string{
	ingest.Unknown: "it is no app's",
	ingest.Colota:  "nobody has watched yet when it sends again what was not taken",
}

// Courier can be an app of every dialect but those listed; what it then sends is read as that
// dialect, and it takes the answer for a yes.
func TestNoDialectIsForgotten(t *testing.T) {
	for _, dialect := range declared.Values(t, "../../httpadapter/ingest", "Dialect") {
		reason, excused := notDriven[ingest.Dialect(dialect)]
		switch can := slices.Contains(appNames(), dialect); {
		case can && excused:
			t.Errorf("courier can be an app of the dialect %s, and is listed as one that cannot: %s", dialect, reason)
		case !can && !excused:
			t.Errorf("courier cannot be an app of the dialect %s: see apps, or say why in the list notDriven", dialect)
		}
		if excused {
			continue
		}
		now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
		p := gpsPhoneOf(t, dialect, 0, func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			m := ingest.Decode(ingest.Request{
				Method: r.Method, Query: r.URL.RawQuery, Header: r.Header, Body: body,
			}, now)
			if string(m.Dialect) != dialect || len(m.Fixes) != 1 {
				t.Errorf("what courier sends as %s is read as %s, with %d fixes", dialect, m.Dialect, len(m.Fixes))
			}
			w := httptest.NewRecorder()
			m.Answer.Write(w)
			return w.Result(), nil
		})
		point := trace.Point{
			LngLat: tracking.LngLat{Lng: 11.5, Lat: 48}, Time: now,
			Speed: tracking.Known(12), Bearing: tracking.Known(90),
		}
		outcomes, err := p.send(t.Context(), []trace.Point{point})
		if err != nil || !slices.Equal(outcomes, []tracking.FixOutcome{taken}) {
			t.Errorf("%s: outcomes %v, error %v", dialect, outcomes, err)
		}
	}
}
