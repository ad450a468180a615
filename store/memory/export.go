package memory

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// pageRows is how many rows are read under one lock.
const pageRows = 256

// Rows implements [tracking.Store]. Of an application all but its fixes, notices and events are of
// one moment: who writes waits while they are listed, about a tenth of a second for a million tasks. The
// fixes and what is undelivered come as they are when it is their turn, the notices and events up to
// that moment.
func (s *Store) Rows(ctx context.Context, q tracking.RowQuery) iter.Seq2[tracking.Row, error] {
	return func(yield func(tracking.Row, error) bool) {
		e := &export{Store: s, ctx: ctx, query: q, yield: yield}
		if err := s.ready(ctx); err != nil {
			yield(tracking.Row{}, err)
			return
		}
		e.store()
		apps := s.applications(q.App, nil)
		slices.SortFunc(apps, func(a, b *application) int { return strings.Compare(string(a.id), string(b.id)) })
		for _, a := range apps {
			e.application(a)
		}
	}
}

// export is a walk over rows. Once it has stopped, nothing more is sent.
type export struct {
	*Store
	ctx     context.Context
	query   tracking.RowQuery
	yield   func(tracking.Row, error) bool
	stopped bool
	sent    int
}

func (e *export) send(app tracking.AppID, v tracking.RowValue) {
	if e.stopped {
		return
	}
	if e.sent++; e.sent%pageRows == 0 {
		if err := e.ready(e.ctx); err != nil {
			e.stopped = true
			e.yield(tracking.Row{}, err)
			return
		}
	}
	e.stopped = !e.yield(tracking.Row{App: app, Value: v}, nil)
}

// store sends what is of no application.
func (e *export) store() {
	e.mu.RLock()
	secret, memos := bytes.Clone(e.secret), maps.Clone(e.memos)
	e.mu.RUnlock()
	if e.query.Wants(tracking.RowSecret) && secret != nil {
		e.send("", tracking.StoreSecret{Value: tracking.Hash(secret)})
	}
	if e.query.Wants(tracking.RowMemo) {
		for _, name := range slices.Sorted(maps.Keys(memos)) {
			e.send("", tracking.Memo{Name: name, Value: tracking.Secret(memos[name])})
		}
	}
}

// moment is what of an application is read at once: rows that are replaced, and never changed.
type moment struct {
	marks     tracking.Marks
	rows      []*driverRow
	drivers   []tracking.DriverRow
	invites   []*tracking.Invite
	requests  []*tracking.Request
	keys      []*tracking.Key
	tasks     []packedTask
	trips     []*tracking.Trip
	files     []*fileRow
	lastEvent int64
}

