package storetest

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/seed-8aba7b13/tracking"
)

// Rows implements [tracking.Store]. All are of one moment: they are copied first.
func (r *reference) Rows(ctx context.Context, q tracking.RowQuery) iter.Seq2[tracking.Row, error] {
	return func(yield func(tracking.Row, error) bool) {
		list, err := r.allRows(ctx, q)
		if err != nil {
			yield(tracking.Row{}, err)
			return
		}
		for _, row := range list {
			if !yield(row, nil) {
				return
			}
		}
	}
}

func (r *reference) allRows(ctx context.Context, q tracking.RowQuery) (list []tracking.Row, err error) {
	if _, err := r.enter(ctx, ""); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	add := func(app tracking.AppID, v tracking.RowValue) {
		if row := (tracking.Row{App: app, Value: kept(v)}); q.Wants(row.Kind()) {
			list = append(list, row)
		}
	}
	add("", tracking.StoreSecret{Value: tracking.Hash(r.secret)})
	for _, name := range slices.Sorted(maps.Keys(r.memos)) {
		add("", tracking.Memo{Name: name, Value: tracking.Secret(r.memos[name])})
	}
	for _, app := range slices.Sorted(maps.Keys(r.apps)) {
		if q.App == "" || q.App == app {
			r.rowsOf(app, r.apps[app], q.Driver, add)
		}
	}
	return list, nil
}

