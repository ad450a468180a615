package postgres

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// search looks for the nearest drivers of some classes.
//
// It reads those of the cells that cover a circle, and of these it counts those within the circle
// by tracking.Distance: all that are nearer than its edge are among them. If they are too few it
// takes a larger circle. Of a crowd, which even a small circle holds, the server finds out who comes
// first, and sends few: that takes as long as there are many, and no memory here. Candidates and rows
// are read in one snapshot, so that who is nearest by the ones is so by the others.
type search struct {
	at            tracking.LngLat
	classes       []int16
	offset, limit int
	byLoad        bool    // of equally near ones, those with fewer open tasks first
	within        float64 // metres; 0: anywhere
	since         int64   // only those heard of then or later, UTC ms
	exclude       []string
	requires      map[string]string
	room          int // only those without a limit of their own who have fewer open tasks; negative: all
}

// candidate is what a search knows of a driver before the row is read.
type candidate struct {
	number   int64
	id       string
	at       tracking.LngLat
	open     int
	fits     bool // has what is required
	looked   int  // of how many that fit this is one of the first; 0: of those that were sent
	unsure   bool // whether another one comes before it
	distance float64
}

const (
	candidateColumns = ` p.driver, p.id, p.fix_lng, p.fix_lat, p.open_tasks`

	// A candidate is looked up by its row only where properties are asked for.
	candidateFits = `, $5::jsonb IS NULL OR EXISTS (SELECT 1 FROM tracking.drivers d
	WHERE d.app = p.app AND d.n = p.driver AND d.properties @> $5::jsonb)`

	candidateWanted = `coalesce(p.seen_at, -62135596800000) >= $2 AND p.id <> ALL ($3::text[])
	AND ($4::int < 0 OR p.class <> 10 OR p.open_tasks < $4::int)`

	// OFFSET 0 keeps the planner from turning the loop over ranges around.
	fromCells = `
FROM unnest($6::bigint[], $7::bigint[]) r (lo, hi) CROSS JOIN unnest($8::smallint[]) c (class)
CROSS JOIN LATERAL (SELECT * FROM tracking.positions q
	WHERE q.app = $1 AND q.class = c.class AND q.cell >= r.lo AND q.cell <= r.hi OFFSET 0) p
WHERE ` + candidateWanted
	selectInCells = `SELECT` + candidateColumns + candidateFits + `, 0, false` + fromCells + ` LIMIT $9`

	fromAnywhere = `
FROM tracking.positions p WHERE p.app = $1 AND p.class = ANY ($6::smallint[]) AND p.cell IS NOT NULL
	AND ` + candidateWanted
	selectAnywhere = `SELECT` + candidateColumns + candidateFits + `, 0, false` + fromAnywhere + ` LIMIT $7`

	// Those who have what is required, for when they are few.
	fromHolders = `
FROM tracking.drivers d JOIN tracking.positions p ON p.app = d.app AND p.driver = d.n
WHERE d.app = $1 AND d.properties @> $5::jsonb AND p.class = ANY ($6::smallint[]) AND p.cell IS NOT NULL
	AND ` + candidateWanted
	selectHolders = `SELECT` + candidateColumns + `, true, 0, false` + fromHolders + ` LIMIT $7`

	selectNumbered = selectDrivers + ` WHERE d.app = $1 AND d.n = ANY ($2)`
)

