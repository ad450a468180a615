package trace_test

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/courier/internal/trace"
)

// recorded finds a file of the test data.
func recorded(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("TRACKING_DATA")
	if dir == "" {
		if os.Getenv("TRACKING_LONG") == "1" {
			t.Fatal("TRACKING_DATA must name the folder of test data when TRACKING_LONG=1")
		}
		t.Skip("TRACKING_DATA does not name the folder of test data")
	}
	return filepath.Join(dir, name)
}

// facts of a trace, without its points.
type facts struct {
	Usable, Total, NoPosition, NoTime, Repeated, Backward int
	Seconds                                               float64
	Metres                                                float64 // rounded to 10
}

func of(tr trace.Trace) facts {
	f := facts{Usable: len(tr.Points), Total: tr.Total, NoPosition: tr.NoPosition, NoTime: tr.NoTime,
		Repeated: tr.Repeated, Backward: tr.Backward,
		Seconds: tr.Duration().Seconds()}
	for i := 1; i < len(tr.Points); i++ {
		f.Metres += tracking.Distance(tr.Points[i-1].LngLat, tr.Points[i].LngLat)
	}
	f.Metres = math.Round(f.Metres/10) * 10
	return f
}

func TestRecordedTraces(t *testing.T) {
	want := map[string]facts{
		"barefoot/munich-1hz.json":             {Usable: 1194, Total: 1194, Seconds: 1195, Metres: 13650},
		"barefoot/munich-15s.json":             {Usable: 80, Total: 80, Seconds: 1185, Metres: 13370},
		"barefoot/dresden-1-samples.json":      {Usable: 817, Total: 817, Seconds: 816, Metres: 3350},
		"barefoot/dresden-2-samples.json":      {Usable: 684, Total: 684, Seconds: 683, Metres: 3060},
		"barefoot/dresden-3-samples.json":      {Usable: 761, Total: 761, Seconds: 760, Metres: 3390},
		"gpxpy/Mojstrovka.gpx":                 {Usable: 1, Total: 184, Repeated: 183},
		"gpxpy/around-visnjan-with-car.gpx":    {Usable: 104, Total: 104, Seconds: 514, Metres: 2730},
		"gpxpy/cerknicko-jezero.gpx":           {Usable: 296, Total: 296, Seconds: 7190, Metres: 13670},
		"gpxpy/korita-zbevnica.gpx":            {Usable: 513, Total: 871, NoTime: 358, Seconds: 13381, Metres: 6280},
		"gpxpy/track-with-extremes.gpx":        {Total: 25, NoTime: 25},
		"gpxpy/track-with-less-sec-time.gpx":   {Usable: 2, Total: 2, Seconds: 0.994},
		"graphhopper/issue-13.gpx":             {Usable: 1, Total: 29, Repeated: 28},
		"graphhopper/issue-70.gpx":             {Usable: 17, Total: 17, Seconds: 960, Metres: 1010},
		"graphhopper/tour3-with-long-edge.gpx": {Usable: 7, Total: 7, Seconds: 57, Metres: 380},
	}
	got := map[string]facts{}
	root := recorded(t, "")
	for _, dir := range []string{"barefoot", "gpxpy", "graphhopper"} {
		err := fs.WalkDir(os.DirFS(root), dir, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || (filepath.Ext(name) != ".gpx" && filepath.Ext(name) != ".json") {
				return err
			}
			tr, err := trace.ReadFile(filepath.Join(root, name))
			if err != nil {
				return err
			}
			got[name] = of(tr)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts of the recorded traces (-want +got):\n%s", diff)
	}
}

func TestRecordedTunnel(t *testing.T) {
	tr, err := trace.ReadFile(recorded(t, "barefoot/munich-1hz.json"))
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2014, 9, 10, 4, 54, 7, 0, time.UTC); !tr.Points[0].Time.Equal(want) {
		t.Errorf("the drive begins at %v, want %v", tr.Points[0].Time, want)
	}
	at, step := 0, 0.0
	for i := 1; i < len(tr.Points); i++ {
		if d := tracking.Distance(tr.Points[i-1].LngLat, tr.Points[i].LngLat); d > step {
			at, step = i, d
		}
	}
	if at != 619 || math.Abs(step-470.4) > 0.1 {
		t.Errorf("the longest step is %.1f m, to point %d; want 470.4 m, to point 619, out of the tunnel", step, at)
	}
}

