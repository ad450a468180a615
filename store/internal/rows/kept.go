package rows

import (
	"slices"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// Time is t as a store keeps it: in UTC, whole milliseconds, what is below them cut off. The zero
// time stays the zero time.
func Time(t time.Time) time.Time {
	if t.IsZero() { // as most are
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// Ceil is the first whole millisecond at or after t, in UTC milliseconds: of what is kept, all
// before it is before t.
func Ceil(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return ms
}

// Task is a copy of t as a store keeps it.
func Task(t tracking.Task) tracking.Task {
	t = t.Clone()
	TaskTimes(&t)
	for i := range t.Proofs {
		t.Proofs[i].At = Time(t.Proofs[i].At)
	}
	for _, steps := range [][]tracking.StuckStep{t.Stuck, t.Settled} {
		for i := range steps {
			steps[i].At = Time(steps[i].At)
		}
	}
	return t
}

// TaskTimes makes a task's times what a store keeps, but for those in its lists: for who writes all of
// it somewhere else, in whole milliseconds, before the caller goes on.
func TaskTimes(t *tracking.Task) {
	t.Time, t.GeocodeAt, t.Link.MadeAt = Time(t.Time), Time(t.GeocodeAt), Time(t.Link.MadeAt)
	t.CreatedAt, t.UpdatedAt, t.AssignedAt = Time(t.CreatedAt), Time(t.UpdatedAt), Time(t.AssignedAt)
	t.StartedAt, t.PickedUpAt, t.CompletedAt = Time(t.StartedAt), Time(t.PickedUpAt), Time(t.CompletedAt)
	t.PickupArrivingAt, t.PickupArrivedAt = Time(t.PickupArrivingAt), Time(t.PickupArrivedAt)
	t.ArrivingAt, t.ArrivedAt, t.StepAt = Time(t.ArrivingAt), Time(t.ArrivedAt), Time(t.StepAt)
	t.Window.From, t.Window.To, t.Promise = Time(t.Window.From), Time(t.Window.To), Time(t.Promise)
	t.LateFor, t.AssignAt, t.DueAt = Time(t.LateFor), Time(t.AssignAt), Time(t.DueAt)
	t.WaitsSince, t.ErasedAt = Time(t.WaitsSince), Time(t.ErasedAt)
}

// Trip is a copy of t as a store keeps it.
func Trip(t tracking.Trip) tracking.Trip {
	t = t.Clone()
	t.StartedAt, t.EndedAt, t.TTL = Time(t.StartedAt), Time(t.EndedAt), Time(t.TTL)
	t.GeocodeAt, t.Link.MadeAt = Time(t.GeocodeAt), Time(t.Link.MadeAt)
	t.CreatedAt, t.UpdatedAt = Time(t.CreatedAt), Time(t.UpdatedAt)
	return t
}

// Driver is a copy of d as a store keeps it, without a position: that comes from fixes only.
func Driver(d tracking.Driver) tracking.Driver {
	d = d.Clone()
	DriverTimes(&d)
	return d
}

// DriverTimes makes a driver so, but for the copy, for who writes all of it somewhere else before the
// caller goes on.
func DriverTimes(d *tracking.Driver) {
	d.DutyAt, d.OffDutyAt, d.LegAt = Time(d.DutyAt), Time(d.OffDutyAt), Time(d.LegAt)
	d.CreatedAt, d.UpdatedAt = Time(d.CreatedAt), Time(d.UpdatedAt)
	d.Position, d.Distance = tracking.Position{}, 0
}

// Invite is a copy of i as a store keeps it.
func Invite(i tracking.Invite) tracking.Invite {
	i = i.Clone()
	i.CreatedAt, i.JoinedAt = Time(i.CreatedAt), Time(i.JoinedAt)
	i.LinkExpiresAt, i.CodeExpiresAt = Time(i.LinkExpiresAt), Time(i.CodeExpiresAt)
	return i
}

// Key is k as a store keeps it.
func Key(k tracking.Key) tracking.Key {
	k.CreatedAt, k.RevokedAt = Time(k.CreatedAt), Time(k.RevokedAt)
	return k
}

// Request is a copy of r as a store keeps it.
func Request(r tracking.Request) tracking.Request {
	r = r.Clone()
	r.CreatedAt = Time(r.CreatedAt)
	return r
}

// Event is a copy of e as a store keeps it, but for its notices, which are given ids and times of
// their own.
func Event(e tracking.Event) tracking.Event {
	e = e.Clone()
	e.Time, e.RecordedAt = Time(e.Time), Time(e.RecordedAt)
	return e
}

// Batch is a copy of b as a store keeps it. A reading that is not known has no value.
func Batch(b tracking.FixBatch) tracking.FixBatch {
	b.Fixes = slices.Clone(b.Fixes)
	return Borrowed(b)
}

// Borrowed is b as a store keeps it, for who is done with it before the caller goes on: fixes that
// are so already, as those of a Service, are not copied.
func Borrowed(b tracking.FixBatch) tracking.FixBatch {
	b.SeenAt, b.Latest, b.Skew = Time(b.SeenAt), Time(b.Latest), known(b.Skew)
	var fixes []tracking.Fix // nil as long as all are so already: as a rule they come from a Service
	for i, f := range b.Fixes {
		f.Time = Time(f.Time)
		f.Accuracy, f.Speed, f.Bearing, f.Battery = known(f.Accuracy), known(f.Speed), known(f.Bearing),
			known(f.Battery)
		if fixes == nil && f != b.Fixes[i] {
			fixes = slices.Clone(b.Fixes)
		}
		if fixes != nil {
			fixes[i] = f
		}
	}
	if fixes != nil {
		b.Fixes = fixes
	}
	return b
}

func known(r tracking.Reading) tracking.Reading {
	if !r.Known {
		return tracking.Reading{}
	}
	return r
}

// Position is p as a store keeps it.
func Position(p tracking.Position) tracking.Position {
	p.SeenAt, p.Fix.Time = Time(p.SeenAt), Time(p.Fix.Time)
	return p
}
