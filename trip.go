package tracking

import (
	"context"
	"iter"
	"time"
)

// TripID identifies a trip.
type TripID string

// TrackingID is what a trip is followed by. At most one active trip of an application has it. A task's trip has the task's id.
type TrackingID string

// TripStatus is the state of a trip; stopped and discarded are final.
type TripStatus int

const (
	Active    TripStatus = 1
	Stopped   TripStatus = 2
	Discarded TripStatus = 3
)

// Trip is a journey that is followed live: a window, from StartedAt to EndedAt, over its driver's fixes.
type Trip struct {
	ID            TripID
	TrackingID    TrackingID
	DriverID      DriverID
	TaskID        TaskID // "" when it is no task's trip
	Status        TripStatus
	StartsAt      *LngLat // nil: not known yet
	EndsAt        *LngLat // nil: active, discarded, or not known
	StartLocation string
	EndLocation   string
	Dest          *Place // of the request it answers

	StartedAt time.Time // when it happened on the phone
	EndedAt   time.Time // zero while active
	TTL       time.Time // when it ends unless fixes keep it alive
	GeocodeAt time.Time // when to ask the Geocoder for its addresses; zero: not
	Link      Link

	CreatedAt time.Time
	UpdatedAt time.Time

	Seq     int64 // order of insertion; given by the store
	Version int64 // raised by each change; given by the store
}

// Clone returns a deep copy.
func (t Trip) Clone() Trip {
	t.StartsAt, t.EndsAt, t.Dest = clonePtr(t.StartsAt), clonePtr(t.EndsAt), t.Dest.clone()
	return t
}

// TripFilter picks trips. Zero fields do not filter.
type TripFilter struct {
	Page       // default limit 20
	Status     TripStatus
	DriverID   DriverID
	TrackingID TrackingID
}

// RequestID names a request: a driver has at most one for a tracking id.
type RequestID struct {
	DriverID   DriverID
	TrackingID TrackingID
}

// Request asks a driver to start a trip.
type Request struct {
	RequestID
	Message   string
	Dest      *Place
	Desc      string // as given; may hold HTML
	CreatedAt time.Time
}

// Clone returns a deep copy.
func (r Request) Clone() Request { r.Dest = r.Dest.clone(); return r }

// TripReader reads trips, requests, and the fixes that trips are windows over.
type TripReader interface {
	// Trip reads one.
	Trip(ctx context.Context, app AppID, id TripID) (Trip, error)

	// Trips lists newest first, by CreatedAt and then insertion. A near page of any one filter costs its length and not the size of the store.
	// More tells whether a further page exists. Page.Limit is given, 1 or more.
	Trips(ctx context.Context, app AppID, f TripFilter) (list []Trip, more bool, err error)

	// ActiveTrip finds the trip with Status Active that has this tracking id.
	ActiveTrip(ctx context.Context, app AppID, id TrackingID) (Trip, error)

	// TripByLink finds the trip, of any application, whose Link.Hash this is.
	TripByLink(ctx context.Context, hash Hash) (AppID, Trip, error)

	// Request reads one.
	Request(ctx context.Context, app AppID, id RequestID) (Request, error)

	// Requests lists a driver's, oldest first by CreatedAt and then tracking id.
	Requests(ctx context.Context, app AppID, driver DriverID) ([]Request, error)

	// Fixes yields a driver's good fixes (those whose Mark is not FixCandidate) in r, ascending by time, or descending with r.Newest.
	// Each comes once; one recorded during the iteration may or may not come. An unknown driver has none. An error ends the iteration.
	Fixes(ctx context.Context, app AppID, driver DriverID, r FixRange) iter.Seq2[Fix, error]
}

// FixRange is a part of a driver's fixes: those from From to To, both included; a zero To is open. At most Limit, unless that is 0.
type FixRange struct {
	From, To time.Time
	Newest   bool
	Limit    int
}

// Reading is a measured value that may be unknown.
type Reading struct {
	Value float64
	Known bool
}

// Known is a known reading.
func Known(v float64) Reading { return Reading{v, true} }

