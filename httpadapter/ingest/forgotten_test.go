package ingest_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking/httpadapter/ingest"
	"github.com/seed-8aba7b13/tracking/store/storetest/declared"
)

const taken = "application/json; charset=utf-8"

// dialects are what each way of writing positions needs around it: the fields of Setup with which a
// driver sets up an app that writes so, a request, and the answer at which the app takes it for
// taken.
var dialects = map[ingest.Dialect]struct {
	setup  []string
	sample ingest.Request
	answer ingest.Answer
}{
	ingest.Traccar8: { // before 9 it had no links: a driver types the URL
		[]string{"URL"}, request("id=1&lat=60&lon=30&timestamp=1377177267", "", ""), ingest.Answer{},
	},
	ingest.Traccar9: {
		[]string{"Traccar", "TraccarQR", "TraccarStart", "TraccarStop"},
		request("", js,
			`{"location":{"timestamp":"2026-03-04T05:06:07Z","coords":{"latitude":60,"longitude":30}},"device_id":"1"}`), ingest.Answer{},
	},
	ingest.Traccar10: {
		[]string{"Traccar", "TraccarQR", "TraccarStart", "TraccarStop"},
		request("", form, "id=1&lat=60&lon=30&timestamp=1377177267"), ingest.Answer{},
	},
	ingest.OsmAnd: {
		[]string{"OsmAnd"},
		request("lat=60&lon=30&timestamp=1377177267000&accuracy=8&altitude=3&speed=10&bearing=90&eta=0&dist=0&speed_unit=ms", "", ""), ingest.Answer{},
	},
	ingest.GPSLogger: {
		[]string{"GPSLogger", "GPSLoggerURL"},
		request("lat=60&lon=30&timestamp=1377177267&accuracy=8&altitude=1&speed=10&bearing=90&batt=87&speed_unit=ms",
			"", ""), ingest.Answer{},
	},
	ingest.Colota: { // it has no links: a driver types the URL
		[]string{"URL"},
		request("", js, `{"lat":60,"lon":30,"acc":12,"vel":15,"batt":85,"bs":2,"tst":1377177267,"bear":180.5}`),
		ingest.Answer{},
	},
	ingest.OwnTracks: {
		[]string{"OwnTracks"}, request("", js, `{"_type":"location","lat":60,"lon":30,"tst":1377177267}`),
		ingest.Answer{
			ContentType: taken, Body: "[]",
		},
	},
	ingest.Overland: {
		[]string{"Overland"},
		request("", js,
			`{"locations":[{"type":"Feature","geometry":{"type":"Point","coordinates":[30,60]},"properties":{"timestamp":"2026-03-04T05:06:07Z"}}]}`),
		ingest.Answer{ContentType: taken, Body: `{"result":"ok"}`},
	},
}

// Every dialect has its set-up and its acknowledgement, and every text of the set-up is some
// dialect's.
func TestNoDialectIsForgotten(t *testing.T) {
	setup := links(t, "https://track.example/ingest/tok")
	unused := map[string]bool{}
	for i := range reflect.TypeFor[ingest.Setup]().NumField() {
		unused[reflect.TypeFor[ingest.Setup]().Field(i).Name] = true
	}
	for name, word := range declared.Constants(t, ".", "Dialect") {
		if ingest.Dialect(word) == ingest.Unknown {
			continue // no app's
		}
		d, ok := dialects[ingest.Dialect(word)]
		if !ok || len(d.setup) == 0 {
			t.Errorf("nobody has said how an app that writes %s is set up, and what it takes for an answer", name)
			continue
		}
		for _, field := range d.setup {
			if v := reflect.ValueOf(setup).FieldByName(field); !v.IsValid() || v.String() == "" {
				t.Errorf("%s is set up by Setup.%s, which Links does not give", name, field)
			}
			delete(unused, field)
		}
		m := ingest.Decode(d.sample, now)
		if string(m.Dialect) != word || len(m.Fixes) != 1 {
			t.Errorf("%s: the sample is read as %s, with %d fixes", name, m.Dialect, len(m.Fixes))
		}
		if diff := cmp.Diff(d.answer, m.Answer); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	for field := range unused {
		t.Errorf("Setup.%s is no dialect's", field)
	}
}
