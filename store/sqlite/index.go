package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// index answers who is near, who may be offered a task, who has fallen silent and which tasks wait,
// from memory. It follows the rows: the writer brings it up to date after each commit, before it
// answers.
type index struct {
	// order keeps the writer's changes and the first filling apart: a chunk is read and put in
	// while the writer waits, so nothing older follows a change.
	order sync.RWMutex

	mu   sync.Mutex
	apps map[int64]*nearby.Index

	filling sync.Mutex
	last    *fill          // the latest attempt to fill it
	running sync.WaitGroup // of the attempts
	ready   atomic.Bool    // one has succeeded
}

// fill is an attempt to put all drivers in.
type fill struct {
	done chan struct{}
	err  error // set before done is closed
}

// wait is a task that waits, or did before the transaction.
type wait struct {
	app  int64
	task tracking.Task
}

// waits notes what the transaction has made of a task, for the index, if it waits or did so before.
func (x *tx) waits(app int64, t *tracking.Task, before bool, created time.Time, seq int64) {
	if !t.Waiting && !before {
		return
	}
	task := t.Clone()
	task.CreatedAt, task.Seq = rows.Time(created), seq
	x.waiting = append(x.waiting, wait{app, task})
}

// fill begins to put all drivers and waiting tasks in, after an attempt that has failed; another
// caller may have begun already. The caller holds s.life.
func (x *index) fill(s *Store, failed *fill) *fill {
	x.filling.Lock()
	defer x.filling.Unlock()
	if x.last != failed {
		return x.last
	}
	f := &fill{done: make(chan struct{})}
	x.last = f
	if s.path == "" { // a store in memory begins empty
		close(f.done)
		return f
	}
	x.running.Go(func() {
		defer close(f.done)
		f.err = x.putAll(s)
	})
	return f
}

// of returns an application's part.
func (x *index) of(app int64) *nearby.Index {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.apps[app]
	if n == nil {
		if x.apps == nil {
			x.apps = map[int64]*nearby.Index{}
		}
		n = new(nearby.Index)
		x.apps[app] = n
	}
	return n
}

// apply brings the index up to date with what was committed.
func (x *index) apply(drivers []driven, waits []wait) {
	if len(drivers)+len(waits) == 0 {
		return
	}
	x.order.Lock()
	defer x.order.Unlock()
	for _, d := range drivers {
		if d.now != nil {
			x.of(d.key.app).Put(d.now.Driver)
		} else {
			x.of(d.key.app).Remove(d.key.id)
		}
	}
	for _, w := range waits {
		x.of(w.app).PutTask(w.task)
	}
}

// parts returns what there is of each application.
func (x *index) parts() map[int64]*nearby.Index {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.apps)
}

const (
	selectLastDriver = `SELECT coalesce(max(seq), 0) FROM drivers`

	// Few columns, as there may be a million rows: a place is there if its numbers are.
	selectForIndex = `
SELECT d.app, d.id, d.available + 2 * d.silent, d.route, d.max_open_tasks, d.properties, d.duty_at, p.seen_at,
	p.fix_lng, p.fix_lat
FROM drivers d LEFT JOIN positions p ON p.driver = d.seq WHERE d.seq > ? AND d.seq <= ?`

	indexChunk = 500 // drivers or tasks read while the writer waits
)

// putAll puts all drivers and waiting tasks in, a chunk at a time. Those that are made meanwhile
// the writer puts in.
func (x *index) putAll(s *Store) error {
	var last int64
	err := s.read(s.closing, func(ctx context.Context) error { return s.get(ctx, &last, selectLastDriver) })
	if err != nil {
		return err
	}
	var next atomic.Int64
	errs := make([]error, min(4, runtime.GOMAXPROCS(0)))
	var workers sync.WaitGroup
	for i := range errs {
		workers.Go(func() {
			for errs[i] == nil {
				after := next.Add(indexChunk) - indexChunk
				if after >= last {
					return
				}
				errs[i] = x.putChunk(s, after)
			}
		})
	}
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := x.putWaiting(s); err != nil {
		return err
	}
	x.putLate(s)
	return nil
}

// waitingRow is what the index holds of a waiting task.
type waitingRow struct {
	App          int64
	ID           tracking.TaskID
	CreatedAt    instant `db:"created_at"`
	Seq          int64
	Type         tracking.TaskType
	Excluded     text
	More         text
	Pickup, Drop pointRow
}

