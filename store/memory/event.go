package memory

import (
	"cmp"
	"context"

	"github.com/seed-8aba7b13/tracking"
)

// eventRow is an event and the state of its delivery.
type eventRow struct {
	app   *application
	event *tracking.Event // never changed
	order int64           // of commit, over all applications

	// state is changed under the application's lock together with the outbox's, so that either is enough to read it.
	state eventState

	// The outbox's lock guards the rest.
	attempts int   // so far
	retryAt  int64 // UTC ms; not before then
}

type eventState int

const (
	delivered eventState = iota // or never to be delivered
	pending
	dead
)

func (r *eventRow) compare(o *eventRow) int { return cmp.Compare(r.order, o.order) }

func byRecording(a, b *eventRow) int {
	return cmp.Or(a.event.RecordedAt.Compare(b.event.RecordedAt), a.compare(b))
}

// events holds an application's events.
type events struct {
	byID     map[string]*eventRow
	all      list[*eventRow]
	dead     list[*eventRow]
	settled  list[*eventRow] // those delivered or dead, by RecordedAt: they may be purged
	subjects map[tracking.Subject]*subject
}

// subject is what an event is about. It outlives its events, whose numbers must not begin anew.
type subject struct {
	seq    int64 // of its last event
	events list[*eventRow]
	queue  *queue // nil while it has nothing to deliver
}

func newEvents() events {
	return events{byID: make(map[string]*eventRow), subjects: make(map[tracking.Subject]*subject)}
}

// add appends an event, and gives it its Seq.
func (x *events) add(r *eventRow) *subject {
	s := x.subjects[r.event.Subject]
	if s == nil {
		s = new(subject)
		x.subjects[r.event.Subject] = s
	}
	s.seq++
	r.event.Seq = s.seq
	s.events.insert(r, (*eventRow).compare)
	x.byID[r.event.ID] = r
	x.all.insert(r, (*eventRow).compare)
	if r.state != pending {
		x.settled.insert(r, byRecording)
	}
	return s
}

// remove takes an event out.
func (x *events) remove(r *eventRow) {
	x.subjects[r.event.Subject].events.remove(r, (*eventRow).compare)
	delete(x.byID, r.event.ID)
	x.all.remove(r, (*eventRow).compare)
	x.settled.remove(r, byRecording)
	if r.state == dead {
		x.dead.remove(r, (*eventRow).compare)
	}
}

// settle changes the state of an event's delivery. The outbox's lock is held, too.
func (x *events) settle(r *eventRow, to eventState) {
	if r.state == to {
		return
	}
	if r.state == dead {
		x.dead.remove(r, (*eventRow).compare)
	}
	if r.state != pending {
		x.settled.remove(r, byRecording)
	}
	r.state = to
	if to == dead {
		x.dead.insert(r, (*eventRow).compare)
	}
	if to != pending {
		x.settled.insert(r, byRecording)
	}
}

// Events implements [tracking.EventReader].
func (s *Store) Events(ctx context.Context, app tracking.AppID, f tracking.EventFilter) ([]tracking.Event, bool, error) {
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
	rows, more, err := a.events.page(f)
	a.mu.RUnlock()
	return copies(rows, func(r *eventRow) tracking.Event { return r.event.Clone() }), more, err
}

// page finds the events of a filter.
func (x *events) page(f tracking.EventFilter) (page []*eventRow, more bool, err error) {
	var after int64
	if f.After != "" {
		r := x.byID[f.After]
		if r == nil || f.Subject != (tracking.Subject{}) && r.event.Subject != f.Subject {
			return nil, false, tracking.ErrNotFound
		}
		after = r.order
	}
	source := &x.all
	if f.Dead {
		source = &x.dead
	}
	var keep func(*eventRow) bool
	if f.Subject != (tracking.Subject{}) {
		s := x.subjects[f.Subject]
		if s == nil {
			return nil, false, nil
		}
		if s.events.len() <= source.len() {
			source = &s.events
		}
		keep = func(r *eventRow) bool { return r.event.Subject == f.Subject && (!f.Dead || r.state == dead) }
	}
	c := source.at(func(r *eventRow) bool { return r.order > after })
	page, more = take(c.next, 0, max(f.Limit, 0), keep)
	return page, more, nil
}

// noticeRow is a notice in a driver's feed.
type noticeRow struct {
	notice tracking.Notice
	order  int64 // of commit
}

func byNoticeID(a, b *noticeRow) int { return cmp.Compare(a.notice.ID, b.notice.ID) }

func byNoticeTime(a, b *noticeRow) int {
	return cmp.Or(a.notice.Time.Compare(b.notice.Time), cmp.Compare(a.order, b.order))
}

// feeds holds the notices of an application's drivers.
type feeds struct {
	byDriver map[tracking.DriverID]*feed
	all      list[*noticeRow] // by time
}

// feed is a driver's notices. It outlives them, and the driver: were ids to begin anew, an app that has been away would take new notices for old.
type feed struct {
	last    int64 // the last id that was given
	purged  int64 // the greatest id that has been purged
	notices list[*noticeRow]
}

// add appends a notice, and gives it its ID.
func (x *feeds) add(r *noticeRow) {
	f := x.byDriver[r.notice.DriverID]
	if f == nil {
		f = new(feed)
		x.byDriver[r.notice.DriverID] = f
	}
	f.last++
	r.notice.ID = f.last
	f.notices.insert(r, byNoticeID)
	x.all.insert(r, byNoticeTime)
}

// remove purges a notice.
func (x *feeds) remove(r *noticeRow) {
	f := x.byDriver[r.notice.DriverID]
	f.purged = max(f.purged, r.notice.ID)
	f.notices.remove(r, byNoticeID)
	x.all.remove(r, byNoticeTime)
}

// removeAll purges a driver's feed.
func (x *feeds) removeAll(driver tracking.DriverID) {
	f := x.byDriver[driver]
	if f == nil {
		return
	}
	for c := f.notices.start(0); ; {
		r, ok := c.next()
		if !ok {
			break
		}
		x.all.remove(r, byNoticeTime)
	}
	f.notices, f.purged = list[*noticeRow]{}, f.last
}

// Notices implements [tracking.EventReader].
func (s *Store) Notices(ctx context.Context, app tracking.AppID, driver tracking.DriverID, after int64, limit int) ([]tracking.Notice, bool, error) {
	a, err := s.read(ctx, app)
	if err != nil {
		return nil, false, err
	}
	if a == nil {
		return nil, after > 0, nil
	}
	defer a.mu.RUnlock()
	f := a.feeds.byDriver[driver]
	if f == nil {
		return nil, after > 0, nil
	}
	c := f.notices.at(func(r *noticeRow) bool { return r.notice.ID > after })
	rows, _ := take(c.next, 0, max(limit, 0), nil)
	page := copies(rows, func(r *noticeRow) tracking.Notice { return r.notice })
	return page, after < f.purged || after > f.last, nil
}
