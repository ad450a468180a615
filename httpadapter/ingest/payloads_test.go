package ingest_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/ingest"
)

// payloads returns the lines of one file of requests that others recorded.
func payloads(t *testing.T, name string) []string {
	t.Helper()
	dir := os.Getenv("TRACKING_DATA")
	if dir == "" {
		if os.Getenv("TRACKING_LONG") == "1" {
			t.Fatal("TRACKING_DATA is not set")
		}
		t.Skip("TRACKING_DATA is not set")
	}
	b, err := os.ReadFile(filepath.Join(dir, "payloads", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// reading fills in the readings of a fix.
func reading(f tracking.Fix, set func(*tracking.Fix)) tracking.Fix { set(&f); return f }

// check decodes each line, and wants one fix of it: a zero Fix stands for none.
func check(t *testing.T, lines []string, in func(line string) ingest.Request, dialect ingest.Dialect,
	want []tracking.Fix) {
	t.Helper()
	if len(lines) != len(want) {
		t.Fatalf("%d requests, want %d", len(lines), len(want))
	}
	for i, line := range lines {
		m := ingest.Decode(in(line), now)
		var fixes []tracking.Fix
		if !want[i].Time.IsZero() {
			fixes = want[i : i+1]
		}
		if d := cmp.Diff(fixes, m.Fixes, approx, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-want +got):\n%s", line, d)
		}
		if m.Dialect != dialect || m.SignOfLife != (fixes == nil) {
			t.Errorf("%s: %s, sign of life %v", line, m.Dialect, m.SignOfLife)
		}
	}
}

func post(line string) ingest.Request { return request("", js, line) }

func TestPayloadsOfTraccarQuery(t *testing.T) {
	var (
		cab     = utc("2013-08-22T13:14:27Z")
		chicago = at(-88.23412, 42.06288, utc("2016-01-27T18:55:47Z"))
	)
	moved := chicago
	moved.Time = utc("2015-09-12T14:38:06.579Z")
	in := func(line string) ingest.Request {
		_, target, ok := strings.Cut(line, "\t")
		u, err := url.Parse(target)
		if !ok || err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return ingest.Request{Method: http.MethodPost, Query: u.RawQuery, Header: http.Header{}}
	}
	check(t, payloads(t, "traccar-osmand-query.txt"), in, ingest.Traccar8, []tracking.Fix{
		{},              // cells and access points only
		at(30, 60, cab), // no id: the token in the URL has said who it is
		chicago,
		moved,
		at(6.15788, 49.60688, utc("2014-06-04T09:10:11Z")),
		at(30, 60, cab),
		at(30, 60, cab),
		at(30, 60, nowMs), // no time
		reading(at(-0.883333, 41.666667, nowMs), func(f *tracking.Fix) { f.Battery = known(0.87) }),
		at(30, 60, cab),
		reading(at(-74.0061408571, 40.7232948571, utc("2017-09-07T05:56:50Z")), func(f *tracking.Fix) {
			f.Bearing, f.Speed = known(7.19889788244), known(40*1852.0/3600)
		}),
	})
}

func TestPayloadsOfTraccarJSON(t *testing.T) {
	mountainView := reading(at(-122.084, 37.4219983, utc("2025-06-15T13:45:12.862Z")), func(f *tracking.Fix) {
		f.Accuracy, f.Speed, f.Battery = known(5), known(0), known(1)
	})
	check(t, payloads(t, "traccar-osmand-json.jsonl"), post, ingest.Traccar9, []tracking.Fix{
		mountainView,
		mountainView,
		reading(at(-122.406417, 37.785834, utc("2025-05-09T04:11:30.579Z")), func(f *tracking.Fix) {
			f.Accuracy = known(5)
		}),
		reading(at(106.6837015, -6.1148096, utc("2021-07-21T08:06:34.444Z")), func(f *tracking.Fix) {
			f.Accuracy, f.Speed, f.Bearing, f.Battery = known(3.8), known(18.67), known(63), known(0.79)
		}),
	})
}

func TestPayloadsOfOwnTracks(t *testing.T) {
	check(t, payloads(t, "traccar-owntracks.jsonl"), post, ingest.OwnTracks, []tracking.Fix{
		reading(at(11.1512805, 46.0681247, utc("2019-03-06T12:21:18Z")), func(f *tracking.Fix) {
			f.Accuracy, f.Speed, f.Battery = known(15), known(0), known(0.46)
		}),
		at(2.29513, 48.85833, utc("2017-06-13T10:21:56Z")),
		reading(at(2.29513, 48.85833, utc("2017-06-13T10:21:56Z")), func(f *tracking.Fix) {
			f.Accuracy, f.Speed, f.Bearing, f.Battery = known(5), known(61/3.6), known(271), known(0.67)
		}),
		at(2.295, 48.85, utc("2017-06-14T21:40:56Z")),
		reading(at(-122, 37, utc("2025-01-06T10:59:29Z")), func(f *tracking.Fix) { f.Accuracy = known(5) }),
		reading(at(13.654704, 47.420051, utc("2025-01-10T14:26:07Z")), func(f *tracking.Fix) {
			f.Accuracy, f.Speed, f.Bearing = known(10), known(0), known(113)
		}),
	})
}

func TestPayloadsOfOverland(t *testing.T) {
	check(t, payloads(t, "overland-readme.json"), post, ingest.Overland, []tracking.Fix{
		reading(at(-122.030581, 37.3318, utc("2015-10-01T15:00:00Z")), func(f *tracking.Fix) {
			f.Accuracy, f.Speed, f.Battery = known(30), known(4), known(0.8)
		}),
	})
}
