package memory

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	"github.com/seed-8aba7b13/tracking"
)

// eventRow is an event and its deliveries, one for each outbox that it went to.
type eventRow struct {
	app        *application
	subject    *subject
	kept       packedEvent
	notices    []tracking.Notice // never changed
	deliveries []delivery        // never moved
	seq        int64             // for its subject
	order      int64             // of commit, over all applications
	recorded   int64             // UTC ms of RecordedAt
	no         uint32
}

// newEventRow is the row of an event, which is not in the lists yet, with so many deliveries to be set.
func newEventRow(a *application, e *tracking.Event, deliveries int) *eventRow {
	var r *eventRow
	if deliveries == 1 { // as most have, in one piece of memory
		both := new(struct {
			eventRow
			only [1]delivery
		})
		r = &both.eventRow
		r.deliveries = both.only[:]
	} else if r = new(eventRow); deliveries > 0 {
		r.deliveries = make([]delivery, deliveries)
	}
	r.app, r.kept, r.seq, r.recorded = a, packEvent(e), e.Seq, e.RecordedAt.UnixMilli()
	return r
}

// event is the row's event.
func (r *eventRow) event() tracking.Event {
	e := r.kept.event()
	e.Seq, e.Notices = r.seq, append([]tracking.Notice(nil), r.notices...)
	return e
}

// in is the event's delivery from an outbox; nil when it never went there.
func (r *eventRow) in(o *outbox) *delivery {
	for i := range r.deliveries {
		if d := &r.deliveries[i]; d.outbox == o {
			return d
		}
	}
	return nil
}

// over reports whether nothing of the event is to be delivered, so that it may be purged.
func (r *eventRow) over() bool {
	return !slices.ContainsFunc(r.deliveries, func(d delivery) bool { return d.state == pending })
}

// delivery is that of an event from an outbox.
type delivery struct {
	row    *eventRow
	outbox *outbox

	// state is changed under the application's lock together with the box's, so that either is
	// enough to read it.
	state deliveryState

	// The box's lock guards the rest.
	attempts int   // so far
	retryAt  int64 // UTC ms; not before then
}

type deliveryState int

const (
	delivered deliveryState = iota
	pending
	dead
)

func (r *eventRow) compare(o *eventRow) int { return cmp.Compare(r.order, o.order) }

// isDead reports whether the event's delivery from an outbox was given up.
func (r *eventRow) isDead(o *outbox) bool {
	d := r.in(o)
	return d != nil && d.state == dead
}

func byRecording(a, b *eventRow) int {
	return cmp.Or(cmp.Compare(a.recorded, b.recorded), a.compare(b))
}

// events holds an application's events.
type events struct {
	byID      lists // by codeOf the id, of numbers in rows
	rows      slab[*eventRow]
	all       list[*eventRow]
	dead      map[*outbox]*list[*eventRow]
	settled   list[*eventRow] // those that are over, by RecordedAt: they may be purged
	bySubject lists           // by codeOfSubject, of numbers in subjects
	subjects  slab[*subject]
}

// subject is what an event is about. It outlives its events, whose numbers must not begin anew.
type subject struct {
	of     tracking.Subject
	no     uint32
	seq    int64 // of its last event
	events list[*eventRow]
	queues []*queue  // those in which it has something to deliver, at most one of each outbox
	only   [1]*queue // where these are while there is no second one
}

func newEvents() events {
	return events{dead: make(map[*outbox]*list[*eventRow])}
}

// row is an event's, nil if there is none.
func (x *events) row(id string) *eventRow {
	return find(&x.byID, codeOf(id), func(no uint32) *eventRow {
		if r := *x.rows.at(no); r.kept.id() == id {
			return r
		}
		return nil
	})
}

func codeOfSubject(of tracking.Subject) uint64 {
	return codeOf(of.ID) ^ bits.RotateLeft64(codeOf(string(of.Kind)), 1)
}

// subject is what events are about; nil if there has been none.
func (x *events) subject(of tracking.Subject) *subject {
	return find(&x.bySubject, codeOfSubject(of), func(no uint32) *subject {
		if s := *x.subjects.at(no); s.of == of {
			return s
		}
		return nil
	})
}

// open is what events are about; it is made when it is new.
func (x *events) open(of tracking.Subject) *subject {
	s := x.subject(of)
	if s == nil {
		s = &subject{of: of}
		s.no = x.subjects.put(s)
		x.bySubject.insert(codeOfSubject(of), s.no, cmp.Compare[uint32])
	}
	return s
}

// forget lets go of a subject without events.
func (x *events) forget(s *subject) {
	x.bySubject.remove(codeOfSubject(s.of), s.no, cmp.Compare[uint32])
	x.subjects.drop(s.no)
}

// add appends an event, and gives it its Seq.
func (x *events) add(r *eventRow, of tracking.Subject) {
	s := x.open(of)
	r.seq = s.seq + 1
	x.insert(r, s)
}

// insert appends an event of a subject that has its Seq.
func (x *events) insert(r *eventRow, s *subject) {
	r.subject, s.seq = s, max(s.seq, r.seq)
	s.events.insert(r, (*eventRow).compare)
	r.no = x.rows.put(r)
	x.byID.insert(codeOf(r.kept.id()), r.no, cmp.Compare[uint32])
	x.all.insert(r, (*eventRow).compare)
	if r.over() {
		x.settled.insert(r, byRecording)
	}
}

