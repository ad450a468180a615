package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
)

// exportChecks are about reading and writing rows as they are.
func exportChecks() []check {
	return []check{
		{"Restore/what Rows has read is there, every field of it", restoredRowsAreRead},
		{"Restore/readers find what was restored", restoredRowsAreFound},
		{"Restore/new rows go on from the marks", restoredMarksCount},
		{"Restore/what is undelivered is delivered, in order, and nothing else", restoredEventsAreDelivered},
		{"Restore/fixes that come later are judged by those that were restored", restoredFixesJudge},
		{"Restore/all or nothing", restoreIsAtomic},
		{"Restore/what is there already is a conflict", restoreIsRefused},
		{"Restore/a memo that has another value is a conflict", restoreComparesTheMemo},
		{"Rows/only what is asked for", rowsAreFiltered},
		{"Rows/who has enough ends it", rowsCanBeLeft},
	}
}

// allRows reads rows.
func allRows(t testing.TB, s tracking.Store, q tracking.RowQuery) (list []tracking.Row) {
	t.Helper()
	for r, err := range s.Rows(t.Context(), q) {
		if err != nil {
			t.Fatalf("Rows: %v", err)
		}
		list = append(list, r)
	}
	return list
}

// alike is rows without what a store gives anew, and in one order.
func alike(list []tracking.Row) []tracking.Row {
	list = slices.Clone(list)
	for i, r := range list {
		switch v := r.Value.(type) {
		case tracking.Task:
			v.Seq = 0
			list[i].Value = v
		case tracking.Trip:
			v.Seq = 0
			list[i].Value = v
		case tracking.DriverRow:
			v.Seq = 0
			list[i].Value = v
		}
	}
	slices.SortStableFunc(list, func(a, b tracking.Row) int {
		x, ok := a.Value.(tracking.SubjectRow)
		y, both := b.Value.(tracking.SubjectRow)
		if !ok || !both || a.App != b.App {
			return 0
		}
		return cmp.Or(strings.Compare(string(x.Kind), string(y.Kind)), strings.Compare(x.ID, y.ID))
	})
	return list
}

func sameRows(t testing.TB, what string, got, want []tracking.Row) {
	t.Helper()
	same(t, what, alike(got), alike(want), cmpopts.EquateEmpty())
}

// fullRows are rows of every kind, with every field set, as a store would have them.
func fullRows() []tracking.Row {
	secret, memo := filled[tracking.StoreSecret](1), filled[tracking.Memo](2)
	rows := []tracking.Row{{Value: secret}, {Value: memo}}
	for i, app := range []tracking.AppID{here, there} {
		add := func(v tracking.RowValue) { rows = append(rows, tracking.Row{App: app, Value: v}) }
		n := 1 + 10*i
		add(tracking.Marks{Version: int64(1000 + n), Notice: int64(2000 + n)})
		var person string
		for j, id := range []tracking.DriverID{"e", "d"} {
			d := filled[tracking.DriverRow](n + j)
			d.ID, d.Distance, d.Seq = id, 0, 0
			d.LastNotice, d.PurgedNotice, d.Position.Fix.Time = 4000, 100, at(3*time.Second)
			person = d.Person
			add(d)
		}
		invite := fullInvite("d", n+2)
		invite.Version, invite.CreatedAt, invite.CodeExpiresAt = 5, at(time.Duration(n)*time.Hour), at(time.Duration(n+1)*time.Hour)
		add(invite)
		add(fullRequest(tracking.RequestID{DriverID: "d", TrackingID: "x"}, n+3))
		key := fullKey("k", n+4)
		key.Version = 6
		add(key)
		for j := range 2 {
			task := fullTask(tracking.TaskID(fmt.Sprint("t", j)), n+5+j)
			task.Version = int64(7 + j)
			task.CreatedAt = at(time.Duration(j) * time.Minute)
			add(task)
		}
		trip := fullTrip("r", n+7)
		trip.Version = 9
		add(trip)
		for _, id := range []tracking.DriverID{"e", "d"} {
			for j, mark := range []tracking.FixMark{tracking.MarkGood, tracking.MarkOut, tracking.MarkGood, tracking.MarkCoarse} {
				f := filled[tracking.FixRow](n + 8 + j)
				f.DriverID, f.Mark, f.Time, f.Purged = id, mark, at(time.Duration(j)*time.Second), j == 0
				add(f)
			}
		}
		notice := filled[tracking.Notice](n + 12)
		notice.ID, notice.DriverID, notice.Person = 3000, "d", person
		add(notice)
		add(tracking.SubjectRow{Subject: tracking.Subject{Kind: tracking.KindDriver, ID: "gone"}, Seq: 77})
		for j := range 3 {
			e := filled[tracking.EventRow](n + 13 + j)
			e.Event.ID, e.Subject, e.Seq = fmt.Sprint("e", j), tracking.Subject{Kind: tracking.KindTask, ID: "t0"}, int64(50+j)
			for k := range e.Notices {
				e.Notices[k].EventID, e.Notices[k].Time = e.Event.ID, e.RecordedAt
			}
			e.Deliveries = []tracking.DeliveryRow{
				{Outbox: "", Attempts: 3, RetryAt: at(time.Minute)}, {Outbox: "push", Dead: true, Attempts: 10},
			}
			if j == 2 {
				e.Deliveries = nil
			}
			add(e)
		}
		f := filled[tracking.FileRow](n + 16)
		f.ID, f.Data = "f", noise(uint64(n), 5000)
		add(f)
	}
	return rows
}