// Fix is a position as a phone measured it.
type Fix struct {
	LngLat   LngLat
	Time     time.Time // when it was measured
	EventID  string    // of the caller; "" for none
	Accuracy Reading   // metres
	Speed    Reading   // m/s
	Bearing  Reading   // degrees, clockwise from north
	Battery  Reading   // 0 … 1

	Trusted bool // told, not measured (a trip's start, a dispatcher's word): never a jump
}

// FixOutcome is what became of a fix, as it looked on arrival.
type FixOutcome string

const (
	FixInvalid   FixOutcome = "invalid"   // wrong in itself; not kept
	FixFuture    FixOutcome = "future"    // more than 2 minutes ahead; not kept
	FixOffDuty   FixOutcome = "off_duty"  // the driver was off duty and on no trip; not kept
	FixDuplicate FixOutcome = "duplicate" // the driver has one of this time; not kept
	FixJump      FixOutcome = "jump"      // kept as a candidate until the next fix agrees with it
	FixLate      FixOutcome = "late"      // kept; there was a newer one
	FixLive      FixOutcome = "live"      // kept; it is the live position
)

// FixMark is what the fixes around it make of a kept fix.
type FixMark int

const (
	FixGood      FixMark = 1 // agrees with the good fix before it
	FixConfirmed FixMark = 2 // jumped, and the fix after it agrees with it: good too
	FixCandidate FixMark = 3 // jumped, and nothing agrees with it: in no path, never live
)

// KeptFix is a fix with its mark, as a store keeps it.
type KeptFix struct {
	Fix
	Mark FixMark
}

// Position is what is known of where a driver is.
type Position struct {
	Fix       Fix       // the newest good fix; zero Time: none
	Candidate Fix       // the newest kept fix of all, while it is a candidate; zero Time: none
	SeenAt    time.Time // when he was last heard of, by our clock; zero: never
}

// Located reports whether there is a position.
func (p Position) Located() bool { return !p.Fix.Time.IsZero() }

// FixBatch is what one call records for one driver.
type FixBatch struct {
	DriverID    DriverID
	SeenAt      time.Time // when it reached us
	Fixes       []Fix     // in any order; none is a sign of life
	KeepOffDuty bool      // keep fixes whatever the duty
}

// Recorded is what became of a batch.
type Recorded struct {
	Outcomes []FixOutcome // one for each fix, in the batch's order
	Driver   Driver       // afterwards
	Moved    bool         // the live position changed
}

// FixLog is one driver's kept fixes, as [FixBatch.Record] needs them. A store implements it inside its own lock or transaction.
type FixLog interface {
	// InTrip reports whether t is within the window of one of the driver's trips: at or after StartedAt, and the trip is active or t is at or before EndedAt.
	InTrip(t time.Time) (bool, error)

	// Has reports whether a fix of exactly this time is kept.
	Has(t time.Time) (bool, error)

	// Before finds the newest kept fix before t; with good, the newest whose Mark is not FixCandidate.
	Before(t time.Time, good bool) (f KeptFix, ok bool, err error)

	// After yields the kept fixes after t, ascending. Put is not called before the iteration ends.
	After(t time.Time) iter.Seq2[KeptFix, error]

	// Put keeps f, or changes the mark of the one kept with its time.
	Put(f KeptFix) error
}

// MaxSpeed is the speed in m/s above which a fix is a jump from the good fix before it: 504 km/h, faster than any train in service.
const MaxSpeed = 140

// jump reports whether b cannot have been reached from a.
func jump(a, b Fix) bool {
	dt := max(b.Time.Sub(a.Time).Abs(), time.Second)
	return Distance(a.LngLat, b.LngLat) > MaxSpeed*dt.Seconds()
}

// track is the state of the rule of jumps after some fixes in order of time.
type track struct {
	good, cand Fix // zero Time: none
}

// add judges the next fix in time, and tells whether it made the candidate before it good.
func (t *track) add(f Fix) (mark FixMark, confirmed bool) {
	agrees := t.good.Time.IsZero() || f.Trusted || !jump(t.good, f)
	confirmed = !t.cand.Time.IsZero() && !jump(t.cand, f)
	if agrees || confirmed {
		t.good, t.cand = f, Fix{}
		return FixGood, confirmed
	}
	t.cand = f
	return FixCandidate, false
}