// nearestOf are two queries for those who come first of all candidates of another one, which has n
// parameters: however many they are, the server sends few.
//
// It measures like tracking.Distance but for the last digits. So first tells also whether others, on
// another spot, are about as far away as the last one is: then it is not sure who comes first, and sure
// lists all who may. Those on exactly one spot are equally far away for both, and in the same order.
func nearestOf(fits, from string, n int) (q struct{ first, sure string }) {
	lng, lat, most, byLoad := param(`%d::float8`, n+1), param(`%d::float8`, n+2), param(`%d::int`, n+3),
		param(`%d::bool`, n+4)
	order := `CASE WHEN ` + byLoad + ` THEN open_tasks END, id`
	looked := `(SELECT count(*) FROM c WHERE fits)`
	c := `
WITH c AS MATERIALIZED (SELECT` + candidateColumns + fits + ` AS fits,
	sin(radians((p.fix_lat - ` + lat + `) / 2)) ^ 2
		+ cos(radians(p.fix_lat)) * cos(radians(` + lat + `)) * sin(radians((p.fix_lng - ` + lng + `) / 2)) ^ 2 AS h` + from + `),
first AS MATERIALIZED (SELECT * FROM c WHERE fits ORDER BY h, ` + order + ` LIMIT ` + most + `),
last AS (SELECT asin(sqrt(least(h, 1))) AS angle, fix_lng, fix_lat FROM first ORDER BY h DESC LIMIT 1),
edge AS (SELECT fix_lng, fix_lat, sin(greatest(angle * (1 - 2e-8) - 1e-12, 0)) ^ 2 AS low,
	sin(least(angle * (1 + 2e-8) + 1e-12, pi() / 2)) ^ 2 AS high FROM last)`
	q.first = c + `
SELECT driver, id, fix_lng, fix_lat, open_tasks, fits, ` + looked + `, EXISTS (SELECT 1 FROM c, edge e
	WHERE c.fits AND c.h BETWEEN low AND high AND (c.fix_lng, c.fix_lat) <> (e.fix_lng, e.fix_lat))
FROM first`
	q.sure = c + `
SELECT driver, id, fix_lng, fix_lat, open_tasks, fits, ` + looked + `, false FROM (
	SELECT c.*, row_number() OVER (PARTITION BY fix_lng, fix_lat ORDER BY ` + order + `) AS rank
	FROM c WHERE fits AND h <= (SELECT high FROM edge)) f
WHERE rank <= ` + most
	return q
}

var (
	nearestInCells  = nearestOf(candidateFits, fromCells, 8)
	nearestAnywhere = nearestOf(candidateFits, fromAnywhere, 6)
	nearestHolders  = nearestOf(`, true`, fromHolders, 6)
)

// scanCandidate also tells how many were looked at, if the server knows.
func scanCandidate(row pgx.CollectableRow) (c candidate, err error) {
	err = row.Scan(&c.number, &c.id, &c.at.Lng, &c.at.Lat, &c.open, &c.fits, &c.looked, &c.unsure)
	return c, err
}

const (
	fewDrivers   = 256  // so many are read and sorted without a look at the map
	mostLooked   = 4096 // how many are read of a circle, before a smaller one is tried
	firstRadius  = 1000 // metres, for one driver
	smallest     = 200  // metres: a smaller circle has as many candidates, which are those of its cells
	halfTheWorld = math.Pi * tracking.EarthRadius
)

// density remembers how large the circles were that held enough drivers of some kind.
type density struct {
	mu     sync.Mutex
	radius map[densityKind]float64 // for one driver, in metres
}

type densityKind struct {
	app      int32
	classes  int // how many of them are wanted, and from which on
	requires bool
}

// mostDensities bounds the map.
const mostDensities = 1 << 16

func (d *density) get(k densityKind) (r float64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok = d.radius[k]
	return r, ok
}

func (d *density) set(k densityKind, r float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.radius == nil || len(d.radius) >= mostDensities {
		d.radius = map[densityKind]float64{}
	}
	d.radius[k] = r
}

// look is a search in one snapshot.
type look struct {
	*search
	*tx
	app      int32
	most     int     // how many come first, with those that are left out
	farthest float64 // metres
	requires *string
	unsure   bool // what was read last is not all that may come first
}

// read lists the candidates that a query finds and that are within r metres, with their distances,
// and tells how many it has looked at.
func (l *look) read(
	ctx context.Context, r float64, query string, args ...any,
) (found []candidate, looked int, err error) {
	wanted := []any{l.app, l.since, l.exclude, l.room, l.requires}
	queueRows(l.tx, &found, scanCandidate, query, append(wanted, args...)...)
	if err := l.flush(ctx); err != nil {
		return nil, 0, err
	}
	looked = len(found)
	if l.unsure = false; looked > 0 {
		looked, l.unsure = max(looked, found[0].looked), found[0].unsure
	}
	found = slices.DeleteFunc(found, func(c candidate) bool { return !c.fits })
	for i := range found {
		found[i].distance = tracking.Distance(l.at, found[i].at)
	}
	return slices.DeleteFunc(found, func(c candidate) bool { return c.distance > r }), looked, nil
}

// readNearest is read for however many there may be: it lists those who come first, and maybe more.
func (l *look) readNearest(
	ctx context.Context, r float64, query struct{ first, sure string }, args ...any,
) (found []candidate, looked int, err error) {
	args = append(args, l.at.Lng, l.at.Lat, l.most, l.byLoad)
	found, looked, err = l.read(ctx, r, query.first, args...)
	if err == nil && l.unsure {
		return l.read(ctx, r, query.sure, args...)
	}
	return found, looked, err
}

