// Package nearby is the index that the stores share: which driver is nearest to a place, may be
// offered a task there, or has fallen silent, and which tasks wait for a driver who is there.
//
// An [Index] holds the drivers and the waiting tasks of one application. A store puts a driver into
// it whenever the row changes ([Index.Put]), tells it of fixes ([Index.Move]), and takes out who is
// deleted ([Index.Remove]); rows stay the truth, the index holds no more than it needs to answer:
//
//	var x nearby.Index
//	x.Put(driver)                                     // after a commit
//	x.Move(id, recorded.Driver.Position)              // after RecordFixes
//	hits, more := x.Page(at, nearby.Filter{}, 0, 20, nil) // page 1 of 20, and whether there is more
//	hits = x.Offers(offer, nil)                       // candidates for automatic assignment
//	late := x.Silent(before, 100)                     // for tracking.DueSilence
//	x.PutTask(task)                                   // after a commit
//	ids := x.Matches(query)                           // waiting tasks that somebody could take
//
// Results are exact: their order is ([tracking.Distance], id), of offers ([tracking.Distance], open
// tasks, id), to the last bit, on the whole sphere, ±180° and the poles included.
//
// # How it works
//
// Each driver with a position is in exactly one k-d tree, chosen by what the driver may be asked for:
// off duty, silent, or on offer with 0, 1, 2 … open tasks. A move touches one tree; a query looks
// only into the trees that can hold an answer, so that a single idle driver among a million busy
// ones is found as fast as a crowd would be. A changed limit of open tasks changes which trees are
// looked at, and nothing in them. Who has a limit of his own is in one of two further trees, by
// whether he has come to it: whatever the query's limit is, the one holds only whom it may find,
// and the other nobody.
//
// A task may require properties of its driver. The drivers on duty stand in a list for each
// property that they have, so that the few who have a rare one are found without a look at the
// others; and tasks that require the same stand together, so that those which a driver can't take
// cost him one comparison, however many wait.
//
// The trees hold not drivers but pages of a few dozen who are near each other. A fix mostly leaves
// its driver in his page, and then changes three numbers there: he stands in it as a point of a
// sphere, since the straight line between two such points orders places by distance, at the poles
// and over ±180° as anywhere. The trees divide the space about the sphere, so that what they know of
// how near a page is are straight lines, too.
//
// A query looks at the page that holds the place. If there are k drivers in it, the k nearest of all
// are no farther than these, and the few pages in which somebody nearer may be follow. The distance
// itself is computed only to the k found and to those who may be as near as the last.
//
// A move is first only noted, so that it waits for no search: whoever looks next, or changes something
// else, takes what is noted to the trees before.
//
// Nothing divides drivers in one spot, as at a depot. Where there are as many as would fill a page
// they are a page of their own, in order.
package nearby

import (
	"sync"
	"sync/atomic"

	"github.com/seed-8aba7b13/tracking"
)

// Trees, by what a driver in them may be asked for.
const (
	offDuty   = iota // not available
	silent           // available, but not heard of
	full             // available and heard of, with as many open tasks as his own limit allows
	limited          // with fewer than his own limit allows: the first tree of those on offer
	onOffer          // without a limit of his own and with no open task; the next trees are those with 1, 2, …
	manyTasks = onOffer + 8
	numTrees  = manyTasks + 1 // the last holds those with 8 open tasks or more
)

// Index is the index of one application's drivers and waiting tasks. The zero Index is empty and
// ready. All its methods may be called at once from many goroutines; each is atomic, and sees every
// change that returned before it began.
type Index struct {
	pending pending

	mu      sync.RWMutex // taken by lock and rlock, but for what no move changes
	drivers map[tracking.DriverID]*Entry
	trees   [numTrees]tree
	traits  map[property]*trait
	silence silenceQueue
	waiting backlog

	// No driver in the silence queue was heard of later (UTC ms).
	farthest int64

	matching sync.Mutex // taken before mu
	matches  matches

	scratch sync.Pool // of *search
}

// Entry is what the index knows of a driver. A store whose rows are in memory has it in its row, so
// that a [Hit] leads there without a look-up, and what both know is kept once. The zero Entry is in no
// index.
type Entry struct {
	id   tracking.DriverID
	at   [2]float64 // longitude, latitude
	page *page      // in which the driver is, in that tree; nil without a position
	seen int64      // last sign of life, UTC ms
	open int32      // open tasks
	slot uint8      // the place in the page; in a crowd nothing
	tree uint8      // the tree that the driver belongs to

	own    bool // the store's own
	queued bool // to be looked at by Matches

	moving uint32 // 1 while a move is pending, atomic
	turn   int32  // the place in the silence queue, from 1 on; 0: not in it
	due    int64  // what that queue goes by; never later than lastHeard
	duty   int64  // when the availability last changed, UTC ms
	rare   *rare  // nil for most
}

func (e *Entry) located() bool { return e.page != nil }

// Has reports whether the driver has a property by the last Put, of which none must be under way.
func (e *Entry) Has(key, value string) bool {
	if e.rare == nil {
		return false
	}
	for i := range e.rare.traits { // not all of it: a Move of another driver may change his place
		if p := &e.rare.traits[i].property; p.key == key {
			return p.value == value
		}
	}
	return false
}

// ID is the driver's, from the first Put on.
func (e *Entry) ID() tracking.DriverID { return e.id }

// rare is what most drivers do not have.
type rare struct {
	limited bool // by a number of open tasks of his own; negative: by none
	limit   int
	traits  []held
	listed  bool // among the holders of his traits
}