func restoreAll(t testing.TB, s tracking.Store, rows []tracking.Row) {
	t.Helper()
	if err := s.Restore(t.Context(), tracking.Restoring{Rows: rows}); err != nil {
		t.Fatalf("Restore: %v", err)
	}
}

func restoredRowsAreRead(t testing.TB, s tracking.Store) {
	want := fullRows()
	restoreAll(t, s, want)
	got := allRows(t, s, tracking.RowQuery{})
	sameRows(t, "rows", got, want)
	kinds := map[tracking.RowKind]bool{}
	last := -1
	for i, r := range got {
		kinds[r.Kind()] = true
		order := slices.Index(tracking.RowKinds, r.Kind())
		if i > 0 && r.App != got[i-1].App {
			last = -1
		}
		if order < last {
			t.Errorf("a row of kind %s comes after one of kind %s", r.Kind(), got[i-1].Kind())
		}
		last = order
	}
	for _, kind := range tracking.RowKinds {
		if !kinds[kind] {
			t.Errorf("there is no row of kind %s", kind)
		}
	}
}

func restoredRowsAreFound(t testing.TB, s tracking.Store) {
	rows := fullRows()
	restoreAll(t, s, rows)
	c := use(t, s, there)
	for _, r := range rows {
		if r.App != there && r.App != "" {
			continue
		}
		switch v := r.Value.(type) {
		case tracking.StoreSecret:
			secret, err := s.Secret(c.ctx)
			c.ok(err)
			same(t, "secret", tracking.Hash(secret), v.Value)
		case tracking.Memo:
			value, err := s.Memo(c.ctx, v.Name)
			c.ok(err)
			same(t, "memo", string(value), string(v.Value))
		case tracking.DriverRow:
			app, d, err := s.DriverByToken(c.ctx, tracking.TokenApp, v.AppToken)
			c.ok(err)
			v.Seq = d.Seq
			same(t, "driver by token", d, v.Driver)
			same(t, "application", app, there)
			list, _ := c.drivers(tracking.DriverFilter{Properties: v.Properties})
			same(t, "drivers by property", len(list), 1)
			list, _ = c.drivers(tracking.DriverFilter{Near: &v.Position.Fix.LngLat})
			same(t, "drivers nearby", len(list), 2)
		case tracking.Invite:
			for _, h := range []tracking.Hash{v.LinkHash, v.CodeHash, v.PastCodes[0]} {
				_, got, err := s.InviteByHash(c.ctx, h)
				c.ok(err)
				same(t, "invite by hash", got, v)
			}
		case tracking.Request:
			got, err := s.Request(c.ctx, there, v.RequestID)
			c.ok(err)
			same(t, "request", got, v)
		case tracking.Key:
			_, got, err := s.KeyByHash(c.ctx, v.Hash)
			c.ok(err)
			same(t, "key by hash", got, v)
		case tracking.Task:
			_, got, err := s.TaskByLink(c.ctx, v.Link.Hash)
			c.ok(err)
			v.Seq = got.Seq
			same(t, "task by link", got, v)
			got, err = s.TaskByKey(c.ctx, there, v.Key)
			c.ok(err)
			same(t, "task by key", got, v)
			list, _ := c.tasks(tracking.TaskFilter{Query: v.Drop.Customer.Name})
			same(t, "tasks found", len(list) > 0, true)
		case tracking.Trip:
			_, got, err := s.TripByLink(c.ctx, v.Link.Hash)
			c.ok(err)
			v.Seq = got.Seq
			same(t, "trip by link", got, v)
		case tracking.FileRow:
			got, err := readFile(c.ctx, s, there, v.ID)
			c.ok(err)
			same(t, "file", string(got), string(v.Data))
		}
	}
	notices, lost := c.notices("d", 2999)
	same(t, "notices", len(notices), 1)
	same(t, "lost", lost, false)
	_, lost = c.notices("d", 99)
	same(t, "lost before the purged ones", lost, true)
	same(t, "good fixes", each(c.fixes("d", tracking.FixRange{}), fixTime), []time.Time{at(2 * time.Second)})
	tasks, _ := c.tasks(tracking.TaskFilter{})
	same(t, "tasks, the newest first", each(tasks, taskID), []tracking.TaskID{"t1", "t0"})
	events, _ := c.events(tracking.EventFilter{})
	same(t, "events", each(events, eventID), []string{"e0", "e1", "e2"})
}