// find lists the candidates that come first, in any order, and maybe more.
func (l *look) find(ctx context.Context) (found []candidate, err error) {
	known := &l.store.density
	kind := densityKind{l.app, len(l.classes)<<4 | int(l.classes[0]), l.requires != nil}
	one, ok := known.get(kind)
	if !ok {
		found, looked, err := l.read(ctx, l.farthest, selectAnywhere, l.classes, fewDrivers)
		if err != nil || looked < fewDrivers {
			return found, err
		}
		one = firstRadius
	}
	rare := l.requires != nil // few may have it
	r := max(one*math.Sqrt(float64(2*l.most)), smallest)
	limit := l.store.opts.mostLooked + 2*l.most
	crowd := r*r >= one*one*float64(limit) // even a small circle holds too many to read
	for low, high := 0.0, math.Inf(1); ; { // a circle of low holds too few, one of high too many
		if r = min(r, l.farthest); r > halfTheWorld/8 { // the cells would be most of the map
			if l.requires != nil {
				found, _, err = l.readNearest(ctx, l.farthest, nearestHolders, l.classes)
			} else {
				found, _, err = l.readNearest(ctx, l.farthest, nearestAnywhere, l.classes)
			}
			return found, err
		}
		from, to := cellsAround(l.at, r)
		var found []candidate
		var looked, held int
		if crowd {
			found, looked, err = l.readNearest(ctx, r, nearestInCells, from, to, l.classes)
			held = looked
		} else {
			found, looked, err = l.read(ctx, r, selectInCells, from, to, l.classes, limit)
			held = len(found)
		}
		switch {
		case err != nil:
			return nil, err
		case rare && !crowd && looked >= 32 && 16*len(found) < looked:
			rare = false
			holders, n, err := l.read(ctx, l.farthest, selectHolders, l.classes, limit)
			if err != nil || n < limit {
				return holders, err
			}
			continue // the same circle once more: there are many, though few are here
		case len(found) >= l.most && (crowd || looked < limit):
			known.set(kind, r/math.Sqrt(float64(held)))
			return found, nil
		case looked >= limit && !crowd:
			high = r
			if next := max(r/4, math.Sqrt(low*r), smallest); 1.2*next < r {
				r = next
			} else {
				crowd = true
			}
			continue
		case r >= l.farthest:
			return found, nil
		}
		low = r
		grow := 8.0
		if n := len(found); n > 0 {
			grow = max(1.5, min(grow, math.Sqrt(2*float64(l.most)/float64(n))))
		}
		if r *= grow; r >= high && !crowd {
			r = math.Sqrt(low * high)
			crowd = r < 1.2*low
		}
	}
}

// compare orders candidates.
func (q *search) compare(a, b candidate) int {
	c := cmp.Compare(a.distance, b.distance)
	if c == 0 && q.byLoad {
		c = cmp.Compare(a.open, b.open)
	}
	return cmp.Or(c, strings.Compare(a.id, b.id))
}

// nearest reads the drivers that a search finds, in order.
func (s *Store) nearest(ctx context.Context, app tracking.AppID, q search) ([]tracking.Driver, error) {
	n, err := s.numberOf(ctx, app)
	if err != nil || n == 0 || q.limit <= 0 || len(q.classes) == 0 {
		return nil, err
	}
	l := look{search: &q, app: n, most: min(q.offset, math.MaxInt32-q.limit) + q.limit, farthest: halfTheWorld}
	if q.within > 0 {
		l.farthest = min(q.within, halfTheWorld)
	}
	for k, v := range q.requires {
		if !rows.Text(k) || !rows.Text(v) {
			return nil, nil
		}
	}
	if len(q.requires) > 0 {
		l.requires = new(propertiesValue(q.requires))
	}
	q.exclude = slices.DeleteFunc(append([]string{}, q.exclude...), func(id string) bool { return !rows.Text(id) })

	var found []candidate
	var drivers []tracking.Driver
	err = s.look(ctx, func(ctx context.Context, x *tx) error {
		l.tx = x
		if found, err = l.find(ctx); err != nil {
			return err
		}
		slices.SortFunc(found, q.compare)
		found = found[:min(len(found), l.most)]
		found = found[min(len(found), q.offset):]
		numbers := make([]int64, len(found))
		for i, c := range found {
			numbers[i] = c.number
		}
		queueRows(x, &drivers, plainDriver, selectNumbered, n, numbers)
		return nil
	})
	if err != nil || len(drivers) == 0 {
		return nil, err
	}
	place := make(map[int64]int, len(found))
	for i, c := range found {
		place[c.number] = i
	}
	list := make([]tracking.Driver, len(found))
	for _, d := range drivers {
		i := place[d.Seq]
		list[i] = d
		list[i].Distance = found[i].distance
	}
	return list, nil
}

