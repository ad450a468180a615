package postgres

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

const (
	selectWaiting = selectTasks + `app = $1 AND wait_cell IS NOT NULL AND waiting AND (created_at, seq) > ($2, $3)
		ORDER BY created_at, seq LIMIT $4`

	// OFFSET 0 keeps the planner from turning the loop over ranges around.
	selectWaitingIn = `
SELECT t.* FROM unnest($2::bigint[], $3::bigint[]) r (lo, hi) CROSS JOIN LATERAL (
	` + selectTasks + `app = $1 AND wait_cell >= r.lo AND wait_cell <= r.hi OFFSET 0) t LIMIT $4`
	selectWaitingFrom = selectTasks + `app = $1 AND (wait_cell, seq) >= ($2, $3) AND wait_cell <= $4
		ORDER BY wait_cell, seq LIMIT $5`

	// Of some ranges those where something waits.
	selectWaitingRanges = `
SELECT r.lo, r.hi FROM unnest($2::bigint[], $3::bigint[]) r (lo, hi)
WHERE EXISTS (SELECT 1 FROM tracking.tasks WHERE app = $1 AND wait_cell >= r.lo AND wait_cell <= r.hi)`

	waitingChunk = 500
)

// Waiting implements [tracking.Store]. Those near a place are looked up where they are few, and else
// the walk by age soon meets one.
func (s *Store) Waiting(
	ctx context.Context, app tracking.AppID, f tracking.WaitingFilter,
) ([]tracking.Task, error) {
	keep := func(t *tracking.Task) bool {
		if f.Driver != "" && (slices.Contains(t.Excluded, f.Driver) ||
			!tracking.Driver{Properties: f.Properties}.Meets(t.Requires)) {
			return false
		}
		return f.Near == nil || f.Within <= 0 || tracking.Distance(*f.Near, *t.Point()) <= f.Within
	}
	if f.Near != nil && 0 < f.Within && f.Within < halfTheWorld/8 {
		from, to := cellsAround(*f.Near, f.Within)
		near, err := listIn(ctx, s, app, plainTask, selectWaitingIn, from, to, waitingChunk)
		if err != nil {
			return nil, err
		}
		if len(near) < waitingChunk {
			near = slices.DeleteFunc(near, func(t tracking.Task) bool { return !keep(&t) })
			if len(near) == 0 || f.Limit <= 0 {
				return nil, nil
			}
			slices.SortFunc(near, func(a, b tracking.Task) int {
				return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Seq, b.Seq))
			})
			return near[:min(len(near), f.Limit)], nil
		}
	}
	return s.waiting(ctx, app, f.Limit, keep)
}

// keepOf adds to found, up to limit, what keep wants of a chunk.
func keepOf(found, chunk []tracking.Task, limit int, keep func(*tracking.Task) bool) []tracking.Task {
	for i := range chunk {
		if len(found) < limit && keep(&chunk[i]) {
			found = append(found, chunk[i])
		}
	}
	return found
}

// waiting lists up to limit of the tasks that wait and that keep wants, oldest first.
func (s *Store) waiting(
	ctx context.Context, app tracking.AppID, limit int, keep func(*tracking.Task) bool,
) (found []tracking.Task, err error) {
	after, seq := int64(math.MinInt64), int64(0)
	for len(found) < limit {
		chunk, err := listIn(ctx, s, app, plainTask, selectWaiting, after, seq, waitingChunk)
		if err != nil {
			return nil, err
		}
		found = keepOf(found, chunk, limit, keep)
		if len(chunk) < waitingChunk {
			break
		}
		last := &chunk[len(chunk)-1]
		after, seq = last.CreatedAt.UnixMilli(), last.Seq
	}
	return found, nil
}

// waitingIn lists up to limit of the tasks that wait in some cells and that keep wants.
func (s *Store) waitingIn(
	ctx context.Context, app tracking.AppID, cells []cellRange, limit int, keep func(*tracking.Task) bool,
) (found []tracking.Task, err error) {
	from, to := rangeColumns(cells)
	cells, err = listIn(ctx, s, app, scanCellRange, selectWaitingRanges, from, to)
	if err != nil {
		return nil, err
	}
	for _, c := range cells {
		for cell, seq := c.from, int64(0); len(found) < limit; {
			chunk, err := listIn(ctx, s, app, plainTask, selectWaitingFrom, cell, seq, c.to, waitingChunk)
			if err != nil {
				return nil, err
			}
			found = keepOf(found, chunk, limit, keep)
			if len(chunk) < waitingChunk {
				break
			}
			last := &chunk[len(chunk)-1]
			cell, seq = cellOf(*last.Point()), last.Seq+1
		}
	}
	return found, nil
}

func scanCellRange(row pgx.CollectableRow) (c cellRange, err error) {
	err = row.Scan(&c.from, &c.to)
	return c, err
}

// OFFSET 0 as above. The range is of all cells: the planner does not see how wide it is, takes it for
// narrow whatever the statistics say, and goes by the index, where it would else read the table.
const selectOffered = `
SELECT p.id, (SELECT d.properties FROM tracking.drivers d WHERE d.app = p.app AND d.id = p.id), p.cell, p.fix_lng, p.fix_lat
FROM unnest('{0}'::bigint[], '{9223372036854775807}'::bigint[]) r (lo, hi) CROSS JOIN unnest($2::smallint[]) c (class)
CROSS JOIN LATERAL (SELECT * FROM tracking.positions q
	WHERE q.app = $1 AND q.class = c.class AND q.cell >= r.lo AND q.cell <= r.hi OFFSET 0) p
WHERE coalesce(p.seen_at, -62135596800000) >= $3 AND ($4::int < 0 OR p.class <> 10 OR p.open_tasks < $4::int) LIMIT $5`