func (e *export) moment(a *application) (m moment) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	m.marks = tracking.Marks{Version: a.lastVersion, Notice: a.lastNotice}
	for n := range walk(&a.drivers.all) {
		r := a.drivers.rows.at(n)
		if e.query.Driver != "" && r.ID() != e.query.Driver {
			continue
		}
		m.rows = append(m.rows, r)
		o := r.others()
		m.drivers = append(m.drivers, tracking.DriverRow{
			Driver: a.driver(r), LastNotice: o.feed.last, PurgedNotice: o.feed.purged,
		})
		if o.invite != nil {
			m.invites = append(m.invites, o.invite)
		}
		for _, id := range slices.Sorted(maps.Keys(o.requests)) {
			m.requests = append(m.requests, o.requests[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.keys)) {
		m.keys = append(m.keys, a.keys[id])
	}
	if e.query.Wants(tracking.RowTask) || e.query.Wants(tracking.RowSubject) {
		m.tasks = make([]packedTask, 0, a.tasks.all.all.len())
		for n := range walk(&a.tasks.all.all) {
			m.tasks = append(m.tasks, a.tasks.rows.at(n).kept)
		}
	}
	if e.query.Wants(tracking.RowTrip) || e.query.Wants(tracking.RowSubject) {
		m.trips = make([]*tracking.Trip, 0, a.trips.all.len())
		for r := range walk(&a.trips.all) {
			m.trips = append(m.trips, r.trip)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.files.byID)) {
		m.files = append(m.files, a.files.byID[id])
	}
	last := a.events.all.end(0)
	if r, ok := last.prev(); ok {
		m.lastEvent = r.order
	}
	return m
}

// walk goes over the elements of a list.
func walk[T any](l *list[T]) iter.Seq[T] {
	return func(yield func(T) bool) {
		c := l.start(0)
		for v, ok := c.next(); ok && yield(v); v, ok = c.next() {
		}
	}
}

// sendAll sends rows of one kind, if they are wanted.
func sendAll[T any](e *export, a *application, kind tracking.RowKind, list []T, value func(T) tracking.RowValue) {
	if !e.query.Wants(kind) {
		return
	}
	for _, v := range list {
		if e.stopped {
			return
		}
		e.send(a.id, value(v))
	}
}

func (e *export) application(a *application) {
	if e.stopped {
		return
	}
	m := e.moment(a)
	sendAll(e, a, tracking.RowApplication, []tracking.Marks{m.marks},
		func(v tracking.Marks) tracking.RowValue { return v })
	sendAll(e, a, tracking.RowDriver, m.drivers, func(d tracking.DriverRow) tracking.RowValue { return d })
	sendAll(e, a, tracking.RowInvite, m.invites, func(i *tracking.Invite) tracking.RowValue { return i.Clone() })
	sendAll(e, a, tracking.RowRequest, m.requests, func(r *tracking.Request) tracking.RowValue { return r.Clone() })
	sendAll(e, a, tracking.RowKey, m.keys, func(k *tracking.Key) tracking.RowValue { return *k })
	sendAll(e, a, tracking.RowTask, m.tasks, func(t packedTask) tracking.RowValue { return t.task() })
	sendAll(e, a, tracking.RowTrip, m.trips, func(t *tracking.Trip) tracking.RowValue { return t.Clone() })
	if e.query.Wants(tracking.RowFix) {
		for i, r := range m.rows {
			e.fixes(a, r, &m.drivers[i])
		}
	}
	if e.query.Wants(tracking.RowNotice) {
		for i, r := range m.rows {
			e.notices(a, r, &m.drivers[i])
		}
	}
	if e.query.Wants(tracking.RowSubject) {
		e.subjects(a, m)
	}
	if e.query.Wants(tracking.RowEvent) {
		e.events(a, m.lastEvent)
	}
	sendAll(e, a, tracking.RowFile, m.files, func(f *fileRow) tracking.RowValue {
		file := tracking.File{TaskID: f.task, Type: f.typ, At: f.at, Data: bytes.Clone(f.data)}
		return tracking.FileRow{ID: f.id, File: file, Named: !f.loose}
	})
}

// fixes sends a driver's, a page under each lock, for as long as the row is his.
func (e *export) fixes(a *application, r *driverRow, d *tracking.DriverRow) {
	for from := int64(math.MinInt64); !e.stopped; {
		a.mu.RLock()
		var page []tracking.KeptFix
		if r.seq == d.Seq {
			mu := a.lock(r)
			mu.Lock()
			page = r.log.from(from, pageRows)
			mu.Unlock()
		}
		a.mu.RUnlock()
		for _, f := range page {
			e.send(a.id, tracking.FixRow{DriverID: d.ID, KeptFix: f})
		}
		if len(page) < pageRows {
			return
		}
		from = page[len(page)-1].Time.UnixMilli() + 1
	}
}

// notices sends a driver's up to the last one of the moment, for as long as the row is his.
func (e *export) notices(a *application, r *driverRow, d *tracking.DriverRow) {
	for after := int64(0); !e.stopped; {
		a.mu.RLock()
		var page []*noticeRow
		more := false
		if r.seq == d.Seq {
			c := r.others().feed.notices.at(func(n *noticeRow) bool { return n.notice.ID > after })
			page, more = take(c.next, 0, pageRows, nil)
		}
		a.mu.RUnlock()
		for _, n := range page {
			if after = n.notice.ID; after > d.LastNotice {
				return
			}
			e.send(a.id, *n.notice)
		}
		if !more {
			return
		}
	}
}

// subjects sends the counters that no event tells: first those of rows, and then of what has none.
func (e *export) subjects(a *application, m moment) {
	counter := func(of tracking.Subject) (n int64) { // the application is locked
		s := a.events.subject(of)
		if s == nil {
			return 0
		}
		last := s.events.end(0)
		if r, ok := last.prev(); ok && r.seq == s.seq {
			return 0
		}
		return s.seq
	}
	var page []tracking.SubjectRow
	flush := func() {
		for _, s := range page {
			e.send(a.id, s)
		}
		page = page[:0]
	}
	each := func(n int, of func(i int) tracking.Subject) {
		for i := 0; i < n && !e.stopped; {
			a.mu.RLock()
			for end := min(i+pageRows, n); i < end; i++ {
				if seq := counter(of(i)); seq > 0 {
					page = append(page, tracking.SubjectRow{Subject: of(i), Seq: seq})
				}
			}
			a.mu.RUnlock()
			flush()
		}
	}
	each(len(m.drivers), func(i int) tracking.Subject {
		return tracking.Subject{Kind: tracking.KindDriver, ID: string(m.drivers[i].ID)}
	})
	each(len(m.tasks), func(i int) tracking.Subject {
		return tracking.Subject{Kind: tracking.KindTask, ID: string(m.tasks[i].head().id)}
	})
	each(len(m.trips), func(i int) tracking.Subject {
		return tracking.Subject{Kind: tracking.KindTrip, ID: string(m.trips[i].ID)}
	})
	a.mu.RLock()
	for no := uint32(0); no < a.events.subjects.used; no++ {
		if s := *a.events.subjects.at(no); s != nil {
			if seq := counter(s.of); seq > 0 && !a.has(s.of) {
				page = append(page, tracking.SubjectRow{Subject: s.of, Seq: seq})
			}
		}
		if (no+1)%pageRows == 0 {
			a.mu.RUnlock()
			a.mu.RLock()
		}
	}
	a.mu.RUnlock()
	slices.SortFunc(page, func(a, b tracking.SubjectRow) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.ID, b.ID))
	})
	flush()
}