func (r *reference) rowsOf(
	app tracking.AppID, b *book, only tracking.DriverID, add func(tracking.AppID, tracking.RowValue),
) {
	marks := b.gone
	for s, version := range b.versions {
		if !b.present(s) {
			marks.Version = max(marks.Version, version)
		}
	}
	add(app, marks)
	drivers := slices.SortedFunc(maps.Values(b.drivers), func(x, y tracking.Driver) int {
		return byAge(x.CreatedAt, y.CreatedAt, x.Seq, y.Seq)
	})
	drivers = slices.DeleteFunc(drivers, func(d tracking.Driver) bool { return only != "" && d.ID != only })
	for _, d := range drivers {
		f := b.notices[d.ID]
		if f == nil {
			f = &feed{}
		}
		add(app, tracking.DriverRow{Driver: d, LastNotice: f.last, PurgedNotice: f.purged})
	}
	for _, d := range drivers {
		if i, ok := b.invites[d.ID]; ok {
			add(app, i)
		}
	}
	for _, d := range drivers {
		for _, q := range slices.SortedFunc(maps.Values(b.requests), func(x, y tracking.Request) int {
			return strings.Compare(string(x.TrackingID), string(y.TrackingID))
		}) {
			if q.DriverID == d.ID {
				add(app, q)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b.keys)) {
		add(app, b.keys[id])
	}
	for _, t := range slices.SortedFunc(maps.Values(b.tasks), func(x, y tracking.Task) int {
		return byAge(x.CreatedAt, y.CreatedAt, x.Seq, y.Seq)
	}) {
		add(app, t)
	}
	for _, t := range slices.SortedFunc(maps.Values(b.trips), func(x, y tracking.Trip) int {
		return byAge(x.CreatedAt, y.CreatedAt, x.Seq, y.Seq)
	}) {
		add(app, t)
	}
	for _, d := range drivers {
		if log := b.fixes[d.ID]; log != nil {
			for _, f := range log.kept(0, len(log.list)) {
				add(app, tracking.FixRow{DriverID: d.ID, KeptFix: f})
			}
		}
	}
	for _, d := range drivers {
		if f := b.notices[d.ID]; f != nil {
			for _, n := range f.list {
				add(app, n)
			}
		}
	}
	last := map[tracking.Subject]int64{}
	for _, e := range r.log {
		if e.app == app {
			last[e.event.Subject] = e.event.Seq
		}
	}
	for s, seq := range b.seqs {
		if seq > last[s] {
			add(app, tracking.SubjectRow{Subject: s, Seq: seq})
		}
	}
	for _, e := range r.log {
		if e.app == app {
			add(app, e.row())
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b.files)) {
		add(app, tracking.FileRow{ID: id, File: b.files[id].File, Named: b.files[id].named})
	}
}

// present reports whether a row is there.
func (b *book) present(s tracking.Subject) (ok bool) {
	switch s.Kind {
	case tracking.KindTask:
		_, ok = b.tasks[tracking.TaskID(s.ID)]
	case tracking.KindTrip:
		_, ok = b.trips[tracking.TripID(s.ID)]
	case tracking.KindDriver:
		_, ok = b.drivers[tracking.DriverID(s.ID)]
	case tracking.KindInvite:
		_, ok = b.invites[tracking.DriverID(s.ID)]
	case tracking.KindKey:
		_, ok = b.keys[s.ID]
	}
	return ok
}

func (e *entry) row() tracking.EventRow {
	v := tracking.EventRow{Event: e.event}
	for _, outbox := range slices.Sorted(maps.Keys(e.delivery)) {
		switch d := e.delivery[outbox]; d.state {
		case "":
			v.Deliveries = append(v.Deliveries, tracking.DeliveryRow{Outbox: outbox, Attempts: d.attempts, RetryAt: d.retryAt})
		case tracking.DeliveryDead:
			v.Deliveries = append(v.Deliveries, tracking.DeliveryRow{Outbox: outbox, Dead: true, Attempts: d.attempts})
		}
	}
	return v
}

// Restore implements [tracking.Store]: on a copy of everything, which then takes the place.
func (r *reference) Restore(ctx context.Context, q tracking.Restoring) error {
	if _, err := r.enter(ctx, ""); err != nil {
		return err
	}
	defer r.mu.Unlock()
	if q.Memo != "" && !bytes.Equal(r.memos[q.Memo], q.Was) {
		return &tracking.ConflictError{}
	}
	apps := map[tracking.AppID]*book{}
	after := &reference{
		secret: r.secret, seq: r.seq, feed: r.feed, log: slices.Clone(r.log), memos: maps.Clone(r.memos),
		apps: maps.Clone(r.apps),
	}
	for _, row := range q.Rows {
		if row.App != "" && apps[row.App] == nil {
			b := newBook()
			if had := r.apps[row.App]; had != nil {
				b = had.copy()
			}
			apps[row.App], after.apps[row.App] = b, b
		}
		if err := after.restore(row.App, apps[row.App], kept(row.Value)); err != nil {
			return err
		}
	}
	if q.Memo != "" {
		after.memos[q.Memo] = slices.Clone(q.Is)
	}
	r.secret, r.seq, r.feed, r.log, r.memos, r.apps = after.secret, after.seq, after.feed, after.log, after.memos,
		after.apps
	return nil
}

// copy copies also what the pointers lead to.
func (b *book) copy() *book {
	c := b.clone()
	c.seqs, c.files = maps.Clone(b.seqs), maps.Clone(b.files)
	c.fixes, c.notices = map[tracking.DriverID]*fixes{}, map[tracking.DriverID]*feed{}
	for id, f := range b.fixes {
		c.fixes[id] = &fixes{slices.Clone(f.list), f.purged}
	}
	for id, f := range b.notices {
		c.notices[id] = &feed{slices.Clone(f.list), f.last, f.purged}
	}
	return c
}

// restore puts a row in, by way of a changeset where there is one for its kind: what that refuses is
// refused here.
func (r *reference) restore(app tracking.AppID, b *book, value tracking.RowValue) error {
	if !sound(string(app)) {
		return tracking.ErrInvalid
	}
	conflict := func(kind tracking.SubjectKind, id string) error {
		return &tracking.ConflictError{Kind: kind, ID: id}
	}
	change := func(c tracking.Changeset) error {
		if !soundTexts(app, c) {
			return tracking.ErrInvalid
		}
		n, conflicts := r.apply(app, b, c)
		if len(conflicts) > 0 {
			return conflicts[0]
		}
		*b = *n
		return nil
	}
	version := func(kind tracking.SubjectKind, id string, version int64) {
		b.versions[tracking.Subject{Kind: kind, ID: id}] = version
	}
	owned := func(id tracking.DriverID) error {
		if _, ok := b.drivers[id]; !ok {
			return conflict(tracking.KindDriver, string(id))
		}
		return nil
	}
	switch v := value.(type) {
	case tracking.StoreSecret:
		r.secret = slices.Clone(v.Value[:])
	case tracking.Memo:
		if was, ok := r.memos[v.Name]; ok && string(was) != string(v.Value) {
			return &tracking.ConflictError{}
		}
		r.memos[v.Name] = []byte(v.Value)
	case tracking.Marks:
		b.gone = tracking.Marks{Version: max(b.gone.Version, v.Version), Notice: max(b.gone.Notice, v.Notice)}
		r.feed = max(r.feed, v.Notice)
	case tracking.DriverRow:
		d := v.Driver
		d.Version = 0
		if err := change(tracking.Changeset{Drivers: []tracking.Driver{d}}); err != nil {
			return err
		}
		d = b.drivers[d.ID]
		d.Version, d.Position = v.Version, v.Position
		b.drivers[d.ID] = d
		b.notices[d.ID] = &feed{last: v.LastNotice, purged: v.PurgedNotice}
		r.feed = max(r.feed, v.LastNotice)
		version(tracking.KindDriver, string(d.ID), d.Version)
	case tracking.Invite:
		if _, ok := b.invites[v.DriverID]; ok {
			return conflict(tracking.KindInvite, string(v.DriverID))
		}
		n := v.Version
		if v.Version = 0; r.sharesCode(v) {
			return &tracking.ConflictError{Kind: tracking.KindInvite, Unique: "code"}
		}
		code := v.CodeHash
		v.CodeHash = tracking.Hash{} // whose life is looked at above
		if err := change(tracking.Changeset{Invites: []tracking.Invite{v}}); err != nil {
			return err
		}
		v.Version, v.CodeHash = n, code
		b.invites[v.DriverID] = v
		version(tracking.KindInvite, string(v.DriverID), n)
	case tracking.Request:
		if _, ok := b.requests[v.RequestID]; ok {
			return conflict(tracking.KindDriver, string(v.DriverID))
		}
		return change(tracking.Changeset{Requests: []tracking.Request{v}})
	case tracking.Key:
		n := v.Version
		v.Version = 0
		if err := change(tracking.Changeset{Keys: []tracking.Key{v}}); err != nil {
			return err
		}
		v.Version = n
		b.keys[v.ID] = v
		version(tracking.KindKey, v.ID, n)
	case tracking.Task: // there may be many: a changeset would copy all that there are for each
		if !soundTexts(app, tracking.Changeset{Tasks: []tracking.Task{v}}) {
			return tracking.ErrInvalid
		}
		if _, ok := b.tasks[v.ID]; ok {
			return conflict(tracking.KindTask, string(v.ID))
		}
		for _, o := range b.tasks {
			if v.Key == "" {
				break
			}
			if o.Key == v.Key {
				return &tracking.ConflictError{Kind: tracking.KindTask, Unique: "key"}
			}
		}
		r.seq++
		v.Seq = r.seq
		b.tasks[v.ID] = v
		version(tracking.KindTask, string(v.ID), v.Version)
	case tracking.Trip:
		n := v.Version
		v.Version = 0
		if err := change(tracking.Changeset{Trips: []tracking.Trip{v}}); err != nil {
			return err
		}
		v.Version, v.Seq = n, b.trips[v.ID].Seq
		b.trips[v.ID] = v
		version(tracking.KindTrip, string(v.ID), n)
	case tracking.FixRow:
		if err := owned(v.DriverID); err != nil {
			return err
		}
		if !sound(v.EventID) {
			return tracking.ErrInvalid
		}
		log := b.fixes[v.DriverID]
		if log == nil {
			log = &fixes{}
			b.fixes[v.DriverID] = log
		}
		if n := len(log.list); n > 0 && !v.Time.After(log.list[n-1].Time) {
			return conflict(tracking.KindDriver, string(v.DriverID))
		}
		if log.list = append(log.list, v.KeptFix); v.Purged {
			log.purged = len(log.list)
		}
	case tracking.Notice:
		if err := owned(v.DriverID); err != nil {
			return err
		}
		f := b.notices[v.DriverID]
		if f == nil {
			f = &feed{}
			b.notices[v.DriverID] = f
		}
		if slices.ContainsFunc(f.list, func(n tracking.Notice) bool { return n.ID == v.ID }) {
			return conflict(tracking.KindDriver, string(v.DriverID))
		}
		v.Person = b.drivers[v.DriverID].Person
		f.list, f.last, r.feed = append(f.list, v), max(f.last, v.ID), max(r.feed, v.ID)
		slices.SortFunc(f.list, func(x, y tracking.Notice) int { return cmp.Compare(x.ID, y.ID) })
	case tracking.SubjectRow:
		b.seqs[v.Subject] = max(b.seqs[v.Subject], v.Seq)
	case tracking.EventRow:
		if slices.ContainsFunc(r.log, func(e *entry) bool { return e.app == app && e.event.ID == v.Event.ID }) {
			return conflict(v.Subject.Kind, v.Subject.ID)
		}
		en := &entry{app: app, event: v.Event, delivery: map[string]*delivery{}}
		for _, d := range v.Deliveries {
			en.delivery[d.Outbox] = &delivery{attempts: d.Attempts, retryAt: d.RetryAt}
			if d.Dead {
				en.delivery[d.Outbox].state = tracking.DeliveryDead
			}
		}
		r.log = append(r.log, en)
		b.seqs[v.Subject] = max(b.seqs[v.Subject], v.Event.Seq)
	case tracking.FileRow:
		if b.files[v.ID] != nil {
			return conflict(tracking.KindTask, string(v.TaskID))
		}
		b.files[v.ID] = &file{File: v.File, named: v.Named}
	}
	return nil
}

// sharesCode reports whether another invite has the code of v at the same time.
func (r *reference) sharesCode(v tracking.Invite) bool {
	for _, b := range r.apps {
		for _, o := range b.invites {
			if !v.CodeHash.IsZero() && o.CodeHash == v.CodeHash && o.CodeExpiresAt.After(v.CreatedAt) &&
				v.CodeExpiresAt.After(o.CreatedAt) {
				return true
			}
		}
	}
	return false
}