// Record applies the rules of fixes to a batch that is well formed and not from the future: it puts into log what is to be kept, with its mark,
// changes the marks that a late fix changes, and returns where the driver is now and what became of each fix.
// Which fixes are good is a function of the kept fixes alone, whatever the order and the batches they came in. d is the driver as he is, with his Position.
func (b FixBatch) Record(log FixLog, d Driver) (Position, []FixOutcome, error) {
	pos := d.Position
	if b.SeenAt.After(pos.SeenAt) {
		pos.SeenAt = b.SeenAt
	}
	var outcomes []FixOutcome
	if len(b.Fixes) > 0 {
		outcomes = make([]FixOutcome, 0, len(b.Fixes))
	}
	for _, f := range b.Fixes {
		o, err := record(log, d, &pos, f, b.KeepOffDuty)
		if err != nil {
			return d.Position, nil, err
		}
		outcomes = append(outcomes, o)
	}
	return pos, outcomes, nil
}

func record(log FixLog, d Driver, pos *Position, f Fix, keepOffDuty bool) (FixOutcome, error) {
	if !keepOffDuty && !f.Trusted && d.offDuty(f.Time) {
		if in, err := log.InTrip(f.Time); err != nil || !in {
			return FixOffDuty, err
		}
	}
	if f.Time.After(pos.Fix.Time) && f.Time.After(pos.Candidate.Time) { // the usual case: the newest so far
		tr := track{pos.Fix, pos.Candidate}
		mark, confirmed := tr.add(f)
		if confirmed {
			if err := log.Put(KeptFix{pos.Candidate, FixConfirmed}); err != nil {
				return "", err
			}
		}
		if err := log.Put(KeptFix{f, mark}); err != nil {
			return "", err
		}
		pos.Fix, pos.Candidate = tr.good, tr.cand
		if mark == FixCandidate {
			return FixJump, nil
		}
		return FixLive, nil
	}
	if has, err := log.Has(f.Time); err != nil || has {
		return FixDuplicate, err
	}
	return recordLate(log, pos, f)
}

// recordLate puts f between the kept fixes and judges those around it again, up to the first fix from which on nothing changes.
func recordLate(log FixLog, pos *Position, f Fix) (FixOutcome, error) {
	var tr track
	var open KeptFix // the candidate of tr, with the mark it is kept with
	prev, ok, err := log.Before(f.Time, false)
	if err != nil {
		return "", err
	}
	switch {
	case ok && prev.Mark == FixGood:
		tr.good = prev.Fix
	case ok: // it was a candidate when it was the newest, whatever came of it
		good, ok, err := log.Before(prev.Time, true)
		if err != nil {
			return "", err
		}
		if ok {
			tr.good = good.Fix
		}
		tr.cand, open = prev.Fix, prev
	}

	var changed []KeptFix
	settle := func(mark FixMark) { // says what has become of the open candidate
		if !open.Time.IsZero() && open.Mark != mark {
			changed = append(changed, KeptFix{open.Fix, mark})
		}
		open = KeptFix{}
	}
	// step judges the next fix in time, which is kept with the mark was (0: not kept yet), and tells whether the rest stays as it is.
	step := func(g Fix, was FixMark) (mark FixMark, done bool) {
		mark, confirmed := tr.add(g)
		if confirmed {
			settle(FixConfirmed)
		} else {
			settle(FixCandidate)
		}
		if mark == FixCandidate {
			open = KeptFix{g, was}
			return mark, false
		}
		if was != FixGood {
			changed = append(changed, KeptFix{g, FixGood})
		}
		return mark, was == FixGood
	}

	mark, _ := step(f, 0)
	done := false
	for next, err := range log.After(f.Time) {
		if err != nil {
			return "", err
		}
		if _, done = step(next.Fix, next.Mark); done {
			break
		}
	}
	if !done {
		settle(FixCandidate)
		pos.Fix, pos.Candidate = tr.good, tr.cand
	}
	for _, k := range changed {
		if err := log.Put(k); err != nil {
			return "", err
		}
	}
	switch {
	case mark == FixCandidate:
		return FixJump, nil
	case pos.Fix.Time.Equal(f.Time):
		return FixLive, nil
	}
	return FixLate, nil
}
