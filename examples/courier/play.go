package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/courier/internal/trace"
)

// phone is what a driver carries: it speaks to the server in its own way.
type phone interface {
	// start starts the trip, as of at.
	start(ctx context.Context, at time.Time) error

	// send sends at most maxBatch points and returns what became of each.
	send(ctx context.Context, points []trace.Point) ([]tracking.FixOutcome, error)

	// finish sends what the phone by itself sends at the end of a drive, and returns what became of
	// each of those points.
	finish(ctx context.Context) ([]tracking.FixOutcome, error)

	// stop stops the trip, as of at.
	stop(ctx context.Context, at time.Time) error
}

// maxBatch keeps a batch well below what one call may carry: 1,000 fixes and 1 MiB.
const maxBatch = 500

// manner is how a drive is played.
type manner struct {
	fast    bool          // it ends now and is sent at once
	offline time.Duration // in its middle the phone is offline for so long
	twice   bool          // the last batch is sent again
}

// play drives along the points, at least one. It stops the trip also when ctx ends or a batch
// cannot be sent.
func play(ctx context.Context, p phone, points []trace.Point, how manner) (report, error) {
	rep := report{outcomes: map[tracking.FixOutcome]int{}}
	anchor := points[0]
	if how.fast {
		anchor = points[len(points)-1]
	}
	points = shifted(points, time.UnixMilli(time.Now().UnixMilli()).UTC().Sub(anchor.Time))

	if err := p.start(ctx, points[0].Time); err != nil {
		return rep, err
	}
	end := points[len(points)-1].Time
	err := drive(ctx, p, points, how, &rep)
	if err != nil {
		end = time.Now()
	}
	if rep.interrupted = ctx.Err() != nil; rep.interrupted {
		err = nil
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endingTime)
	defer cancel()
	if stopErr := p.stop(ending, end); err == nil {
		err = stopErr
	}
	return rep, err
}

// drive sends each point once its time has come. What was measured offline waits until the phone is
// online again, and then for a moment when nothing newer is due.
func drive(ctx context.Context, p phone, points []trace.Point, how manner, rep *report) error {
	live, held, online := split(points, how.offline)
	rep.left = len(points)
	var batch []trace.Point
	for len(live)+len(held) > 0 {
		now := time.Now()
		due, _ := slices.BinarySearchFunc(live, now, func(p trace.Point, now time.Time) int {
			if p.Time.After(now) {
				return 1
			}
			return -1
		})
		from := &live
		switch {
		case due > 0:
		case len(held) > 0 && !now.Before(online):
			from, due = &held, len(held)
		default:
			next := online
			if len(held) == 0 || len(live) > 0 && live[0].Time.Before(online) {
				next = live[0].Time
			}
			if err := sleep(ctx, next.Sub(now)); err != nil {
				return err
			}
			continue
		}
		batch = (*from)[:min(due, maxBatch)]
		if err := send(ctx, p, batch, rep); err != nil {
			return err
		}
		*from = (*from)[len(batch):]
		rep.left -= len(batch)
	}
	if how.twice {
		if err := send(ctx, p, batch, rep); err != nil {
			return err
		}
	}
	outcomes, err := p.finish(ctx)
	rep.count(outcomes)
	return err
}

func send(ctx context.Context, p phone, batch []trace.Point, rep *report) error {
	outcomes, err := p.send(ctx, batch)
	if err != nil {
		return err
	}
	if len(outcomes) != len(batch) {
		return fmt.Errorf("the server answered %d outcomes for %d fixes", len(outcomes), len(batch))
	}
	rep.count(outcomes)
	return nil
}

// split takes out what is measured while the phone is offline: for so long in the middle of the
// drive, until online.
func split(points []trace.Point, offline time.Duration) (live, held []trace.Point, online time.Time) {
	first, last := points[0].Time, points[len(points)-1].Time
	middle := first.Add(last.Sub(first) / 2)
	from := middle.Add(-offline / 2)
	online = from.Add(offline)
	for _, pt := range points {
		if !pt.Time.Before(from) && pt.Time.Before(online) {
			held = append(held, pt)
		} else {
			live = append(live, pt)
		}
	}
	return live, held, online
}

// shifted moves points in time.
func shifted(points []trace.Point, by time.Duration) []trace.Point {
	points = slices.Clone(points)
	for i := range points {
		points[i].Time = points[i].Time.Add(by)
	}
	return points
}

// report is what became of the points of a drive.
type report struct {
	outcomes    map[tracking.FixOutcome]int
	left        int  // not sent
	interrupted bool // by the user
}

func (r report) count(outcomes []tracking.FixOutcome) {
	for _, o := range outcomes {
		r.outcomes[o]++
	}
}

// outcomeWords are all outcomes with what they mean for the path, the kept ones first.
var outcomeWords = [...]struct {
	outcome tracking.FixOutcome
	meaning string
}{
	{tracking.FixLive, "kept: it was the live position"},
	{tracking.FixLate, "kept: it joined the path, a newer one was live already"},
	{tracking.FixJump, "set aside: too far from the fix before it; in the path only if the next fix agrees with it"},
	{tracking.FixCoarse, "too coarse for the path: a sign of life"},
	{tracking.FixDuplicate, "dropped: the driver has a fix of that time"},
	{tracking.FixOffDuty, "dropped: off duty, and outside of every trip"},
	{tracking.FixFuture, "dropped: more than two minutes ahead of the server's clock"},
	{tracking.FixInvalid, "dropped: wrong in itself"},
	{taken, "acknowledged: phone apps are not told more"},
	{lost, "given up after three attempts"},
}

// print says what became of all that was sent.
func (r report) print(out io.Writer) {
	sent := 0
	for _, n := range r.outcomes {
		sent += n
	}
	fmt.Fprintf(out, "Sent %s:\n", plural(sent, "fix", "fixes"))
	counts := make(map[tracking.FixOutcome]int, len(r.outcomes))
	for o, n := range r.outcomes {
		counts[o] = n
	}
	for _, w := range outcomeWords {
		if n := counts[w.outcome]; n > 0 {
			fmt.Fprintf(out, "  %-9s %6d  %s\n", w.outcome, n, w.meaning)
		}
		delete(counts, w.outcome)
	}
	for _, o := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "  %-9q %6d  a word this program does not know\n", o, counts[o])
	}
	switch {
	case r.left > 0 && r.interrupted:
		fmt.Fprintf(out, "Interrupted: %s not sent.\n", plural(r.left, "point was", "points were"))
	case r.left > 0:
		fmt.Fprintf(out, "%s not sent.\n", plural(r.left, "point was", "points were"))
	}
}

// describe says what a file holds, and what of it no phone could have sent.
func describe(out io.Writer, name string, tr trace.Trace) {
	fmt.Fprintf(out, "%s holds %s; %d can be played, over %v.\n", name, plural(tr.Total, "point", "points"),
		len(tr.Points), tr.Duration())
	var unusable []string
	for _, u := range []struct {
		n    int
		what string
	}{
		{tr.NoPosition, "without a position"},
		{tr.NoTime, "without a time"},
		{tr.Repeated, "with the millisecond of another"},
	} {
		if u.n > 0 {
			unusable = append(unusable, fmt.Sprintf("%d %s", u.n, u.what))
		}
	}
	if len(unusable) > 0 {
		fmt.Fprintf(out, "The trace itself makes unusable: %s.\n", strings.Join(unusable, ", "))
	}
	if tr.Backward > 0 {
		fmt.Fprintf(out, "Its clock goes back %s; the points are played in order of time.\n",
			plural(tr.Backward, "time", "times"))
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}