// offer is a driver on offer, as Matches knows him.
type offer struct {
	id         tracking.DriverID
	properties map[string]string
	at         tracking.LngLat
	cell       int64
}

func scanOffer(row pgx.CollectableRow) (o offer, err error) {
	err = row.Scan(&o.id, &o.properties, &o.cell, &o.at.Lng, &o.at.Lat)
	return o, err
}

// takes reports whether a driver could get a task.
func (o *offer) takes(t *tracking.Task, within float64) bool {
	return (within <= 0 || tracking.Distance(o.at, *t.Point()) <= within) && !slices.Contains(t.Excluded, o.id) &&
		tracking.Driver{Properties: o.properties}.Meets(t.Requires)
}

// tile is a square of the map with the drivers on offer in it.
type tile struct {
	drivers []*offer
	center  tracking.LngLat
	radius  float64 // of the circle that holds what they can take
}

const (
	fewOffers  = 1000 // so many drivers are read before a task is looked at
	mostLookUp = 64   // tasks, where there are more drivers
)

// Matches implements [tracking.Store]. It goes by the drivers on offer: where there is none it reads
// no task, and else only those that wait where one of them can take one. Where there are many of
// them, somebody takes one of the oldest tasks, mostly; then it need not read all of them.
func (s *Store) Matches(
	ctx context.Context, app tracking.AppID, q tracking.MatchQuery,
) ([]tracking.Task, error) {
	n, err := s.numberOf(ctx, app)
	if err != nil {
		return nil, err
	}
	drivers, err := s.offeredAt(ctx, n, q, fewOffers+1)
	if err != nil || len(drivers) == 0 {
		return nil, err
	}
	key := func(t tracking.Task) (claimKey, error) {
		return claimKey{n, tracking.Subject{Kind: tracking.KindTask, ID: string(t.ID)}}, nil
	}
	return take(ctx, s, sweepMatches, q.Claim, q.Limit, key, func(limit int) ([]tracking.Task, error) {
		if len(drivers) > fewOffers {
			if found, err := s.lookUp(ctx, app, q, limit); err != nil || len(found) > 0 {
				return found, err
			}
			if drivers, err = s.offeredAt(ctx, n, q, math.MaxInt32); err != nil {
				return nil, err
			}
		}
		return s.matches(ctx, app, q, drivers, limit)
	})
}

// offeredAt lists up to limit drivers on offer.
func (s *Store) offeredAt(ctx context.Context, app int32, q tracking.MatchQuery, limit int) ([]offer, error) {
	return list(ctx, s, scanOffer, selectOffered, app, offered(q.MaxOpen, false), rows.Ceil(q.SeenSince),
		roomFor(q.MaxOpen, false), limit)
}

// lookUp asks for a driver for each of the oldest tasks that wait.
func (s *Store) lookUp(
	ctx context.Context, app tracking.AppID, q tracking.MatchQuery, limit int,
) (found []tracking.Task, err error) {
	oldest, err := s.waiting(ctx, app, mostLookUp, func(*tracking.Task) bool { return true })
	for i := range oldest {
		t := &oldest[i]
		list, err := s.Offers(ctx, app, tracking.Offer{
			At: *t.Point(), Within: q.Within, SeenSince: q.SeenSince, MaxOpen: q.MaxOpen, Exclude: t.Excluded,
			Requires: t.Requires, Limit: 1,
		})
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			found = append(found, *t)
		}
		if len(found) >= limit {
			break
		}
	}
	return found, err
}

// matches lists up to limit tasks that one of these drivers can take.
func (s *Store) matches(
	ctx context.Context, app tracking.AppID, q tracking.MatchQuery, drivers []offer, limit int,
) ([]tracking.Task, error) {
	tiles := tilesOf(drivers, q.Within)
	could := func(t *tracking.Task) bool {
		return slices.ContainsFunc(tiles, func(tile tile) bool {
			return (q.Within <= 0 || tracking.Distance(tile.center, *t.Point()) <= tile.radius) &&
				slices.ContainsFunc(tile.drivers, func(o *offer) bool { return o.takes(t, q.Within) })
		})
	}
	if q.Within <= 0 || q.Within >= halfTheWorld/8 {
		return s.waiting(ctx, app, limit, could)
	}
	var cells []cellRange
	for _, t := range tiles {
		cells = append(cells, rangesAround(t.center, t.radius)...)
	}
	return s.waitingIn(ctx, app, joined(cells), limit, could)
}

// tilesOf puts drivers together who are near each other, as seen from within metres away.
func tilesOf(drivers []offer, within float64) []tile {
	if within <= 0 {
		all := tile{}
		for i := range drivers {
			all.drivers = append(all.drivers, &drivers[i])
		}
		return []tile{all}
	}
	const height = halfTheWorld / (1 << cellBits) // of a cell, in metres
	shift := 0
	for shift < cellBits && height*float64(int(2)<<shift) <= within {
		shift++
	}
	index := map[int64]int{}
	var tiles []tile
	for i := range drivers {
		d := &drivers[i]
		at, ok := index[d.cell>>(2*shift)]
		if !ok {
			at = len(tiles)
			index[d.cell>>(2*shift)] = at
			tiles = append(tiles, tile{center: d.at})
		}
		t := &tiles[at]
		t.drivers = append(t.drivers, d)
		t.radius = max(t.radius, tracking.Distance(t.center, d.at)*1.0001+within+1)
	}
	return tiles
}
