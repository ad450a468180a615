// Package nearby is the index of drivers that the stores share: who is nearest to a place, who may be offered a task there, and who has fallen silent.
//
// An [Index] holds the drivers of one application. A store puts a driver into it whenever the row changes ([Index.Put]), tells it of fixes
// ([Index.Move]), and takes out who is deleted ([Index.Remove]); rows stay the truth, the index holds no more than it needs to answer:
//
//	var x nearby.Index
//	x.Put(driver)                                     // after a commit
//	x.Move(id, recorded.Driver.Position)              // after RecordFixes
//	hits := x.Near(at, nearby.Filter{}, 0, 21, nil)   // page 1 of 20, and whether there is more
//	hits = x.Offers(offer, nil)                       // candidates for automatic assignment
//	late := x.Silent(before, 100)                     // for tracking.DueSilence
//
// Results are exact: their order is ([tracking.Distance], id) to the last bit, on the whole sphere, ±180° and the poles included.
//
// # How it works
//
// Each driver with a position is in exactly one R-tree, chosen by what the driver may be asked for: off duty, silent, or on offer with 0, 1, 2 … open tasks.
// A move touches one tree; a query looks only into the trees that can hold an answer, so that a single idle driver among a million busy ones
// is found as fast as a crowd would be. A changed limit of open tasks changes which trees are looked at, and nothing in them.
//
// An R-tree's own nearest-neighbour walk computes a distance to every rectangle it meets and keeps them in a heap. A range search needs neither.
// So a query searches a box that surely covers a circle around the place; if at least k drivers lie within the circle, the k nearest are among them.
// The radius starts from what earlier queries of the same kind needed, and is bracketed until the circle holds enough but not too many.
package nearby

import (
	"sync"
	"sync/atomic"

	"github.com/tidwall/rtree"

	"github.com/seed-8aba7b13/tracking"
)

// Trees, by what a driver in them may be asked for.
const (
	offDuty   = iota // not available
	silent           // available, but not heard of
	onOffer          // available and heard of, with no open task; the next trees are those with 1, 2, …
	manyTasks = onOffer + 8
	numTrees  = manyTasks + 1 // the last holds those with 8 open tasks or more
)

// Index is the index of one application's drivers. The zero Index is empty and ready. All its methods may be called at once from many goroutines;
// each is atomic, and sees every change that returned before it began.
type Index struct {
	mu      sync.RWMutex
	drivers map[tracking.DriverID]*entry
	trees   [numTrees]rtree.RTreeG[*entry]
	silence silenceQueue

	// hints holds, for each kind of query, the radius in metres (as float bits) in which the last one would have found one driver on average.
	hints   [numHints]atomic.Uint64
	scratch sync.Pool // of *search
}

// Kinds of queries that have a hint of their own, because they look into different crowds. Offers with a limit of 1, 2, … open tasks follow.
const (
	hintAll = iota
	hintAvailable
	hintUnavailable
	hintOffers // without a limit
	numHints   = hintOffers + 1 + numTrees - onOffer
)

// entry is what the index knows of a driver.
type entry struct {
	id   tracking.DriverID
	at   [2]float64 // longitude, latitude
	tree int        // the tree that the driver belongs to

	located bool  // there is a position, and the driver is in that tree
	open    int   // open tasks
	seen    int64 // last sign of life, UTC ms
	duty    int64 // when the availability last changed, UTC ms

	watched bool  // available and not silent: in the silence queue
	due     int64 // what the silence queue goes by; never later than lastHeard
	slot    int   // the place in that queue
}

// lastHeard is the moment from which silence is counted, UTC ms.
func (e *entry) lastHeard() int64 { return max(e.seen, e.duty) }

// Len is the number of drivers in the index, with and without a position.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.drivers)
}

// Put brings the index up to date with a driver as of now: ID, Available, Silent, DutyAt, OpenTasks and Position are read.
func (x *Index) Put(d tracking.Driver) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.drivers[d.ID]
	if e == nil {
		if x.drivers == nil {
			x.drivers = make(map[tracking.DriverID]*entry)
		}
		e = &entry{id: d.ID}
		x.drivers[d.ID] = e
	}
	e.open = d.OpenTasks
	e.seen, e.duty = d.Position.SeenAt.UnixMilli(), d.DutyAt.UnixMilli()
	x.place(e, treeOf(d), d.Position)
	x.watch(e, d.Available && !d.Silent)
}

// place puts e into a tree at a position, or into none.
func (x *Index) place(e *entry, tree int, p tracking.Position) {
	at := [2]float64{p.Fix.LngLat.Lng, p.Fix.LngLat.Lat}
	located := p.Located()
	switch {
	case e.located && located && e.tree == tree:
		if e.at != at {
			x.trees[tree].Replace(e.at, e.at, e, at, at, e)
		}
	default:
		if e.located {
			x.trees[e.tree].Delete(e.at, e.at, e)
		}
		if located {
			x.trees[tree].Insert(at, at, e)
		}
	}
	e.tree, e.at, e.located = tree, at, located
}

// treeOf says which tree a driver belongs to.
func treeOf(d tracking.Driver) int {
	switch {
	case !d.Available:
		return offDuty
	case d.Silent:
		return silent
	}
	return min(onOffer+max(d.OpenTasks, 0), manyTasks)
}

// Move tells the index where a driver is and when last heard of. A driver that it does not hold is ignored.
func (x *Index) Move(id tracking.DriverID, p tracking.Position) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.drivers[id]
	if e == nil {
		return
	}
	e.seen = p.SeenAt.UnixMilli()
	x.watch(e, e.watched)
	x.place(e, e.tree, p)
}

// Remove takes a driver out. One that is not there is ignored.
func (x *Index) Remove(id tracking.DriverID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.drivers[id]
	if e == nil {
		return
	}
	x.place(e, e.tree, tracking.Position{})
	x.watch(e, false)
	delete(x.drivers, id)
}