// room is how many more tasks the driver, who is on offer, may get where so many open ones are the
// limit of who has none of his own; negative: any number.
func (e *Entry) room(most int) int {
	if e.tree == limited {
		most = e.rare.limit
	}
	if most < 0 {
		return -1
	}
	return max(most-int(e.open), 0)
}

// lastHeard is the moment from which silence is counted, UTC ms.
func (e *Entry) lastHeard() int64 { return max(e.seen, e.duty) }

// Len is the number of drivers in the index, with and without a position, but for those whose entries
// are a store's.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.drivers)
}

// Put brings the index up to date with a driver as of now: ID, Available, Silent, DutyAt, Route,
// MaxOpenTasks, Properties and Position are read.
func (x *Index) Put(d tracking.Driver) {
	x.lock()
	defer x.mu.Unlock()
	e := x.drivers[d.ID]
	if e == nil {
		if x.drivers == nil {
			x.drivers = make(map[tracking.DriverID]*Entry)
		}
		e = new(Entry)
		x.drivers[d.ID] = e
	}
	x.put(e, d)
}

// PutEntry is Put for an entry of the store's own. A driver has always the same one.
func (x *Index) PutEntry(e *Entry, d tracking.Driver) {
	x.lock()
	defer x.mu.Unlock()
	e.own = true
	x.put(e, d)
}

func (x *Index) put(e *Entry, d tracking.Driver) {
	if e.id == "" {
		e.id = d.ID
	}
	was := *e
	open := d.OpenTasks()
	if e.located() && e.page.spot != nil && e.open != int32(open) { // whose order goes by it
		x.trees[e.tree].remove(e)
	}
	e.open = int32(open)
	e.seen, e.duty = d.Position.SeenAt.UnixMilli(), d.DutyAt.UnixMilli()
	other := x.setRare(e, d)
	x.place(e, treeOf(d, open), placeOf(d.Position))
	x.list(e)
	x.queueSilence(e, d.Available && !d.Silent)
	x.stir(&was, e, other)
}

// setRare notes what most drivers do not have, and reports whether the properties are others than
// before.
func (x *Index) setRare(e *Entry, d tracking.Driver) (other bool) {
	if e.rare == nil && d.MaxOpenTasks == nil && len(d.Properties) == 0 {
		return false
	}
	if e.rare == nil {
		e.rare = new(rare)
	}
	if e.rare.limited = d.MaxOpenTasks != nil; e.rare.limited {
		e.rare.limit = *d.MaxOpenTasks
	}
	return x.setTraits(e, d.Properties)
}

// place is what the index needs of a position.
type place struct {
	at      [2]float64
	located bool
}

func placeOf(p tracking.Position) place {
	return place{[2]float64{p.Fix.LngLat.Lng, p.Fix.LngLat.Lat}, p.Located()}
}

// place puts e into a tree at a place, or into none.
func (x *Index) place(e *Entry, tree uint8, p place) {
	switch {
	case p.located && e.located() && e.tree == tree:
		if e.at != p.at {
			x.trees[tree].move(e, p.at)
		}
		e.at = p.at // which may be -0 where it was 0
		return
	case e.located():
		x.trees[e.tree].remove(e)
		fallthrough
	default:
		if e.tree, e.at = tree, p.at; p.located {
			x.trees[tree].add(e)
		}
	}
}

// treeOf says which tree a driver belongs to.
func treeOf(d tracking.Driver, open int) uint8 {
	switch {
	case !d.Available:
		return offDuty
	case d.Silent:
		return silent
	case d.MaxOpenTasks != nil && *d.MaxOpenTasks >= 0 && open >= *d.MaxOpenTasks:
		return full
	case d.MaxOpenTasks != nil:
		return limited
	}
	return uint8(min(onOffer+open, manyTasks))
}

// Move tells the index where a driver is and when last heard of. A driver that it does not hold is
// ignored.
func (x *Index) Move(id tracking.DriverID, p tracking.Position) {
	x.later(move{id: id, place: placeOf(p), seen: p.SeenAt.UnixMilli()})
}

// MoveEntry is Move for an entry of the store's own, which is in the index.
func (x *Index) MoveEntry(e *Entry, p tracking.Position) {
	x.settle(e) // moving can tell of one move
	atomic.StoreUint32(&e.moving, 1)
	x.later(move{entry: e, place: placeOf(p), seen: p.SeenAt.UnixMilli()})
}

func (x *Index) move(e *Entry, m *move) {
	was := *e
	e.seen = m.seen
	x.queueSilence(e, e.turn > 0)
	x.place(e, e.tree, m.place)
	x.list(e)
	x.stir(&was, e, false)
}

// Remove takes a driver out. One that is not there is ignored.
func (x *Index) Remove(id tracking.DriverID) {
	x.lock()
	defer x.mu.Unlock()
	if e := x.drivers[id]; e != nil {
		x.remove(e)
		delete(x.drivers, id)
	}
}

// RemoveEntry is Remove for an entry of the store's own, which is in the index. From then on the index
// does not look at it: it may be another driver's next.
func (x *Index) RemoveEntry(e *Entry) {
	x.lock()
	defer x.mu.Unlock()
	x.remove(e)
}

func (x *Index) remove(e *Entry) {
	x.place(e, e.tree, place{})
	x.list(e)
	if e.rare != nil {
		x.setTraits(e, nil)
	}
	x.queueSilence(e, false)
	if e.queued {
		x.matches.drivers.drop(e)
	}
}
