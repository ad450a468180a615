package trace_test

import (
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking/examples/courier/internal/trace"
)

func FuzzReadGPX(f *testing.F) {
	f.Add(`<gpx><trk><trkseg><trkpt lat="2" lon="1"><time>1970-01-01T00:00:01Z</time><speed>3</speed><course>359</course></trkpt></trkseg></trk></gpx>`)
	f.Add(`<?xml version="1.0" encoding="latin1"?><gpx><trk><trkseg><trkpt lat="91" lon="-0"><time>9999-12-31T23:59:59.9999Z</time></trkpt><trkpt/></trkseg></trk></gpx>`)
	f.Fuzz(func(t *testing.T, text string) {
		if tr, err := trace.ReadGPX(strings.NewReader(text)); err == nil {
			check(t, tr)
		}
	})
}

func FuzzReadJSON(f *testing.F) {
	f.Add(`[{"point":"POINT(11.564388282625075 48.16350662940509)","time":"2014-09-10 06:54:07+0200","id":"\\x0001"}]`)
	f.Add(`[{"point":"POINT(1 2)","time":"1970-01-01 02:00:01+0200"},{"point":"POINT(1 2)","time":7.25},{"point":null,"time":[]}]`)
	f.Fuzz(func(t *testing.T, text string) {
		if tr, err := trace.ReadJSON(strings.NewReader(text)); err == nil {
			check(t, tr)
		}
	})
}

// check holds a trace to what its documentation says.
func check(t *testing.T, tr trace.Trace) {
	t.Helper()
	if n := len(tr.Points) + tr.NoPosition + tr.NoTime + tr.Repeated; n != tr.Total {
		t.Errorf("%d usable, %d without position, %d without time and %d repeated are %d, not the %d points of the file",
			len(tr.Points), tr.NoPosition, tr.NoTime, tr.Repeated, n, tr.Total)
	}
	for i, p := range tr.Points {
		switch {
		case !p.LngLat.Valid():
			t.Errorf("point %d is at the impossible place %v", i, p.LngLat)
		case p.Time.IsZero() || p.Time.Nanosecond()%1e6 != 0:
			t.Errorf("point %d has the time %v, want whole milliseconds", i, p.Time)
		case i > 0 && !p.Time.After(tr.Points[i-1].Time):
			t.Errorf("point %d at %v is not after the one before it at %v", i, p.Time, tr.Points[i-1].Time)
		case p.Speed.Known && p.Speed.Value < 0, p.Bearing.Known && (p.Bearing.Value < 0 || p.Bearing.Value > 360):
			t.Errorf("point %d has the speed %v and the bearing %v", i, p.Speed, p.Bearing)
		}
	}
}