// putWaiting puts all waiting tasks in.
func (x *index) putWaiting(s *Store) error {
	var last waitingRow // of the zero time: before everything
	chunk := func() (n int, err error) {
		x.order.RLock()
		defer x.order.RUnlock()
		err = s.read(s.closing, func(ctx context.Context) error {
			var list []waitingRow
			if err := s.list(ctx, &list, selectWaitingForIndex, last.CreatedAt.UnixMilli(), last.Seq,
				indexChunk); err != nil {
				return err
			}
			for _, r := range list {
				t := tracking.Task{ID: r.ID, Type: r.Type, Waiting: true, CreatedAt: r.CreatedAt.Time, Seq: r.Seq}
				if t.Excluded, err = fromJSON[[]tracking.DriverID](r.Excluded); err != nil {
					return err
				}
				if err = rows.AddMore(&t, string(r.More)); err != nil {
					return err
				}
				t.Pickup, t.Drop = &tracking.Place{LngLat: r.Pickup.point()}, &tracking.Place{LngLat: r.Drop.point()}
				x.of(r.App).PutTask(t)
			}
			if n = len(list); n > 0 {
				last = list[n-1]
			}
			return nil
		})
		return n, err
	}
	for {
		if n, err := chunk(); err != nil || n < indexChunk {
			return err
		}
	}
}

// putChunk puts the next drivers after a number into the index.
func (x *index) putChunk(s *Store, after int64) error {
	x.order.RLock()
	defer x.order.RUnlock()
	return s.read(s.closing, func(ctx context.Context) error {
		st, err := s.statement(ctx, selectForIndex)
		if err != nil {
			return err
		}
		rows, err := st.QueryContext(ctx, after, after+indexChunk)
		if err != nil {
			return err
		}
		defer rows.Close()
		var part *nearby.Index
		var of int64
		for rows.Next() {
			var d tracking.Driver
			var app int64
			var flags int
			var duty, seen sql.NullInt64
			var at pointRow
			var route, properties text
			if err := rows.Scan(&app, &d.ID, &flags, &route, &d.MaxOpenTasks, &properties, &duty, &seen, &at.Lng,
				&at.Lat); err != nil {
				return err
			}
			if d.Properties, err = fromJSON[map[string]string](properties); err != nil {
				return err
			}
			if d.Route, err = fromJSON[[]tracking.Stop](route); err != nil {
				return err
			}
			d.Available, d.Silent = flags&1 != 0, flags&2 != 0
			if duty.Valid {
				d.DutyAt = fromMillis(duty.Int64)
			}
			if seen.Valid {
				d.Position.SeenAt = fromMillis(seen.Int64)
			}
			if p := at.point(); p != nil {
				d.Position.Fix = tracking.Fix{LngLat: *p, Time: fromMillis(0)} // any time: there is a position
			}
			if part == nil || app != of {
				part, of = x.of(app), app
			}
			part.Put(d)
		}
		return rows.Err()
	})
}

// indexed waits until the index is filled. If that has failed it is tried once more.
func (s *Store) indexed(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var failed *fill
	for range 2 {
		s.life.RLock()
		if s.closed {
			s.life.RUnlock()
			return rows.ErrClosed
		}
		f := s.index.fill(s, failed)
		s.life.RUnlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if f.err == nil {
			return nil
		}
		failed = f
	}
	if s.closing.Err() != nil {
		return rows.ErrClosed
	}
	return unavailable("The index of positions could not be built.", failed.err)
}

// maxLooks is how often a list from the index looks again when what is listed has changed between
// the look and the read of the rows. A look takes less than the writer's commits, so that even in a
// crowd where each commit changes somebody listed one soon falls between two of them.
const maxLooks = 16

// nearest reads the drivers that look finds in the index, at most limit. Those whose rows no longer
// fit are left out or put in their new place; if there are any, it looks again, as another one may
// now come before them. In the end it looks for as many more as have to be left out: a short list
// says that there is nobody else. With byLoad open tasks count for the order.
func (s *Store) nearest(
	ctx context.Context, app tracking.AppID, at tracking.LngLat, byLoad bool, limit int,
	look func(part *nearby.Index, limit int) ([]nearby.Hit, error), fits func(tracking.Driver) bool,
) (list []tracking.Driver, err error) {
	if err := s.indexed(ctx); err != nil {
		return nil, err
	}
	n, ok := s.apps.Number(app)
	if !ok {
		return nil, nil
	}

	// The index says who, the rows say what is so now: the index may be a moment behind.
	part := s.index.of(n)
	for looks, most := 1, limit; ; looks++ {
		hits, err := look(part, most)
		if err != nil {
			return nil, err
		}
		if len(hits) == 0 {
			return nil, nil
		}
		ids := make([]tracking.DriverID, len(hits))
		for i, h := range hits {
			ids[i] = h.ID
		}
		var rows map[tracking.DriverID]tracking.Driver
		err = s.readDrivers(ctx, func(ctx context.Context) error {
			rows, err = s.driversByID(ctx, n, ids)
			return err
		})
		if err != nil {
			return nil, err
		}
		list, err = list[:0], nil
		moved := false
		for _, h := range hits {
			d, ok := rows[h.ID]
			if !ok || !d.Position.Located() || !fits(d) {
				moved = true
				continue
			}
			moved = moved || d.Position.Fix.LngLat != h.At || byLoad && d.OpenTasks() != h.OpenTasks
			d.Distance = tracking.Distance(at, d.Position.Fix.LngLat)
			list = append(list, d)
		}
		if !moved {
			break
		}
		if looks < maxLooks {
			continue
		}
		if len(list) >= limit || len(hits) < most {
			sortNearest(list, byLoad)
			break
		}
		most += len(hits) - len(list)
	}
	return list[:min(len(list), limit)], nil
}

