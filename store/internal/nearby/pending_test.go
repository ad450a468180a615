package nearby_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
)

// spot is where driver i is after so many moves: so a place says how many there were.
func spot(i, moves int) tracking.LngLat {
	return tracking.LngLat{Lng: float64(i) / 100, Lat: float64(moves) / 1e4}
}

func movesTo(p tracking.LngLat) int { return int(math.Round(p.Lat * 1e4)) }

func spotted(i, moves int) tracking.Position {
	return tracking.Position{
		SeenAt: epoch.Add(time.Duration(moves) * time.Second), Fix: tracking.Fix{LngLat: spot(i, moves), Time: epoch},
	}
}

// A look that begins after a move has returned sees it, whoever moves, looks, changes and removes at the
// same time.
func TestALookSeesWhatReturnedBefore(t *testing.T) {
	const fixers, each, moves = 4, 40, 400
	var x nearby.Index
	var entries [fixers * each]nearby.Entry
	index := map[tracking.DriverID]int{}
	put := func(i, n int) {
		d := tracking.Driver{ID: driverID(i), Available: true, Route: route(n % 3), Position: spotted(i, n)}
		if i%2 == 0 {
			x.Put(d)
		} else {
			x.PutEntry(&entries[i], d)
		}
	}
	move := func(i, n int) {
		if i%2 == 0 {
			x.Move(driverID(i), spotted(i, n))
			return
		}
		x.MoveEntry(&entries[i], spotted(i, n))
		if at, seen := x.Last(&entries[i]); at != spot(i, n) || !seen.Equal(spotted(i, n).SeenAt) {
			t.Errorf("driver %d is at %v, seen %v, after move %d", i, at, seen, n)
		}
	}
	remove := func(i int) {
		if i%2 == 0 {
			x.Remove(driverID(i))
		} else {
			x.RemoveEntry(&entries[i])
		}
	}
	var begun, done [fixers * each]atomic.Int64 // moves; negative: he may be gone
	for i := range done {
		index[driverID(i)] = i
		put(i, 0)
	}
	var fixing, looking sync.WaitGroup
	var over atomic.Bool
	for f := range fixers {
		fixing.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(f)))
			for n := 1; n <= moves; n++ {
				i := f + fixers*r.IntN(each)
				begun[i].Store(int64(n))
				switch r.IntN(10) {
				case 0:
					done[i].Store(math.MinInt64)
					move(i, n)
					remove(i)
					if hits := x.Near(spot(i, n), nearby.Filter{}, 0, 1, nil); hits[0].ID == driverID(i) {
						t.Errorf("driver %d is found where he has been removed", i)
					}
					put(i, n)
				case 1:
					put(i, n)
				default:
					move(i, n)
				}
				done[i].Store(int64(n))
				if n%2 == 0 {
					continue
				}
				if hits := x.Near(spot(i, n), nearby.Filter{}, 0, 1, nil); hits[0].ID != driverID(i) || hits[0].Distance != 0 {
					t.Errorf("driver %d is not found where he is: %v", i, hits)
				}
				o := tracking.Offer{At: spot(i, n), MaxOpen: -1, SeenSince: spotted(i, n).SeenAt, Limit: 1}
				if hits := x.Offers(o, nil); len(hits) == 0 || hits[0].ID != driverID(i) || hits[0].At != o.At {
					t.Errorf("driver %d is not offered where he is: %v", i, hits)
				}
			}
		})
	}
	for l := range 2 {
		looking.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(l)))
			var before [fixers * each]int64
			for !over.Load() {
				for i := range before {
					before[i] = done[i].Load()
				}
				limit := 1 + r.IntN(fixers*each)
				found := map[int]bool{}
				for _, h := range x.Near(spot(r.IntN(fixers*each), r.IntN(moves)), nearby.Filter{}, 0, limit, nil) {
					i := index[h.ID]
					if n := int64(movesTo(h.At)); found[i] || n < before[i] || n > begun[i].Load() || h.At != spot(i, int(n)) {
						t.Errorf("driver %d is found at %v, after %d moves or more", i, h.At, before[i])
					}
					found[i] = true
				}
				if len(found) < limit-fixers { // so many may be gone
					t.Errorf("%d found of %d", len(found), limit)
				}
				x.Silent(epoch, 5)
			}
		})
	}
	fixing.Wait()
	over.Store(true)
	looking.Wait()
	for i := 1; i < len(entries); i += 2 {
		x.RemoveEntry(&entries[i]) // whom Check does not count
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}

// Moves at which nobody looks do not heap up.
func TestPendingMovesAreFew(t *testing.T) {
	var x nearby.Index
	x.Put(tracking.Driver{ID: "d"})
	most := 0
	for n := range 1000 {
		x.Move("d", spotted(0, n))
		most = max(most, x.Pending())
	}
	if most < 2 || most > 100 {
		t.Errorf("%d moves were pending", most)
	}
	if hits := x.Near(spot(0, 999), nearby.Filter{}, 0, 1, nil); len(hits) != 1 || hits[0].Distance != 0 {
		t.Error(hits)
	}
	if n := x.Pending(); n != 0 {
		t.Errorf("%d moves are pending after a look", n)
	}
}

// Each change finds the moves before it in the trees: one of a driver who comes only afterwards is
// none, and one of a driver who goes keeps nothing.
func TestPendingMovesKeepTheirTurn(t *testing.T) {
	var x nearby.Index
	d := tracking.Driver{ID: "d", Available: true, Position: spotted(1, 1)}
	x.Move("d", spotted(0, 5))
	x.Put(d)
	if hits := x.Near(spot(0, 0), nearby.Filter{}, 0, 1, nil); len(hits) != 1 || hits[0].At != spot(1, 1) {
		t.Errorf("a move of before he was there: %v", hits)
	}
	x.Move("d", spotted(0, 6))
	x.Remove("d")
	if x.Pending() != 0 || x.Len() != 0 || len(x.Near(spot(0, 0), nearby.Filter{}, 0, 1, nil)) != 0 {
		t.Error("a move of one who is gone")
	}
	x.Put(d)
	x.Move("d", tracking.Position{SeenAt: epoch.Add(time.Hour)})
	if hits := x.Near(spot(0, 0), nearby.Filter{}, 0, 1, nil); len(hits) != 0 {
		t.Errorf("one whose position was taken away: %v", hits)
	}
	x.Move("d", spotted(2, 7))
	if late := x.Silent(epoch, 1); len(late) != 0 {
		t.Errorf("silent, but heard of: %v", late)
	}
	x.PutTask(tracking.Task{
		ID: "t", Type: tracking.TypeDrop, Waiting: true, Drop: &tracking.Place{LngLat: new(spot(3, 0))},
	})
	q := tracking.MatchQuery{MaxOpen: 1, SeenSince: epoch, Within: 10_000, Limit: 1}
	if ids := x.Matches(q); len(ids) != 1 {
		t.Errorf("matches %v", ids)
	}
	x.Move("d", spotted(50, 0))
	if ids := x.Matches(q); len(ids) != 0 {
		t.Errorf("far away he matches %v", ids)
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}