// remove takes an event out.
func (x *events) remove(r *eventRow) {
	r.subject.events.remove(r, (*eventRow).compare)
	x.byID.remove(codeOf(r.kept.id()), r.no, cmp.Compare[uint32])
	x.rows.drop(r.no)
	x.all.remove(r, (*eventRow).compare)
	x.settled.remove(r, byRecording)
	for i := range r.deliveries {
		if d := &r.deliveries[i]; d.state == dead {
			x.dead[d.outbox].remove(r, (*eventRow).compare)
		}
	}
}

// settle changes the state of a delivery. The box's lock is held, too.
func (x *events) settle(d *delivery, to deliveryState) {
	if d.state == to {
		return
	}
	r, was := d.row, d.row.over()
	if d.state == dead {
		x.dead[d.outbox].remove(r, (*eventRow).compare)
	}
	d.state = to
	if to == dead {
		if x.dead[d.outbox] == nil {
			x.dead[d.outbox] = new(list[*eventRow])
		}
		x.dead[d.outbox].insert(r, (*eventRow).compare)
	}
	switch over := r.over(); {
	case over && !was:
		x.settled.insert(r, byRecording)
	case was && !over:
		x.settled.remove(r, byRecording)
	}
}

// Events implements [tracking.EventReader].
func (s *Store) Events(
	ctx context.Context, app tracking.AppID, f tracking.EventFilter,
) ([]tracking.Event, bool, error) {
	a, err := s.read(ctx, app)
	if err != nil {
		return nil, false, err
	}
	if a == nil {
		if f.After != "" {
			err = tracking.ErrNotFound
		}
		return nil, false, err
	}
	rows, more, err := a.events.page(f, s.boxes.find(f.Outbox))
	a.mu.RUnlock()
	return copies(rows, (*eventRow).event), more, err
}

// page finds the events of a filter; o is its outbox, nil when there is none of that name.
func (x *events) page(f tracking.EventFilter, o *outbox) (page []*eventRow, more bool, err error) {
	var after int64
	if f.After != "" {
		r := x.row(f.After)
		if r == nil {
			return nil, false, tracking.ErrNotFound
		}
		after = r.order
	}
	source := &x.all
	if f.Dead {
		if source = x.dead[o]; source == nil {
			return nil, false, nil
		}
	}
	var keep func(*eventRow) bool
	if f.Subject != (tracking.Subject{}) {
		s := x.subject(f.Subject)
		if s == nil {
			return nil, false, nil
		}
		if s.events.len() <= source.len() {
			source = &s.events
		}
		keep = func(r *eventRow) bool { return r.subject == s && (!f.Dead || r.isDead(o)) }
	}
	c := source.at(func(r *eventRow) bool { return r.order > after })
	page, more = take(c.next, 0, max(f.Limit, 0), keep)
	return page, more, nil
}

// noticeRow is a notice in a driver's feed.
type noticeRow struct {
	notice *tracking.Notice // its event's
	driver *driverRow
	order  int64 // of commit
}

func byNoticeID(a, b *noticeRow) int { return cmp.Compare(a.notice.ID, b.notice.ID) }

func byNoticeTime(a, b *noticeRow) int {
	return cmp.Or(a.notice.Time.Compare(b.notice.Time), cmp.Compare(a.order, b.order))
}

// feed is a driver's notices. Its ids go on from those of the drivers who are gone: were they to
// begin anew, who has the id next could be taken to have had notices that the one before had.
type feed struct {
	last    int64 // the last id that was given
	purged  int64 // the greatest id that has been purged
	notices list[*noticeRow]
}

// addNotice appends a notice, and gives it its ID.
func (a *application) addNotice(r *noticeRow) {
	f := &r.driver.more().feed
	f.last++
	r.notice.ID = f.last
	f.notices.push(r) // to look at the one before takes longer than all the rest of it
	a.notices.insert(r, byNoticeTime)
}

// purgeNotice removes a notice.
func (a *application) purgeNotice(r *noticeRow) {
	f := &r.driver.more().feed
	f.purged = max(f.purged, r.notice.ID)
	f.notices.remove(r, byNoticeID)
	a.notices.remove(r, byNoticeTime)
}

// Notices implements [tracking.EventReader].
func (s *Store) Notices(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, after int64, limit int,
) ([]tracking.Notice, bool, error) {
	a, err := s.read(ctx, app)
	if err != nil {
		return nil, false, err
	}
	if a == nil {
		return nil, after > 0, nil
	}
	defer a.mu.RUnlock()
	d := a.drivers.row(driver)
	if d == nil {
		return nil, after > 0, nil
	}
	f := &d.others().feed
	c := f.notices.at(func(r *noticeRow) bool { return r.notice.ID > after })
	rows, _ := take(c.next, 0, max(limit, 0), nil)
	page := copies(rows, func(r *noticeRow) tracking.Notice { return *r.notice })
	return page, after < f.purged || after > f.last, nil
}