func sortNearest(list []tracking.Driver, byLoad bool) {
	slices.SortFunc(list, func(a, b tracking.Driver) int {
		if c := cmp.Compare(a.Distance, b.Distance); c != 0 {
			return c
		}
		if byLoad {
			return cmp.Or(cmp.Compare(a.OpenTasks(), b.OpenTasks()), cmp.Compare(a.ID, b.ID))
		}
		return cmp.Compare(a.ID, b.ID)
	})
}

// near lists drivers by distance.
func (s *Store) near(
	ctx context.Context, app tracking.AppID, f tracking.DriverFilter,
) ([]tracking.Driver, bool, error) {
	at := *f.Near
	list, err := s.nearest(ctx, app, at, false, f.Limit+1, func(part *nearby.Index, limit int) ([]nearby.Hit, error) {
		keep, err := s.holders(ctx, app, f)
		if err != nil {
			return nil, err
		}
		return part.Near(at, nearby.Filter{Available: f.Available}, f.Offset(), limit, keep), nil
	}, func(d tracking.Driver) bool {
		return (f.Available == nil || d.Available == *f.Available) && d.Meets(f.Properties)
	})
	if err != nil {
		return nil, false, err
	}
	list, more := cut(list, f.Limit)
	if len(list) == 0 {
		list = nil
	}
	return list, more, nil
}

// holders returns a test for having the properties that f asks for; nil if it asks for none.
func (s *Store) holders(
	ctx context.Context, app tracking.AppID, f tracking.DriverFilter,
) (func(tracking.DriverID) bool, error) {
	if len(f.Properties) == 0 {
		return nil, nil
	}
	n, _ := s.apps.Number(app)
	var ids []tracking.DriverID
	err := s.read(ctx, func(ctx context.Context) error {
		properties, err := s.properties(ctx, n, f.Properties)
		if err != nil {
			return err
		}
		query, args := byProperties(selectDriverIDsByProperty, n, properties, f.Available)
		return s.list(ctx, &ids, query, args...)
	})
	if err != nil {
		return nil, err
	}
	set := make(map[tracking.DriverID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return func(id tracking.DriverID) bool { return set[id] }, nil
}

// Offers implements [tracking.DriverReader].
func (s *Store) Offers(ctx context.Context, app tracking.AppID, o tracking.Offer) ([]tracking.Driver, error) {
	list, err := s.nearest(ctx, app, o.At, true, o.Limit, func(part *nearby.Index, limit int) ([]nearby.Hit, error) {
		o.Limit = limit
		return part.Offers(o, nil), nil
	}, func(d tracking.Driver) bool {
		return d.Available && !d.Silent && (o.Full || !d.Full(o.MaxOpen)) && d.Meets(o.Requires) &&
			!d.Position.SeenAt.Before(o.SeenSince) &&
			(o.Within == 0 || tracking.Distance(o.At, d.Position.Fix.LngLat) <= o.Within)
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list, nil
}

// silent lists drivers that have not been heard of, for Due.
func (s *Store) silent(ctx context.Context, q tracking.DueQuery) ([]tracking.Due, error) {
	if err := s.indexed(ctx); err != nil {
		return nil, err
	}
	type due struct {
		nearby.Silence
		app tracking.AppID
	}
	var found []due
	for n, part := range s.index.parts() {
		app := s.appOf(n)
		if q.App != "" && app != q.App {
			continue
		}
		list := part.Silent(q.Before, q.Limit)
		if !q.Beyond.IsZero() {
			list = append(list, part.Ahead(q.Beyond, q.Limit)...)
		}
		for _, d := range list {
			found = append(found, due{d, app})
		}
	}
	slices.SortFunc(found, func(a, b due) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.app, b.app), cmp.Compare(a.ID, b.ID))
	})
	var list []tracking.Due
	for _, d := range found[:min(len(found), q.Limit)] {
		list = append(list, tracking.Due{
			App: d.app, Subject: tracking.Subject{Kind: tracking.KindDriver, ID: string(d.ID)},
		})
	}
	return list, nil
}