// restoredMarksCount makes what is new, and compares its numbers with those of rows that are gone.
func restoredMarksCount(t testing.TB, s tracking.Store) {
	restoreAll(t, s, fullRows())
	c := use(t, s, here)
	driver := newDriver("new", t0)
	gone := tracking.Subject{Kind: tracking.KindDriver, ID: "gone"}
	c.commit(tracking.Changeset{
		Tasks: []tracking.Task{newTask("new", t0)}, Drivers: []tracking.Driver{driver},
		Events: []tracking.Event{
			newEvent("new", gone.Kind, gone.ID, t0, "new", "d"), newEvent("newer", tracking.KindTask, "t0", t0),
		},
	})
	if v := c.driver("new").Version; v <= 1001 {
		t.Errorf("the version of a new driver is %d, as rows that are gone have had", v)
	}
	events, _ := c.events(tracking.EventFilter{Subject: gone})
	same(t, "seq of the first event there is", each(events, func(e tracking.Event) int64 { return e.Seq }), []int64{78})
	events, _ = c.events(tracking.EventFilter{Subject: tracking.Subject{Kind: tracking.KindTask, ID: "t0"}})
	same(t, "seq of events", each(events, func(e tracking.Event) int64 { return e.Seq }), []int64{50, 51, 52, 53})
	notices, _ := c.notices("new", 0)
	if len(notices) != 1 || notices[0].ID <= 2001 {
		t.Errorf("the notices of a new driver are %+v; want one with an ID above 2001", notices)
	}
	notices, _ = c.notices("d", 4000)
	if len(notices) != 1 || notices[0].ID <= 4000 {
		t.Errorf("the new notices of a driver are %+v; want one with an ID above 4000", notices)
	}
	task := c.task("t0")
	task.Notes = "changed"
	c.commit(tracking.Changeset{Tasks: []tracking.Task{task}})
	same(t, "version", c.task("t0").Version, 8)
}

func restoredEventsAreDelivered(t testing.TB, s tracking.Store) {
	restoreAll(t, s, fullRows())
	c := use(t, s, here)
	same(t, "before the retry", c.lease("w", at(59*time.Second), 10), nil)
	leased := c.lease("w", at(time.Minute), 10)
	same(t, "leased", each(leased, leasedID), []string{"e0", "e1", "e0", "e1"})
	same(t, "attempt", leased[0].Attempt, 4)
	same(t, "from the other outbox", c.leaseFrom("push", "w", at(time.Hour), 10), nil)
	dead, _ := c.events(tracking.EventFilter{Dead: true, Outbox: "push"})
	same(t, "dead", each(dead, eventID), []string{"e0", "e1"})
	c.finish(tracking.Delivery{
		Outbox: "push", App: here, EventID: "e1", Owner: "w", State: tracking.DeliveryReleased, Now: at(time.Hour),
	})
	same(t, "revived", each(c.leaseFrom("push", "w", at(time.Hour), 10), leasedID), []string{"e1"})
}