// classRange are the classes from one to another.
func classRange(from, to int16) (list []int16) {
	for c := from; c <= to; c++ {
		list = append(list, c)
	}
	return list
}

// near lists drivers by distance.
func (s *Store) near(
	ctx context.Context, app tracking.AppID, f tracking.DriverFilter,
) ([]tracking.Driver, bool, error) {
	q := search{
		at: *f.Near, classes: classRange(classOffDuty, classFull), offset: f.Offset(), limit: f.Limit + 1,
		since: zeroMillis, requires: f.Properties, room: -1,
	}
	if f.Available != nil && *f.Available {
		q.classes = classRange(classSilent, classFull)
	} else if f.Available != nil {
		q.classes = classRange(classOffDuty, classOffDuty)
	}
	list, err := s.nearest(ctx, app, q)
	list, more := page(list, f.Limit)
	return list, more, err
}

// Offers implements [tracking.DriverReader].
func (s *Store) Offers(ctx context.Context, app tracking.AppID, o tracking.Offer) ([]tracking.Driver, error) {
	return s.nearest(ctx, app, search{
		at: o.At, classes: offered(o.MaxOpen, o.Full), limit: o.Limit, byLoad: true, within: o.Within,
		since: rows.Ceil(o.SeenSince), exclude: texts(o.Exclude), requires: o.Requires,
		room: roomFor(o.MaxOpen, o.Full),
	})
}

// offered are the classes of those on offer who are not full, where others may get so many tasks
// (negative: any number); with full, also of those who are.
func offered(most int, full bool) []int16 {
	switch {
	case full:
		return classRange(classOnOffer, classFull)
	case most < 0:
		return classRange(classOnOffer, classFree)
	}
	list := classRange(classOnOffer, int16(classOnOffer+min(most-1, classMost-classOnOffer)))
	return append(list, classFree)
}

// roomFor is how many open tasks are too many in the class that does not tell how many they are.
func roomFor(most int, full bool) int {
	if full || most <= classMost-classOnOffer {
		return -1
	}
	return min(most, math.MaxInt32)
}

const (
	silence = `greatest(coalesce(p.seen_at, -62135596800000), coalesce(d.duty_at, -62135596800000))`

	// The coarse moment orders like the exact one, and has an index.
	selectSilent = `
(SELECT p.heard, ` + silence + ` AS since, a.id AS app, p.id
FROM tracking.positions p JOIN tracking.drivers d ON d.app = p.app AND d.n = p.driver
	JOIN tracking.apps a ON a.n = p.app
WHERE p.class >= 2 AND p.heard <= $1::bigint >> 18 AND ` + silence + ` <= $1 AND $4::text IN ('', a.id)
ORDER BY 1, 2, 3, 4 LIMIT $3)
UNION
(SELECT p.heard, ` + silence + ` AS since, a.id AS app, p.id
FROM tracking.positions p JOIN tracking.drivers d ON d.app = p.app AND d.n = p.driver
	JOIN tracking.apps a ON a.n = p.app
WHERE p.class >= 2 AND p.heard >= $2::bigint >> 18 AND ` + silence + ` > $2 AND $4::text IN ('', a.id)
ORDER BY 1, 2, 3, 4 LIMIT $3)
ORDER BY 1, 2, 3, 4 LIMIT $3`
)

func scanSilent(row pgx.CollectableRow) (d tracking.Due, err error) {
	var heard, since int64
	d.Subject.Kind = tracking.KindDriver
	err = row.Scan(&heard, &since, &d.App, &d.Subject.ID)
	return d, err
}

// silent lists drivers that have not been heard of, for Due.
func (s *Store) silent(ctx context.Context, q tracking.DueQuery) ([]tracking.Due, error) {
	beyond := int64(endless)
	if !q.Beyond.IsZero() {
		beyond = q.Beyond.UnixMilli()
	}
	return list(ctx, s, scanSilent, selectSilent, q.Before.UnixMilli(), beyond, q.Limit, string(q.App))
}
