package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/courier/internal/trace"
)

// call is one call of a phone, in seconds since the test began; points by their time too.
type call struct {
	Verb   string
	When   float64
	At     float64   // of start and stop
	Points []float64 // of send
}

// fakePhone notes its calls and answers "live" for each point.
type fakePhone struct {
	began time.Time
	calls []call
	takes []time.Duration // how long the n-th send takes
	sends int
	err   map[string]error // by verb
	short bool             // answer one outcome too few
}

func (p *fakePhone) since(t time.Time) float64 { return t.Sub(p.began).Seconds() }

func (p *fakePhone) start(_ context.Context, at time.Time) error {
	p.calls = append(p.calls, call{Verb: "start", When: p.since(time.Now()), At: p.since(at)})
	return p.err["start"]
}

func (p *fakePhone) send(ctx context.Context, points []trace.Point) ([]tracking.FixOutcome, error) {
	c := call{Verb: "send", When: p.since(time.Now())}
	for _, pt := range points {
		c.Points = append(c.Points, p.since(pt.Time))
	}
	p.calls = append(p.calls, c)
	if p.sends < len(p.takes) {
		select {
		case <-time.After(p.takes[p.sends]):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	p.sends++
	outcomes := slices.Repeat([]tracking.FixOutcome{tracking.FixLive}, len(points))
	if p.short {
		outcomes = outcomes[1:]
	}
	return outcomes, p.err["send"]
}

func (p *fakePhone) finish(context.Context) ([]tracking.FixOutcome, error) {
	return nil, nil
}

func (p *fakePhone) stop(ctx context.Context, at time.Time) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.calls = append(p.calls, call{Verb: "stop", When: p.since(time.Now()), At: p.since(at)})
	return p.err["stop"]
}

// drawn makes points at these seconds of some day long ago.
func drawn(seconds ...float64) []trace.Point {
	day := time.Date(2010, 8, 5, 14, 23, 59, 0, time.UTC)
	var points []trace.Point
	for i, s := range seconds {
		points = append(points, trace.Point{
			LngLat: tracking.LngLat{Lng: 14 + float64(i)/1000, Lat: 45},
			Time:   day.Add(time.Duration(s * float64(time.Second))),
		})
	}
	return points
}

func TestPlay(t *testing.T) {
	broken := errors.New("the phone fell into the river")
	tests := []struct {
		name    string
		points  []trace.Point
		fast    bool
		phone   fakePhone
		cancel  time.Duration // when the user interrupts; 0: never
		want    []call
		sent    int
		left    int
		wantErr string
	}{
		{
			name:   "keeps the spacing from now on",
			points: drawn(0, 1, 2.5, 63),
			want: []call{
				{Verb: "start"},
				{Verb: "send", Points: []float64{0}}, {Verb: "send", When: 1, Points: []float64{1}},
				{Verb: "send", When: 2.5, Points: []float64{2.5}}, {Verb: "send", When: 63, Points: []float64{63}},
				{Verb: "stop", When: 63, At: 63},
			},
			sent: 4,
		},
		{
			name:   "fast ends now",
			points: drawn(0, 1, 2.5, 63),
			fast:   true,
			want: []call{
				{Verb: "start", At: -63}, {Verb: "send", Points: []float64{-63, -62, -60.5, 0}}, {Verb: "stop"},
			},
			sent: 4,
		},
		{
			name:   "one point",
			points: drawn(7),
			want:   []call{{Verb: "start"}, {Verb: "send", Points: []float64{0}}, {Verb: "stop"}},
			sent:   1,
		},
		{
			name:   "what has come due during a slow answer goes together",
			points: drawn(0, 1, 2, 3, 10),
			phone:  fakePhone{takes: []time.Duration{2500 * time.Millisecond}},
			want: []call{
				{Verb: "start"}, {Verb: "send", Points: []float64{0}}, {
					Verb: "send", When: 2.5, Points: []float64{1, 2},
				},
				{Verb: "send", When: 3, Points: []float64{3}}, {
					Verb: "send", When: 10, Points: []float64{10},
				}, {Verb: "stop", When: 10, At: 10},
			},
			sent: 5,
		},
		{
			name:   "interrupted while waiting",
			points: drawn(0, 1, 60, 61),
			cancel: 30 * time.Second,
			want: []call{
				{Verb: "start"}, {Verb: "send", Points: []float64{0}}, {
					Verb: "send", When: 1, Points: []float64{1},
				}, {Verb: "stop", When: 30, At: 30},
			},
			sent: 2,
			left: 2,
		},
		{
			name:   "interrupted while sending",
			points: drawn(0, 1),
			phone:  fakePhone{takes: []time.Duration{time.Hour}},
			cancel: 30 * time.Second,
			want:   []call{{Verb: "start"}, {Verb: "send", Points: []float64{0}}, {Verb: "stop", When: 30, At: 30}},
			left:   2,
		},
		{
			name:    "the trip does not start",
			points:  drawn(0, 1),
			phone:   fakePhone{err: map[string]error{"start": broken}},
			want:    []call{{Verb: "start"}},
			wantErr: "river",
		},
		{
			name:    "a batch cannot be sent",
			points:  drawn(0, 1),
			phone:   fakePhone{err: map[string]error{"send": broken}},
			want:    []call{{Verb: "start"}, {Verb: "send", Points: []float64{0}}, {Verb: "stop"}},
			left:    2,
			wantErr: "river",
		},
		{
			name:    "the trip does not stop",
			points:  drawn(0),
			phone:   fakePhone{err: map[string]error{"stop": broken}},
			want:    []call{{Verb: "start"}, {Verb: "send", Points: []float64{0}}, {Verb: "stop"}},
			sent:    1,
			wantErr: "river",
		},
		{
			name:    "an outcome is missing",
			points:  drawn(0),
			phone:   fakePhone{short: true},
			want:    []call{{Verb: "start"}, {Verb: "send", Points: []float64{0}}, {Verb: "stop"}},
			left:    1,
			wantErr: "0 outcomes for 1 fixes",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tt.cancel > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.cancel)
					defer cancel()
				}
				p := tt.phone
				p.began = time.Now()
				rep, err := play(ctx, &p, tt.points, manner{fast: tt.fast})
				if diff := cmp.Diff(tt.want, p.calls); diff != "" {
					t.Errorf("calls of the phone (-want +got):\n%s", diff)
				}
				if rep.outcomes[tracking.FixLive] != tt.sent || rep.left != tt.left && tt.phone.err["start"] == nil ||
					rep.interrupted != (tt.cancel > 0) {
					t.Errorf("the report is %+v, want %d sent and %d left", rep, tt.sent, tt.left)
				}
				if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error %v, want one that says %q", err, tt.wantErr)
				}
			})
		})
	}
}

func TestPlayInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seconds []float64
		for i := range 2*maxBatch + 1 {
			seconds = append(seconds, float64(i))
		}
		points := drawn(seconds...)
		p := fakePhone{began: time.Now()}
		rep, err := play(t.Context(), &p, points, manner{fast: true})
		if err != nil || rep.outcomes[tracking.FixLive] != len(points) || rep.left != 0 {
			t.Fatalf("report %+v, error %v; want all of %d points sent", rep, err, len(points))
		}
		var sizes []int
		for _, c := range p.calls {
			if c.Verb == "send" {
				sizes = append(sizes, len(c.Points))
			}
		}
		if want := []int{maxBatch, maxBatch, 1}; !slices.Equal(sizes, want) {
			t.Errorf("batches of %v, want %v", sizes, want)
		}
		if first := drawn(0)[0]; !points[0].Time.Equal(first.Time) {
			t.Errorf("the caller's points were changed: the first is at %v, was at %v", points[0].Time, first.Time)
		}
	})
}

func TestReport(t *testing.T) {
	var b strings.Builder
	describe(&b, "drive.gpx", trace.Trace{
		Points: drawn(0, 5), Total: 9, NoPosition: 1, NoTime: 2, Repeated: 4, Backward: 1,
	})
	report{outcomes: map[tracking.FixOutcome]int{
		tracking.FixLive: 3, tracking.FixLate: 2, tracking.FixJump: 1, tracking.FixDuplicate: 4, tracking.FixOffDuty: 5,
		tracking.FixFuture: 6, tracking.FixInvalid: 7, "odd": 8, "new": 9, "a": 10,
	}, left: 1, interrupted: true}.print(&b)
	report{outcomes: map[tracking.FixOutcome]int{tracking.FixLive: 1}, left: 2}.print(&b)
	want := `drive.gpx holds 9 points; 2 can be played, over 5s.
The trace itself makes unusable: 1 without a position, 2 without a time, 4 with the millisecond of another.
Its clock goes back 1 time; the points are played in order of time.
Sent 55 fixes:
  live           3  kept: it was the live position
  late           2  kept: it joined the path, a newer one was live already
  jump           1  set aside: too far from the fix before it; in the path only if the next fix agrees with it
  duplicate      4  dropped: the driver has a fix of that time
  off_duty       5  dropped: off duty, and outside of every trip
  future         6  dropped: more than two minutes ahead of the server's clock
  invalid        7  dropped: wrong in itself
  "a"           10  a word this program does not know
  "new"          9  a word this program does not know
  "odd"          8  a word this program does not know
Interrupted: 1 point was not sent.
Sent 1 fix:
  live           1  kept: it was the live position
2 points were not sent.
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