// restoredFixesJudge plays one history twice: on a store, and on one that takes over in the middle.
func restoredFixesJudge(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	ref := use(t, newReference(), here)
	first := func(c *client) {
		c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}})
		c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(time.Minute), Fixes: []tracking.Fix{
			newFix(t0, 11, 48), newFix(at(10*time.Second), 11.001, 48), newFix(at(20*time.Second), 13, 48),
		}})
	}
	then := func(c *client) []tracking.FixOutcome {
		r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(2 * time.Minute), Fixes: []tracking.Fix{
			newFix(at(30*time.Second), 13.001, 48), newFix(at(15*time.Second), 11.002, 48), newFix(t0, 1, 1),
		}})
		return r.Outcomes
	}
	first(ref)
	restoreAll(t, s, allRows(t, ref.s, tracking.RowQuery{}))
	same(t, "driver", c.driver("d").Position, ref.driver("d").Position)
	same(t, "outcomes", then(c), then(ref))
	same(t, "driver afterwards", c.driver("d").Position, ref.driver("d").Position)
	same(t, "path", c.fixes("d", tracking.FixRange{}), ref.fixes("d", tracking.FixRange{}))
	c.purge(tracking.Before{Fixes: at(5 * time.Second), Limit: 100})
	same(t, "path after a purge", each(c.fixes("d", tracking.FixRange{}), fixTime)[0], at(10*time.Second))
}

// notRestored expects a conflict, and that nothing was written.
func notRestored(t testing.TB, s tracking.Store, what string, r tracking.Restoring, want error) {
	t.Helper()
	before := allRows(t, s, tracking.RowQuery{})
	if err := s.Restore(t.Context(), r); !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
	after := allRows(t, s, tracking.RowQuery{})
	// An application that was given a number has no rows still.
	after = slices.DeleteFunc(after, func(r tracking.Row) bool { return r.Value == tracking.Marks{} })
	before = slices.DeleteFunc(before, func(r tracking.Row) bool { return r.Value == tracking.Marks{} })
	sameRows(t, "rows after "+what, after, before)
}

func restoreIsAtomic(t testing.TB, s tracking.Store) {
	rows := fullRows()
	for i, r := range rows {
		switch r.Kind() {
		case tracking.RowSecret, tracking.RowMemo, tracking.RowApplication, tracking.RowSubject:
			continue
		}
		notRestored(t, s, "a second "+string(r.Kind()), tracking.Restoring{
			Rows: append(slices.Clone(rows[:i+1]), r), Memo: "m", Is: []byte("is"),
		}, tracking.ErrConflict)
	}
	bad := newTask("bad", t0)
	bad.Version, bad.Notes = 1, "\x00"
	notRestored(t, s, "a text with U+0000", tracking.Restoring{
		Rows: append(slices.Clone(rows), tracking.Row{App: here, Value: bad}),
	}, tracking.ErrInvalid)
	restoreAll(t, s, rows)
}

func restoreIsRefused(t testing.TB, s tracking.Store) {
	rows := fullRows()
	restoreAll(t, s, rows)
	for _, r := range rows {
		switch r.Kind() {
		case tracking.RowSecret, tracking.RowMemo, tracking.RowApplication, tracking.RowSubject:
			continue
		}
		notRestored(t, s, "a "+string(r.Kind())+" that is there", tracking.Restoring{Rows: []tracking.Row{r}},
			tracking.ErrConflict)
	}
	one := func(v tracking.RowValue) tracking.Restoring {
		return tracking.Restoring{Rows: []tracking.Row{{App: here, Value: v}}}
	}
	task := newTask("other", t0)
	task.Version, task.Key = 1, use(t, s, here).task("t0").Key
	notRestored(t, s, "a key that is taken", one(task), tracking.ErrConflict)
	key := newKey("other", 1, t0)
	key.Version, key.Hash = 1, use(t, s, there).keys()[0].Hash
	notRestored(t, s, "a hash that is taken elsewhere", one(key), tracking.ErrConflict)
	invite := newInvite("e", 1, 2)
	was := use(t, s, there).invite("d")
	invite.Version, invite.CodeHash, invite.CreatedAt, invite.CodeExpiresAt = 1, was.CodeHash, was.CreatedAt.Add(-time.Minute),
		was.CreatedAt.Add(time.Minute)
	notRestored(t, s, "a code that is taken elsewhere", one(invite), tracking.ErrConflict)
	for _, v := range []tracking.RowValue{
		tracking.Invite{DriverID: "nobody", Version: 1, CreatedAt: t0}, tracking.Request{RequestID: tracking.RequestID{DriverID: "nobody"}},
		tracking.FixRow{DriverID: "nobody", KeptFix: tracking.KeptFix{Fix: newFix(t0, 1, 1), Mark: tracking.MarkGood}},
		tracking.Notice{DriverID: "nobody", ID: 1, Time: t0},
	} {
		notRestored(t, s, fmt.Sprintf("a %T of nobody", v), one(v), tracking.ErrConflict)
	}
	for _, r := range rows {
		m, ok := r.Value.(tracking.Memo)
		if !ok {
			continue
		}
		restoreAll(t, s, []tracking.Row{r}) // the same value
		m.Value += "?"
		notRestored(t, s, "another value of a memo that is there", tracking.Restoring{
			Rows: []tracking.Row{{App: here, Value: tracking.Marks{Version: 5000}}, {Value: m}},
		}, tracking.ErrConflict)
		m.Value = ""
		notRestored(t, s, "a memo without a value that has one", tracking.Restoring{Rows: []tracking.Row{{Value: m}}},
			tracking.ErrConflict)
	}
	notRestored(t, s, "a memo twice with different values", tracking.Restoring{Rows: []tracking.Row{
		{Value: tracking.Memo{Name: "twice", Value: "1"}}, {Value: tracking.Memo{Name: "twice", Value: "2"}},
	}}, tracking.ErrConflict)
	early := tracking.FixRow{DriverID: "d", KeptFix: tracking.KeptFix{Fix: newFix(at(1500*time.Millisecond), 1, 1), Mark: tracking.MarkGood}}
	notRestored(t, s, "a fix among those that are there", one(early), tracking.ErrConflict)
	// The same code, when it was free again.
	invite.CreatedAt, invite.CodeExpiresAt = was.CodeExpiresAt.Add(time.Hour), was.CodeExpiresAt.Add(2*time.Hour)
	restoreAll(t, s, one(invite).Rows)
}