func TestRead(t *testing.T) {
	at := func(lng, lat float64, ms int64) trace.Point {
		return trace.Point{LngLat: tracking.LngLat{Lng: lng, Lat: lat}, Time: time.UnixMilli(ms).UTC()}
	}
	gpx := func(points string) string {
		return `<?xml version="1.0"?><gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>` +
			points + `</trkseg></trk></gpx>`
	}
	withMotion := at(1, 2, 1000)
	withMotion.Speed, withMotion.Bearing = tracking.Known(12.5), tracking.Known(270)
	tests := []struct {
		name  string
		input string
		want  trace.Trace
	}{
		{"GPX, nothing in it", gpx(""), trace.Trace{}},
		{"GPX, tracks and segments are one trace",
			`<gpx version="1.0"><trk><trkseg><trkpt lat="2" lon="1"><time>1970-01-01T00:00:01Z</time></trkpt></trkseg><trkseg/></trk>` +
				`<trk><trkseg><trkpt lat="4" lon="3"><time>1970-01-01T00:00:02Z</time></trkpt></trkseg></trk></gpx>`,
			trace.Trace{Points: []trace.Point{at(1, 2, 1000), at(3, 4, 2000)}, Total: 2}},
		{"GPX, waypoints and routes are not driven",
			`<gpx version="1.1"><wpt lat="2" lon="1"><time>1970-01-01T00:00:01Z</time></wpt><rte><rtept lat="2" lon="1"><time>1970-01-01T00:00:01Z</time></rtept></rte></gpx>`,
			trace.Trace{}},
		{"GPX, speed and course of 1.0",
			gpx(`<trkpt lat="2" lon="1"><time>1970-01-01T00:00:01Z</time><course>270</course><speed> 12.5 </speed></trkpt>`),
			trace.Trace{Points: []trace.Point{withMotion}, Total: 1}},
		{"GPX, senseless speed and course are unknown",
			gpx(`<trkpt lat="2" lon="1"><time>1970-01-01T00:00:01Z</time><course>361</course><speed>-1</speed></trkpt>`),
			trace.Trace{Points: []trace.Point{at(1, 2, 1000)}, Total: 1}},
		{"GPX, a time deeper inside is another thing's",
			gpx(`<trkpt lat="2" lon="1"><extensions><time>1970-01-01T00:00:09Z</time></extensions></trkpt>`),
			trace.Trace{Total: 1, NoTime: 1}},
		{"GPX, offset, fraction, no zone", gpx(`<trkpt lat="2" lon="1"><time>1970-01-01T01:00:01+01:00</time></trkpt>` +
			`<trkpt lat="2" lon="1"><time>1970-01-01T00:00:02.3456789Z</time></trkpt><trkpt lat="2" lon="1"><time>1970-01-01T00:00:03</time></trkpt>`),
			trace.Trace{Points: []trace.Point{at(1, 2, 1000), at(1, 2, 2345), at(1, 2, 3000)}, Total: 3}},
		{"GPX, unusable points",
			gpx(`<trkpt lat="x" lon="1"><time>1970-01-01T00:00:01Z</time></trkpt><trkpt lon="1"><time>1970-01-01T00:00:01Z</time></trkpt>` +
				`<trkpt lat="91" lon="1"/><trkpt lat="NaN" lon="1"/><trkpt lat="2" lon="1"/><trkpt lat="2" lon="1"><time>yesterday</time></trkpt>`),
			trace.Trace{Total: 6, NoPosition: 4, NoTime: 2}},
		{"GPX, a clock that stands and steps back",
			gpx(`<trkpt lat="2" lon="1"><time>1970-01-01T00:00:05Z</time></trkpt><trkpt lat="3" lon="1"><time>1970-01-01T00:00:05.0004Z</time></trkpt>` +
				`<trkpt lat="4" lon="1"><time>1970-01-01T00:00:01Z</time></trkpt>`),
			trace.Trace{Points: []trace.Point{at(1, 4, 1000), at(1, 2, 5000)}, Total: 3, Repeated: 1, Backward: 1}},
		{"GPX in Latin-1 after a byte order mark and blanks",
			"\ufeff\n <?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><gpx><trk><name>M\xfcnchen</name><trkseg>" +
				`<trkpt lat="2" lon="1"><time>1970-01-01T00:00:01Z</time></trkpt></trkseg></trk></gpx>`,
			trace.Trace{Points: []trace.Point{at(1, 2, 1000)}, Total: 1}},
		{"JSON, nothing in it", `[]`, trace.Trace{}},
		{"JSON, written times",
			`[{"point":"POINT(1 2)","time":"1970-01-01 02:00:01+0200"},{"point":"POINT (1.0  2e0)","time":"1970-01-01 00:00:02Z"}]`,
			trace.Trace{Points: []trace.Point{at(1, 2, 1000), at(1, 2, 2000)}, Total: 2}},
		{"JSON, a counter", `[{"time":1,"point":"POINT(1 2)","id":"0"},{"time":2.5,"point":"POINT(1 2)"}]`,
			trace.Trace{Points: []trace.Point{at(1, 2, 1000), at(1, 2, 2500)}, Total: 2}},
		{"JSON, unusable samples",
			`[{"time":1},{"time":1,"point":"POINT(1)"},{"time":1,"point":"LINESTRING(1 2)"},{"time":1,"point":"POINT(181 2)"},` +
				`{"point":"POINT(1 2)"},{"time":null,"point":"POINT(1 2)"},{"time":"","point":"POINT(1 2)"},{"time":-1,"point":"POINT(1 2)"},{"time":1e30,"point":"POINT(1 2)"},{"time":{},"point":"POINT(1 2)"}]`,
			trace.Trace{Total: 10, NoPosition: 4, NoTime: 6}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := trace.Read(strings.NewReader(tt.input))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Points) == 0 {
				got.Points = nil
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{"empty", " \n", "empty"},
		{"text", "lat,lon\n1,2\n", "neither"},
		{"JSON object", `{"point":"POINT(1 2)"}`, "neither"},
		{"HTML", `<html><trk/></html>`, "not GPX"},
		{"only a comment", `<!-- gpx -->`, "not GPX"},
		{"cut off GPX", `<gpx><trk><trkseg><trkpt lat="2" lon="1">`, "not well-formed"},
		{"unknown encoding", `<?xml version="1.0" encoding="EBCDIC"?><gpx/>`, "EBCDIC"},
		{"a sample that is none", `[{"time":1,"point":"POINT(1 2)"},7]`, "sample 1 "},
		{"cut off JSON", `[{"time":1,"point":"POINT(1 2)"}`, "no end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := trace.Read(strings.NewReader(tt.input))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Read gave %+v and error %v, want an error that says %q", got, err, tt.want)
			}
		})
	}
	if _, err := trace.ReadFile(filepath.Join(t.TempDir(), "none.gpx")); err == nil {
		t.Error("a file that is not there could be read")
	}
}