// has reports whether a subject has a row.
func (a *application) has(s tracking.Subject) bool {
	switch s.Kind {
	case tracking.KindTask:
		return a.tasks.row(tracking.TaskID(s.ID)) != nil
	case tracking.KindTrip:
		return a.trips.byID[tracking.TripID(s.ID)] != nil
	case tracking.KindDriver:
		return a.drivers.row(tracking.DriverID(s.ID)) != nil
	}
	return false
}

// events sends them up to the last one of the moment.
func (e *export) events(a *application, last int64) {
	for after := int64(0); !e.stopped; {
		a.mu.RLock()
		c := a.events.all.at(func(r *eventRow) bool { return r.order > after })
		list, more := take(c.next, 0, pageRows, nil)
		page := copies(list, func(r *eventRow) tracking.EventRow {
			return tracking.EventRow{Event: r.event(), Deliveries: a.undelivered(r)}
		})
		a.mu.RUnlock()
		for i, v := range page {
			if after = list[i].order; after > last {
				return
			}
			e.send(a.id, v)
		}
		if !more {
			return
		}
	}
}

// undelivered lists an event's deliveries that are not made.
func (a *application) undelivered(r *eventRow) (list []tracking.DeliveryRow) {
	for _, b := range a.boxes {
		d := r.in(b.outbox)
		if d == nil || d.state == delivered {
			continue
		}
		b.mu.Lock()
		v := tracking.DeliveryRow{Outbox: b.outbox.name, Dead: d.state == dead, Attempts: d.attempts}
		if d.retryAt != 0 && !v.Dead {
			v.RetryAt = time.UnixMilli(d.retryAt).UTC()
		}
		b.mu.Unlock()
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b tracking.DeliveryRow) int { return strings.Compare(a.Outbox, b.Outbox) })
	return list
}