func restoreComparesTheMemo(t testing.TB, s tracking.Store) {
	ctx := context.Background()
	row := func(id string) []tracking.Row {
		k := newKey(id, id[0], t0)
		k.Version = 1
		return []tracking.Row{{App: here, Value: k}}
	}
	notRestored(t, s, "a memo that is not there", tracking.Restoring{
		Rows: row("a"), Memo: "m", Was: []byte("1"), Is: []byte("2"),
	}, tracking.ErrConflict)
	for i, r := range []tracking.Restoring{
		{Rows: row("a"), Memo: "m", Is: []byte("1")}, {Rows: row("b"), Memo: "m", Was: []byte("1"), Is: []byte("2")},
	} {
		if err := s.Restore(ctx, r); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	notRestored(t, s, "a memo that is another by now", tracking.Restoring{
		Rows: row("c"), Memo: "m", Was: []byte("1"), Is: []byte("3"),
	}, tracking.ErrConflict)
	value, err := s.Memo(ctx, "m")
	if err != nil || string(value) != "2" {
		t.Errorf("the memo is %q, error %v; want 2", value, err)
	}
}

func rowsAreFiltered(t testing.TB, s tracking.Store) {
	rows := fullRows()
	restoreAll(t, s, rows)
	pick := func(f func(tracking.Row) bool) []tracking.Row {
		return slices.DeleteFunc(slices.Clone(rows), func(r tracking.Row) bool { return !f(r) })
	}
	sameRows(t, "of an application", allRows(t, s, tracking.RowQuery{App: there}),
		pick(func(r tracking.Row) bool { return r.App == there }))
	for _, kind := range tracking.RowKinds {
		sameRows(t, "of kind "+string(kind), allRows(t, s, tracking.RowQuery{Kinds: []tracking.RowKind{kind}}),
			pick(func(r tracking.Row) bool { return r.Kind() == kind }))
	}
	sameRows(t, "of a driver", allRows(t, s, tracking.RowQuery{App: here, Driver: "e", Kinds: []tracking.RowKind{
		tracking.RowDriver, tracking.RowInvite, tracking.RowRequest, tracking.RowFix, tracking.RowNotice,
	}}), pick(func(r tracking.Row) bool {
		switch v := r.Value.(type) {
		case tracking.DriverRow:
			return r.App == here && v.ID == "e"
		case tracking.FixRow:
			return r.App == here && v.DriverID == "e"
		}
		return false
	}))
	same(t, "of an application that is not there", len(allRows(t, s, tracking.RowQuery{App: "nowhere"})), 0)
	same(t, "of no kind", len(allRows(t, s, tracking.RowQuery{Kinds: []tracking.RowKind{}})), 0)
}

func rowsCanBeLeft(t testing.TB, s tracking.Store) {
	restoreAll(t, s, fullRows())
	for range s.Rows(t.Context(), tracking.RowQuery{}) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range s.Rows(ctx, tracking.RowQuery{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: error %v", err)
		}
	}
	use(t, s, here).commit(tracking.Changeset{Tasks: []tracking.Task{newTask("later", t0)}})
}
