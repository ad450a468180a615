package postgres

import (
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// To plan the statements of a group costs as much as to run them. A plan may be kept where it cannot
// become wrong: of an insert of what comes as parameters there is but one, and what goes by keys has
// the right one from when the server knows that its tables are large. Before that it may take
// another index, or read the table, and go on so when the table has grown.
const (
	keepPlans = `SET LOCAL plan_cache_mode = force_generic_plan`
	dropPlans = `SET LOCAL plan_cache_mode = force_custom_plan`

	// Tables of fewer rows are not large.
	settledRows = 1000

	selectSettled = `
SELECT (SELECT min(reltuples) FROM pg_class WHERE oid IN (
	'tracking.drivers'::regclass, 'tracking.positions'::regclass)) >= $1::float4,
	(SELECT reltuples FROM pg_class WHERE oid = 'tracking.tasks'::regclass) >= $1::float4,
	(SELECT reltuples FROM pg_class WHERE oid = 'tracking.trips'::regclass) >= $1::float4,
	(SELECT reltuples FROM pg_class WHERE oid = 'tracking.fixes'::regclass) >= $1::float4`

	settledFor = 5 * time.Second // then it is asked again
)

// tables are some of those whose statistics matter.
type tables uint32

const (
	ofDrivers tables = 1 << iota
	ofTasks
	ofTrips
	ofFixes
)

// plans knows which tables are large.
type plans struct {
	large atomic.Uint32
	asked atomic.Int64 // when, UTC ms
}

// plansOf begins a group's transaction, whose statements go by the keys of some tables.
func (x *tx) plansOf(t tables) {
	p := &x.store.plans
	now := time.Now().UnixMilli()
	if last := p.asked.Load(); now-last > settledFor.Milliseconds() && p.asked.CompareAndSwap(last, now) {
		queueEach(x, func(t tables) { p.large.Store(uint32(t)) }, scanTables, selectSettled, settledRows)
	}
	x.grouped = true
	x.large = p.know(t)
	x.updates()
}

// know reports whether tables are large.
func (p *plans) know(t tables) bool { return tables(p.large.Load())&t == t }

// inserts says that what comes next are inserts, or conditions of no table.
func (x *tx) inserts() { x.plan(true) }

// updates says that what comes next goes by the keys of the tables that the transaction began with.
func (x *tx) updates() { x.plan(x.large) }

// by says that what comes next goes by the keys of other tables.
func (x *tx) by(t tables) { x.plan(x.store.plans.know(t)) }

// plan says whether the plans of what comes next may be kept.
func (x *tx) plan(keep bool) {
	switch {
	case !x.grouped || x.keeps == keep:
		return
	case keep:
		x.queue(keepPlans)
	default:
		x.queue(dropPlans)
	}
	x.keeps = keep
}

func scanTables(row pgx.CollectableRow) (t tables, err error) {
	var drivers, tasks, trips, fixes bool
	err = row.Scan(&drivers, &tasks, &trips, &fixes)
	for i, large := range []bool{drivers, tasks, trips, fixes} {
		if large {
			t |= 1 << i
		}
	}
	return t, err
}
