package tracking

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
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
	SeenAt    time.Time // of the last sign of life, by our clock; zero: never
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
// Which fixes are good is a function of the kept fixes alone, whatever the order and the batches they came in. d is the driver as of before, with the Position.
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
	step := func(g Fix, was FixMark) (done bool) {
		mark, confirmed := tr.add(g)
		if confirmed {
			settle(FixConfirmed)
		} else {
			settle(FixCandidate)
		}
		if mark == FixCandidate {
			open = KeptFix{g, was}
			return false
		}
		if was != FixGood {
			changed = append(changed, KeptFix{g, FixGood})
		}
		return was == FixGood
	}

	step(f, 0)
	done := false
	for next, err := range log.After(f.Time) {
		if err != nil {
			return "", err
		}
		if done = step(next.Fix, next.Mark); done {
			break
		}
	}
	if !done {
		settle(FixCandidate)
		pos.Fix, pos.Candidate = tr.good, tr.cand
	}
	mark := FixGood
	for _, k := range changed {
		if k.Time.Equal(f.Time) {
			mark = k.Mark
		}
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

func (t Trip) subject() Subject { return Subject{KindTrip, string(t.ID)} }

// trip reads a trip that the caller named.
func (s *Service) trip(ctx context.Context, id TripID) (Trip, error) {
	if !lookup(string(id)) {
		return Trip{}, notFound("trip_id", "trip")
	}
	t, err := s.store.Trip(ctx, s.app, id)
	return t, orNotFound(err, "trip_id", "trip")
}

// currentTrip reads a trip as of now: one whose time is up has ended, even if the store cannot write that down.
func (s *Service) currentTrip(ctx context.Context, id TripID, now time.Time) (Trip, error) {
	dueErr := s.endDue(ctx, now)
	t, err := s.trip(ctx, id)
	if err != nil {
		return t, err
	}
	return s.asOf(ctx, t, now, dueErr)
}

// asOf is how a trip reads at now. Not written tells that what was due could not be committed.
func (s *Service) asOf(ctx context.Context, t Trip, now time.Time, notWritten error) (Trip, error) {
	if notWritten != nil && ctx.Err() == nil && t.Status == Active && !t.TTL.After(now) {
		next, ended, err := s.overdue(ctx, t, now)
		if err != nil {
			return t, err
		}
		if t = next; ended {
			err = s.settle(ctx, &t, t.EndedAt, nil)
		}
		return t, err
	}
	return t, s.fillStart(ctx, &t)
}

// fillStart sets where a trip began from its first fix, if that was not known at the start.
func (s *Service) fillStart(ctx context.Context, t *Trip) error {
	if t.StartsAt != nil {
		return nil
	}
	f, ok, err := s.edgeFix(ctx, t.DriverID, t.StartedAt, t.EndedAt, false)
	if ok {
		t.StartsAt = &f.LngLat
	}
	return err
}

// edgeFix is the first, or the newest, good fix from from to to.
func (s *Service) edgeFix(ctx context.Context, d DriverID, from, to time.Time, newest bool) (Fix, bool, error) {
	for f, err := range s.store.Fixes(ctx, s.app, d, FixRange{From: from, To: to, Newest: newest, Limit: 1}) {
		return f, err == nil, err
	}
	return Fix{}, false, nil
}

// overdue is what becomes of an active trip whose ttl has come: fixes sent within TripTTL before carry it on; else it ends at its ttl.
func (s *Service) overdue(ctx context.Context, t Trip, now time.Time) (next Trip, ended bool, err error) {
	for !t.TTL.After(now) {
		f, ok, err := s.edgeFix(ctx, t.DriverID, t.TTL.Add(-s.opts.TripTTL+time.Millisecond), t.TTL, true)
		if err != nil {
			return t, false, err
		}
		if !ok {
			_, some, err := s.edgeFix(ctx, t.DriverID, t.StartedAt, t.TTL, true)
			if err != nil {
				return t, false, err
			}
			t.Status, t.EndedAt = Discarded, t.TTL
			if some {
				t.Status = Stopped
			}
			return t, true, nil
		}
		t.TTL = f.Time.Add(s.opts.TripTTL)
	}
	return t, false, nil
}

// settle fixes where a trip that has got its status and EndedAt began and ended. There is where its driver says it ended; nil: not said.
func (s *Service) settle(ctx context.Context, t *Trip, now time.Time, there *LngLat) error {
	first, some, err := s.edgeFix(ctx, t.DriverID, t.StartedAt, t.EndedAt, false)
	if err != nil {
		return err
	}
	if t.StartsAt == nil && some {
		t.StartsAt = &first.LngLat
	}
	if t.StartsAt == nil && there != nil {
		t.StartsAt = clonePtr(there)
	}
	if t.Status == Stopped {
		t.EndsAt = clonePtr(t.StartsAt)
		if some {
			last, _, err := s.edgeFix(ctx, t.DriverID, t.StartedAt, t.EndedAt, true)
			if err != nil {
				return err
			}
			t.EndsAt = &last.LngLat
			if there != nil {
				good, err := s.willBeGood(ctx, t.DriverID, last, Fix{LngLat: *there, Time: t.EndedAt})
				if err != nil {
					return err
				}
				if !good {
					there = nil
				}
			}
		}
		if there != nil {
			t.EndsAt = clonePtr(there)
		}
	}
	return s.addresses(ctx, t, now)
}

// willBeGood reports whether f, to be recorded next, will be kept and good: last is the newest good fix up to its time.
func (s *Service) willBeGood(ctx context.Context, driver DriverID, last, f Fix) (bool, error) {
	switch {
	case last.Time.Equal(f.Time):
		return false, nil
	case !jump(last, f):
		return true, nil
	}
	d, err := s.store.Driver(ctx, s.app, driver)
	if err != nil {
		return false, err
	}
	candidate := d.Position.Candidate
	return !candidate.Time.IsZero() && candidate.Time.Before(f.Time) && !jump(candidate, f), nil
}

// nearPlace is how far in metres a trip's end may be from a task's place to bear its address.
const nearPlace = 200

// addresses names where a trip begins and ends by its task's places, and leaves the rest to the Geocoder.
func (s *Service) addresses(ctx context.Context, t *Trip, now time.Time) error {
	var places []*Place
	if t.TaskID != "" {
		task, err := s.store.Task(ctx, s.app, t.TaskID)
		if err != nil {
			return err
		}
		places = []*Place{task.Pickup, task.Drop}
	}
	unnamed := false
	name := func(address *string, at *LngLat) {
		if at == nil || *address != "" {
			return
		}
		best := float64(nearPlace)
		for _, p := range places {
			if p != nil && p.LngLat != nil && p.Address != "" {
				if d := Distance(*p.LngLat, *at); d <= best && (*address == "" || d < best) {
					*address, best = p.Address, d
				}
			}
		}
		unnamed = unnamed || *address == ""
	}
	name(&t.StartLocation, t.StartsAt)
	name(&t.EndLocation, t.EndsAt)
	if t.GeocodeAt = (time.Time{}); unnamed && s.opts.Geocoder != nil {
		t.GeocodeAt = now
	}
	return nil
}

func (s *Service) geocodeTrip(ctx context.Context, id TripID) (bool, error) {
	var t Trip
	if err := s.op(ctx, "Geocode", func(now time.Time) (err error) { t, err = s.currentTrip(ctx, id, now); return err }); err != nil {
		return false, err
	}
	look := func(at *LngLat, address string) (name string) {
		if at == nil || address != "" {
			return address
		}
		s.ask(ctx, func(ctx context.Context) (err error) { name, err = s.opts.Geocoder.Address(ctx, *at); return err })
		return name
	}
	start, end := look(t.StartsAt, t.StartLocation), look(t.EndsAt, t.EndLocation)
	filled := false
	err := s.op(ctx, "Geocode", func(now time.Time) error {
		next, err := s.trip(ctx, id)
		if err != nil || next.GeocodeAt.IsZero() {
			return err
		}
		if same(next.StartsAt, t.StartsAt) && next.StartLocation == "" {
			next.StartLocation = start
		}
		if same(next.EndsAt, t.EndsAt) && next.EndLocation == "" {
			next.EndLocation = end
		}
		next.GeocodeAt = time.Time{}
		if next.StartsAt != nil && next.StartLocation == "" || next.EndsAt != nil && next.EndLocation == "" {
			next.GeocodeAt = again(next.UpdatedAt, now)
		}
		filled = start != t.StartLocation || end != t.EndLocation
		return s.commit(ctx, &Changeset{Trips: []Trip{next}})
	})
	return filled, err
}

// endDue commits the end of the application's trips whose time is up, so that what is read next has it.
func (s *Service) endDue(ctx context.Context, now time.Time) error {
	for {
		due, err := s.store.Due(ctx, DueQuery{Kind: DueTrips, App: s.app, Before: now, Limit: 100})
		if err != nil || len(due) == 0 {
			return err
		}
		for _, d := range due {
			if err := s.settleDue(ctx, TripID(d.Subject.ID), now); err != nil {
				return err
			}
		}
	}
}

// EndDueTrips ends trips of all applications whose time is up, or moves their ttl if fixes carry them on, and reports how many. [Service.Run] calls it;
// whoever reads a trip sees it as of now all the same.
func (s *Service) EndDueTrips(ctx context.Context) (int, error) {
	now := s.now()
	due, err := s.store.Due(ctx, DueQuery{Kind: DueTrips, Before: now, Limit: 100})
	if err != nil {
		return 0, s.failure(ctx, "EndDueTrips", err)
	}
	return s.each(ctx, due, func(svc *Service, subject Subject) (bool, error) {
		return true, svc.settleDue(ctx, TripID(subject.ID), now)
	})
}

// settleDue commits what has become of a trip that came due by the moment due.
func (s *Service) settleDue(ctx context.Context, id TripID, due time.Time) error {
	return s.op(ctx, "EndDueTrips", func(now time.Time) error {
		if now.Before(due) { // the clock was put back: without this it would come due again and again
			now = due
		}
		t, err := s.store.Trip(ctx, s.app, id)
		if err != nil || t.Status != Active || t.TTL.After(now) {
			return err
		}
		next, ended, err := s.overdue(ctx, t, now)
		if err != nil {
			return err
		}
		cs := &Changeset{}
		if ended {
			if err := s.endTrip(ctx, cs, next, next.Status, next.EndedAt, now, "system", nil); err != nil {
				return err
			}
		} else {
			cs.Trips = append(cs.Trips, next)
		}
		return s.commit(ctx, cs)
	})
}

// endTrip adds to cs the end of a trip.
func (s *Service) endTrip(ctx context.Context, cs *Changeset, t Trip, status TripStatus, at, now time.Time, actor string, there *LngLat) error {
	t.Status, t.EndedAt, t.UpdatedAt = status, at, now
	if err := s.settle(ctx, &t, now, there); err != nil {
		return err
	}
	typ := TripStopped
	if status == Discarded {
		typ = TripDiscarded
	}
	cs.Trips = append(cs.Trips, t)
	cs.Events = append(cs.Events, s.event(typ, t.subject(), at, now, actor, tripData(t)...))
	return nil
}

func tripData(t Trip) []string {
	return []string{"driver_id", string(t.DriverID), "tracking_id", string(t.TrackingID), "task_id", string(t.TaskID)}
}

// endTaskTrip adds to cs the end of a task's active trip, if it has one.
func (s *Service) endTaskTrip(ctx context.Context, cs *Changeset, t Task, at, now time.Time, actor string, there *LngLat) error {
	if t.Status != StatusInProgress {
		return nil
	}
	if err := s.endDue(ctx, now); err != nil {
		return err
	}
	trip, err := s.store.ActiveTrip(ctx, s.app, t.trackingID())
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.endTrip(ctx, cs, trip, Stopped, clampAt(at, trip.StartedAt, now), now, actor, there)
}

type tripStart struct {
	driver   DriverID
	tracking TrackingID
	task     *Task // the task whose trip it is; nil for none
	step     Step
}

// startTrip adds to cs a new trip; or it returns the driver's active one of that tracking id.
func (s *Service) startTrip(ctx context.Context, cs *Changeset, start tripStart, now time.Time) (t Trip, started bool, err error) {
	if err := s.endDue(ctx, now); err != nil {
		return t, false, err
	}
	switch t, err = s.store.ActiveTrip(ctx, s.app, start.tracking); {
	case err == nil && t.DriverID != start.driver:
		return t, false, conflict("Another driver has an active trip with this tracking_id.")
	case err == nil:
		if _, err := s.takeRequest(ctx, cs, start); err != nil {
			return t, false, err
		}
		return t, false, s.fillStart(ctx, &t)
	case !errors.Is(err, ErrNotFound):
		return t, false, err
	}
	before, _, err := s.store.Trips(ctx, s.app, TripFilter{Page: Page{1, 1}, TrackingID: start.tracking})
	if err != nil {
		return t, false, err
	}
	var earliest time.Time
	if len(before) > 0 {
		earliest = before[0].EndedAt
	}
	if start.task != nil && start.task.StartedAt.After(earliest) {
		earliest = start.task.StartedAt
	}
	at := clampAt(start.step.At, earliest, now)
	d, err := s.driver(ctx, start.driver)
	if err != nil {
		return t, false, err
	}
	t = Trip{
		ID: TripID(s.ids.next(now)), TrackingID: start.tracking, DriverID: start.driver, Status: Active, StartedAt: at,
		TTL: now.Add(s.opts.TripTTL), StartsAt: clonePtr(start.step.LngLat), CreatedAt: now, UpdatedAt: now,
	}
	if start.task != nil {
		t.TaskID = start.task.ID
	}
	if t.StartsAt == nil {
		f, ok, err := s.edgeFix(ctx, d.ID, at.Add(-s.opts.MaxFixAge), at, true)
		if err != nil {
			return t, false, err
		}
		if ok {
			t.StartsAt = &f.LngLat
		}
	}
	if t.Dest, err = s.takeRequest(ctx, cs, start); err != nil {
		return t, false, err
	}
	if t.Link, err = s.newLink(ctx, t.subject(), Link{}, now); err != nil {
		return t, false, err
	}
	if err := s.addresses(ctx, &t, now); err != nil {
		return t, false, err
	}
	fixes := s.stepFixes(start.step, d.ID, at, now)
	for i := range fixes[0].Fixes {
		fixes[0].Fixes[i].Trusted = true
	}
	cs.Trips = append(cs.Trips, t)
	cs.Drivers = append(cs.Drivers, d) // raises the version: the driver can't be deleted meanwhile
	cs.Fixes = append(cs.Fixes, fixes...)
	cs.Events = append(cs.Events, s.event(TripStarted, t.subject(), at, now, driverActor(d.ID), tripData(t)...))
	return t, true, nil
}

// takeRequest adds to cs that the request which the start answers is closed, if there is one, and returns its destination.
func (s *Service) takeRequest(ctx context.Context, cs *Changeset, start tripStart) (*Place, error) {
	r, err := s.store.Request(ctx, s.app, RequestID{start.driver, start.tracking})
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cs.CloseRequests = append(cs.CloseRequests, r.RequestID)
	return r.Dest, nil
}

// StartTrip begins a trip. The driver's active one of that tracking id comes back as it is. The tracking id of a task starts that task too.
// Codes: ErrInvalid; ErrNotFound when there is no such driver; ErrConflict when another driver is on it.
func (s *Service) StartTrip(ctx context.Context, driver DriverID, tracking TrackingID, step Step) (Trip, error) {
	var c check
	c.name("tracking_id", string(tracking))
	if err := first(c.err, step.check()); err != nil {
		return Trip{}, err
	}
	task, err := s.Task(ctx, TaskID(tracking))
	switch {
	case err == nil && (task.DriverID != driver || !task.Open()):
		return Trip{}, conflict("Only the driver who has this task open can start its trip.")
	case err == nil:
		_, trip, err := s.StartTask(ctx, driver, task.ID, step)
		return trip, err
	case !errors.Is(err, ErrNotFound):
		return Trip{}, err
	}
	release, err := s.locks.take(ctx, "driver:"+string(s.app)+":"+string(driver), "tracking:"+string(s.app)+":"+string(tracking))
	if err != nil {
		return Trip{}, s.failure(ctx, "StartTrip", err)
	}
	defer release()
	var trip Trip
	err = s.op(ctx, "StartTrip", func(now time.Time) error {
		if _, err := s.driver(ctx, driver); err != nil {
			return err
		}
		cs := &Changeset{}
		t, started, err := s.startTrip(ctx, cs, tripStart{driver: driver, tracking: tracking, step: step}, now)
		if err != nil {
			return err
		}
		if trip = t; !started && cs.CloseRequests == nil {
			return nil
		}
		return s.commit(ctx, cs)
	})
	if err != nil {
		return Trip{}, err
	}
	return trip, nil
}

// StopTrip ends a trip of the driver's as stopped; a task that it belongs to stays in progress. Again is nothing.
// Codes: ErrInvalid; ErrNotFound when it is another driver's; ErrConflict when it was discarded.
func (s *Service) StopTrip(ctx context.Context, driver DriverID, id TripID, step Step) (Trip, error) {
	return s.finishTrip(ctx, "StopTrip", driver, id, Stopped, step)
}

// DiscardTrip ends a trip of the driver's that was none. Again is nothing.
// Codes: ErrInvalid; ErrNotFound when it is another driver's; ErrConflict when it was stopped.
func (s *Service) DiscardTrip(ctx context.Context, driver DriverID, id TripID, step Step) (Trip, error) {
	return s.finishTrip(ctx, "DiscardTrip", driver, id, Discarded, step)
}

func (s *Service) finishTrip(ctx context.Context, name string, driver DriverID, id TripID, status TripStatus, step Step) (Trip, error) {
	if err := step.check(); err != nil {
		return Trip{}, err
	}
	var trip Trip
	err := s.op(ctx, name, func(now time.Time) error {
		if err := s.endDue(ctx, now); err != nil {
			return err
		}
		t, err := s.trip(ctx, id)
		switch {
		case err != nil:
			return err
		case t.DriverID != driver || driver == "":
			return notFound("trip_id", "trip")
		case t.Status == status:
			trip = t
			return s.fillStart(ctx, &trip)
		case t.Status != Active:
			return conflict("The trip has ended already, in another way.")
		}
		at := clampAt(step.At, t.StartedAt, now)
		cs := &Changeset{Fixes: s.stepFixes(step, driver, at, now)}
		if err := s.endTrip(ctx, cs, t, status, at, now, driverActor(driver), step.LngLat); err != nil {
			return err
		}
		trip = cs.Trips[0]
		trip.Version++
		return s.commit(ctx, cs)
	})
	if err != nil {
		return Trip{}, err
	}
	return trip, nil
}

// TripDetail is a trip with what its path says.
type TripDetail struct {
	Trip
	Distance float64       // metres along the path
	Moving   time.Duration // from the first to the last fix, less the stays of at least 60 s within 25 m
}

// Trip reads one. Codes: ErrNotFound.
func (s *Service) Trip(ctx context.Context, id TripID) (TripDetail, error) {
	var t TripDetail
	err := s.op(ctx, "Trip", func(now time.Time) (err error) {
		if t.Trip, err = s.currentTrip(ctx, id, now); err != nil {
			return err
		}
		t.Distance, t.Moving, err = s.measure(ctx, t.Trip)
		return err
	})
	if err != nil {
		return TripDetail{}, err
	}
	return t, nil
}

const (
	stayRadius = 25 // metres
	stayTime   = time.Minute
)

func (s *Service) measure(ctx context.Context, t Trip) (metres float64, moving time.Duration, err error) {
	var path []Fix
	for f, err := range s.path(ctx, t) {
		if err != nil {
			return 0, 0, err
		}
		path = append(path, f)
	}
	metres, moving = measurePath(path)
	return metres, moving, nil
}

// measurePath is the length of a path and the time on the move. A stay begins at a fix and lasts while the next ones keep within stayRadius of it.
func measurePath(path []Fix) (metres float64, moving time.Duration) {
	for i := 1; i < len(path); i++ {
		metres += Distance(path[i-1].LngLat, path[i].LngLat)
		moving += path[i].Time.Sub(path[i-1].Time)
	}
	for i := 0; i < len(path); {
		j := i
		for j+1 < len(path) && Distance(path[i].LngLat, path[j+1].LngLat) <= stayRadius {
			j++
		}
		if stay := path[j].Time.Sub(path[i].Time); stay >= stayTime {
			moving -= stay
			i = j
		}
		i++
	}
	return metres, moving
}

func (s *Service) path(ctx context.Context, t Trip) iter.Seq2[Fix, error] {
	return s.store.Fixes(ctx, s.app, t.DriverID, FixRange{From: t.StartedAt, To: t.EndedAt})
}

// TripPath returns a trip and its path: the driver's good fixes of its window, ascending by time. Late fixes extend it. The path is read while it is ranged over;
// an error ends it. Codes: ErrNotFound.
func (s *Service) TripPath(ctx context.Context, id TripID) (Trip, iter.Seq2[Fix, error], error) {
	var t Trip
	err := s.op(ctx, "TripPath", func(now time.Time) (err error) { t, err = s.currentTrip(ctx, id, now); return err })
	if err != nil {
		return Trip{}, nil, err
	}
	return t, func(yield func(Fix, error) bool) {
		for f, err := range s.path(ctx, t) {
			if err != nil {
				yield(Fix{}, s.failure(ctx, "TripPath", err))
				return
			}
			if !yield(f, nil) {
				return
			}
		}
	}, nil
}

// Trips lists newest first, and tells whether there is a further page. Codes: ErrInvalid.
func (s *Service) Trips(ctx context.Context, f TripFilter) (list []Trip, more bool, err error) {
	var c check
	c.page(&f.Page, 20)
	if f.Status < 0 || f.Status > Discarded {
		c.fail("status", "must be 0 (all), 1 (active), 2 (stopped) or 3 (discarded).")
	}
	if c.err != nil {
		return nil, false, c.err
	}
	if f.DriverID != "" && !lookup(string(f.DriverID)) || f.TrackingID != "" && !lookup(string(f.TrackingID)) {
		return nil, false, nil
	}
	err = s.op(ctx, "Trips", func(now time.Time) (err error) {
		notWritten := s.endDue(ctx, now)
		if list, more, err = s.store.Trips(ctx, s.app, f); err != nil {
			return err
		}
		shown := list[:0]
		for _, t := range list {
			if t, err = s.asOf(ctx, t, now, notWritten); err != nil {
				return err
			}
			if f.Status == 0 || t.Status == f.Status {
				shown = append(shown, t)
			}
		}
		list = shown
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return list, more, nil
}

// NewRequest asks a driver to start a trip.
type NewRequest struct {
	DriverID   DriverID
	TrackingID TrackingID
	Message    string // the text of the notice, up to 4,000 characters
	Dest       string // "lng,lat", "[lng,lat]", or an address of up to 1,000 characters
	Desc       string // more, up to 4,000 characters; may hold HTML
}

// RequestTrip sends a driver the request to start a trip; it starts and reserves nothing. The same again is a new notice.
// Codes: ErrInvalid; ErrNotFound when there is no such driver.
func (s *Service) RequestTrip(ctx context.Context, n NewRequest) error {
	var c check
	if n.DriverID == "" {
		c.fail("user_id", "is required.")
	}
	c.name("tracking_id", string(n.TrackingID))
	c.text("message", n.Message, 4000)
	c.text("dest", n.Dest, 1000)
	c.text("desc", n.Desc, 4000)
	if c.err != nil {
		return c.err
	}
	return s.op(ctx, "RequestTrip", func(now time.Time) error {
		d, err := s.driver(ctx, n.DriverID)
		if err != nil {
			return orNotFound(err, "user_id", "driver")
		}
		e := s.event(TripRequested, d.subject(), now, now, s.actor, "driver_id", string(d.ID), "tracking_id", string(n.TrackingID))
		e.Notices = []Notice{{DriverID: d.ID, Kind: NoticeRequest, TrackingID: n.TrackingID}}
		r := Request{RequestID: RequestID{d.ID, n.TrackingID}, Message: n.Message, Dest: parseDest(n.Dest), Desc: n.Desc, CreatedAt: now}
		return s.commit(ctx, &Changeset{Push: []Request{r}, Events: []Event{e}})
	})
}

// parseDest reads "lng,lat" or "[lng,lat]"; any other text is an address.
func parseDest(v string) *Place {
	if v == "" {
		return nil
	}
	inner := v
	if strings.HasPrefix(v, "[") && strings.HasSuffix(v, "]") {
		inner = v[1 : len(v)-1]
	}
	if lng, lat, ok := strings.Cut(inner, ","); ok {
		x, okX := parseDegrees(lng)
		y, okY := parseDegrees(lat)
		if p := (LngLat{x, y}); okX && okY && p.Valid() {
			return &Place{LngLat: &p}
		}
	}
	return &Place{Address: v}
}

// parseDegrees reads a plain decimal number, blanks around it allowed; ParseFloat alone takes 0x1p3, 1_0 and Inf too.
func parseDegrees(v string) (float64, bool) {
	v = strings.TrimSpace(v)
	if strings.Trim(v, "-.0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(v, 64)
	return n, err == nil
}

// Requests lists a driver's open trip requests, oldest first. Codes: ErrNotFound.
func (s *Service) Requests(ctx context.Context, driver DriverID) (list []Request, err error) {
	err = s.op(ctx, "Requests", func(time.Time) error {
		if _, err := s.driver(ctx, driver); err != nil {
			return err
		}
		list, err = s.store.Requests(ctx, s.app, driver)
		return err
	})
	return list, err
}

// TripLink returns the token of the trip's tracking link: ask again and it is the same, until it expires or is revoked; then a new one is made.
// Codes: ErrNotFound.
func (s *Service) TripLink(ctx context.Context, id TripID) (token string, err error) {
	err = s.op(ctx, "TripLink", func(now time.Time) error {
		if _, err := s.currentTrip(ctx, id, now); err != nil {
			return err
		}
		t, err := s.trip(ctx, id)
		if err != nil {
			return err
		}
		var made bool
		token, made, err = s.link(ctx, t.subject(), &t.Link, t.EndedAt, now)
		if err != nil || !made {
			return err
		}
		return s.commit(ctx, &Changeset{Trips: []Trip{t}})
	})
	return token, err
}

// RevokeTripLink makes the trip's tracking link dead at once. Codes: ErrNotFound.
func (s *Service) RevokeTripLink(ctx context.Context, id TripID) error {
	return s.op(ctx, "RevokeTripLink", func(now time.Time) error {
		t, err := s.trip(ctx, id)
		if err != nil || !t.Link.revoke() {
			return err
		}
		return s.commit(ctx, &Changeset{Trips: []Trip{t}})
	})
}
