package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Restore implements [tracking.Store]. Like Commit it looks whether all can be written first.
func (s *Store) Restore(ctx context.Context, r tracking.Restoring) error {
	if err := cmp.Or(s.ready(ctx), rows.RestoringTexts(r)); err != nil {
		return err
	}
	apps := map[tracking.AppID]*application{}
	for _, row := range r.Rows {
		if row.App != "" && apps[row.App] == nil {
			apps[row.App] = s.application(row.App)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(apps)) {
		apps[id].mu.Lock()
		defer apps[id].mu.Unlock()
	}
	s.secrets.unique.Lock()
	defer s.secrets.unique.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Memo != "" && !bytes.Equal(s.memos[r.Memo], r.Was) {
		return &tracking.ConflictError{}
	}
	c := restorable{
		Store: s, seen: map[any]bool{}, drivers: map[owner[tracking.DriverID]]int64{}, codes: map[tracking.Hash][]codeOwner{},
		values: map[string]tracking.Secret{},
	}
	for _, row := range r.Rows {
		if err := c.check(apps[row.App], row.Value); err != nil {
			return err
		}
	}
	for _, row := range r.Rows {
		s.restore(apps[row.App], row.Value)
	}
	if r.Memo != "" {
		s.memo(r.Memo, r.Is)
	}
	return nil
}

// memo keeps a value. The store is locked.
func (s *Store) memo(name string, value []byte) {
	if s.memos == nil {
		s.memos = make(map[string][]byte)
	}
	s.memos[name] = append([]byte(nil), value...)
}

// restorable looks whether rows can be written.
type restorable struct {
	*Store
	seen    map[any]bool                       // what the rows before have taken
	drivers map[owner[tracking.DriverID]]int64 // when the last fix of those is that the rows are about
	codes   map[tracking.Hash][]codeOwner      // of the rows before
	values  map[string]tracking.Secret         // of the memos before
}

// taken names something that only one row can have.
type taken struct {
	app  *application // nil: of the whole store
	what string
	id   string
}

// take is a conflict if somebody has it.
func (c *restorable) take(t taken, there bool, kind tracking.SubjectKind, unique string) error {
	if !there && !c.seen[t] {
		c.seen[t] = true
		return nil
	}
	if unique != "" {
		return rows.UniqueConflict(kind, unique)
	}
	return rows.VersionConflict(kind, t.id)
}

// driver is a conflict on a driver who is not there.
func (c *restorable) driver(a *application, id tracking.DriverID) error {
	if a.drivers.row(id) == nil && !c.seen[taken{a, "driver", string(id)}] {
		return rows.VersionConflict(tracking.KindDriver, id)
	}
	return nil
}

func (c *restorable) check(a *application, value tracking.RowValue) error {
	switch v := value.(type) {
	case tracking.Memo:
		return c.memo(v)
	case tracking.DriverRow:
		return c.take(taken{a, "driver", string(v.ID)}, a.drivers.row(v.ID) != nil, tracking.KindDriver, "")
	case tracking.Invite:
		if err := c.driver(a, v.DriverID); err != nil {
			return err
		}
		d := a.drivers.row(v.DriverID)
		if err := c.take(taken{a, "invite", string(v.DriverID)}, d != nil && d.others().invite != nil, tracking.KindInvite,
			""); err != nil {
			return err
		}
		return c.code(&v)
	case tracking.Request:
		if err := c.driver(a, v.DriverID); err != nil {
			return err
		}
		d := a.drivers.row(v.DriverID)
		t := taken{a, "request", string(v.DriverID) + "\x00" + string(v.TrackingID)}
		return c.take(t, d != nil && d.others().requests[v.TrackingID] != nil, tracking.KindDriver, "")
	case tracking.Key:
		if err := c.take(taken{a, "key", v.ID}, a.keys[v.ID] != nil, tracking.KindKey, ""); err != nil || v.Hash.IsZero() {
			return err
		}
		_, there := c.secrets.keys.find(v.Hash)
		return c.take(taken{nil, "hash", string(v.Hash[:])}, there, tracking.KindKey, "hash")
	case tracking.Task:
		if err := c.take(taken{a, "task", string(v.ID)}, a.tasks.row(v.ID) != nil, tracking.KindTask, ""); err != nil ||
			v.Key == "" {
			return err
		}
		return c.take(taken{a, "task key", v.Key}, a.tasks.withKey(v.Key) != nil, tracking.KindTask, "key")
	case tracking.Trip:
		if err := c.take(taken{a, "trip", string(v.ID)}, a.trips.byID[v.ID] != nil, tracking.KindTrip, ""); err != nil ||
			v.Status != tracking.TripActive {
			return err
		}
		return c.take(taken{a, "active", string(v.TrackingID)}, a.trips.active[v.TrackingID] != nil, tracking.KindTrip,
			"tracking_id")
	case tracking.FixRow:
		return c.fix(a, v)
	case tracking.Notice:
		if err := c.driver(a, v.DriverID); err != nil {
			return err
		}
		there := false
		if d := a.drivers.row(v.DriverID); d != nil {
			n := d.others().feed.notices.at(func(r *noticeRow) bool { return r.notice.ID >= v.ID })
			next, ok := n.next()
			there = ok && next.notice.ID == v.ID
		}
		return c.take(taken{a, "notice", fmt.Sprint(v.ID, " ", v.DriverID)}, there,
			tracking.KindDriver, "")
	case tracking.EventRow:
		return c.take(taken{a, "event", v.Event.ID}, a.events.row(v.Event.ID) != nil, v.Subject.Kind, "")
	case tracking.FileRow:
		return c.take(taken{a, "file", v.ID}, a.files.byID[v.ID] != nil, tracking.KindTask, "")
	}
	return nil
}

// memo is a conflict on one that has another value.
func (c *restorable) memo(m tracking.Memo) error {
	was, ok := c.values[m.Name]
	if kept, there := c.memos[m.Name]; there {
		was, ok = tracking.Secret(kept), true
	}
	if ok && was != m.Value {
		return &tracking.ConflictError{}
	}
	c.values[m.Name] = m.Value
	return nil
}

// code is a conflict on a code that somebody else has at the same time.
func (c *restorable) code(i *tracking.Invite) error {
	if i.CodeHash.IsZero() {
		return nil
	}
	has, _ := c.secrets.codes.of(i.CodeHash)
	for _, o := range append(has, c.codes[i.CodeHash]...) {
		if o.until.After(i.CreatedAt) && i.CodeExpiresAt.After(o.since) {
			return rows.UniqueConflict(tracking.KindInvite, "code")
		}
	}
	c.codes[i.CodeHash] = append(c.codes[i.CodeHash], codeOwner{since: i.CreatedAt, until: i.CodeExpiresAt})
	return nil
}

// fix is a conflict where a fix is not later than those that are there.
func (c *restorable) fix(a *application, v tracking.FixRow) error {
	if err := c.driver(a, v.DriverID); err != nil {
		return err
	}
	o := owner[tracking.DriverID]{a, v.DriverID}
	last, ok := c.drivers[o]
	if d := a.drivers.row(v.DriverID); !ok && d != nil {
		last, ok = d.log.last()
	}
	if ok && v.Time.UnixMilli() <= last {
		return rows.VersionConflict(tracking.KindDriver, v.DriverID)
	}
	c.drivers[o] = v.Time.UnixMilli()
	return nil
}

// restore writes a row, whose check has passed. Everything is locked.
func (s *Store) restore(a *application, value tracking.RowValue) {
	switch v := value.(type) {
	case tracking.StoreSecret:
		s.secret = bytes.Clone(v.Value[:])
	case tracking.Memo:
		s.memo(v.Name, []byte(v.Value))
	case tracking.Marks:
		a.lastVersion, a.lastNotice = max(a.lastVersion, v.Version), max(a.lastNotice, v.Notice)
	case tracking.DriverRow:
		d := rows.Driver(v.Driver)
		d.Position, d.Seq = rows.Position(v.Position), s.driverSeq.Add(1)
		r := a.drivers.insert(a, &d)
		if v.LastNotice != 0 || v.PurgedNotice != 0 {
			f := &r.more().feed
			f.last, f.purged = v.LastNotice, v.PurgedNotice
		}
		o := owner[tracking.DriverID]{a, d.ID}
		s.secrets.appTokens.move(o, tracking.Hash{}, d.AppToken)
		s.secrets.ingestTokens.move(o, tracking.Hash{}, d.IngestToken)
	case tracking.Invite:
		i := rows.Invite(v)
		s.setInvite(a, a.drivers.row(i.DriverID), &i)
	case tracking.Request:
		r := rows.Request(v)
		a.setRequest(&r)
	case tracking.Key:
		k := rows.Key(v)
		a.keys[k.ID] = &k
		s.secrets.keys.move(owner[string]{a, k.ID}, tracking.Hash{}, k.Hash)
	case tracking.Task:
		t := rows.Task(v)
		t.Seq = s.taskSeq.Add(1)
		a.tasks.insert(&t, rows.Codes(nil, &t))
		a.nearby.PutTask(t)
		s.secrets.taskLinks.move(owner[tracking.TaskID]{a, t.ID}, tracking.Hash{}, t.Link.Hash)
	case tracking.Trip:
		t := rows.Trip(v)
		t.Seq = s.tripSeq.Add(1)
		a.trips.insert(&t)
		s.secrets.tripLinks.move(owner[tracking.TripID]{a, t.ID}, tracking.Hash{}, t.Link.Hash)
	case tracking.FixRow:
		r := a.drivers.row(v.DriverID)
		was := r.log.oldest()
		r.log.put(v.KeptFix)
		a.aging.note(r, was)
	case tracking.Notice:
		d := a.drivers.row(v.DriverID)
		v.Person, v.Time = strings.Clone(d.person()), rows.Time(v.Time)
		r := &noticeRow{notice: &v, driver: d, order: s.noticeSeq.Add(1)}
		f := &d.more().feed
		f.last = max(f.last, v.ID)
		f.notices.insert(r, byNoticeID)
		a.notices.insert(r, byNoticeTime)
	case tracking.SubjectRow:
		sub := a.events.open(v.Subject)
		sub.seq = max(sub.seq, v.Seq)
	case tracking.EventRow:
		s.restoreEvent(a, v)
	case tracking.FileRow:
		a.files.put(&fileRow{
			id: v.ID, task: v.TaskID, typ: v.Type, at: rows.Time(v.At), data: bytes.Clone(v.Data), loose: !v.Named,
		})
	}
}

func (s *Store) restoreEvent(a *application, v tracking.EventRow) {
	r := newEventRow(a, &v.Event, len(v.Deliveries))
	for _, n := range v.Event.Notices {
		n.EventID, n.Time = v.Event.ID, rows.Time(v.Event.RecordedAt)
		r.notices = append(r.notices, n)
	}
	r.order = s.eventSeq.Add(1)
	for i, d := range v.Deliveries {
		r.deliveries[i] = delivery{
			row: r, outbox: s.boxes.open(nil, d.Outbox)[0], state: pending, attempts: d.Attempts,
		}
		if !d.RetryAt.IsZero() {
			r.deliveries[i].retryAt = d.RetryAt.UnixMilli()
		}
	}
	a.events.insert(r, a.events.open(v.Event.Subject))
	for i := range r.deliveries {
		d := &r.deliveries[i]
		b := d.outbox.box(a)
		b.mu.Lock()
		if v.Deliveries[i].Dead {
			a.events.settle(d, dead)
		} else {
			q := b.queueOf(r.subject)
			q.insert(len(q.events), d)
			if len(q.events) == 1 {
				b.put(q, 0)
			}
		}
		b.unlock()
	}
}
