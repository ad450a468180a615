package nearby

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// pending is the moves that the trees do not show yet. Who moves must not wait for a search to end, nor
// keep one from beginning, as to park and wake a goroutine takes longer than either. So a move is noted
// here, under a lock that is never held for long, and whoever looks next takes it to the trees.
type pending struct {
	mu    sync.Mutex
	len   atomic.Int32 // of moves; 0 only once the index is locked for taking them to the trees
	moves []move
	spare []move // empty; guarded by the index's lock
}

// mostPending is with how many moves who adds one takes them to the trees himself.
const mostPending = 64

// move is where a driver is from now on, and when last heard of.
type move struct {
	entry *Entry // nil: the one of id
	id    tracking.DriverID
	place place
	seen  int64 // UTC ms
}

// later notes a move.
func (x *Index) later(m move) {
	p := &x.pending
	p.mu.Lock()
	p.moves = append(p.moves, m)
	n := len(p.moves)
	p.len.Store(int32(n))
	p.mu.Unlock()
	if n >= mostPending {
		x.catchUp()
	}
}

// lock locks the index, with every move that has returned in the trees.
func (x *Index) lock() {
	x.mu.Lock()
	p := &x.pending
	if p.len.Load() == 0 {
		return
	}
	p.mu.Lock()
	moves := p.moves
	p.moves = p.spare
	p.len.Store(0)
	p.mu.Unlock()
	for i := range moves {
		m := &moves[i]
		if m.entry != nil {
			x.move(m.entry, m)
			atomic.StoreUint32(&m.entry.moving, 0)
		} else if e := x.drivers[m.id]; e != nil {
			x.move(e, m)
		}
	}
	clear(moves)
	p.spare = moves[:0]
}

// catchUp takes every move that has returned to the trees.
func (x *Index) catchUp() {
	x.lock()
	x.mu.Unlock()
}

// rlock is lock for reading.
func (x *Index) rlock() {
	if x.pending.len.Load() > 0 {
		x.catchUp()
	}
	x.mu.RLock()
}

// settle sees to it that an entry shows its last move.
func (x *Index) settle(e *Entry) {
	if atomic.LoadUint32(&e.moving) != 0 {
		x.catchUp()
	}
}

// Last is the place and the last sign of life by the last Put or Move of an entry, of which none must be
// under way.
func (x *Index) Last(e *Entry) (at tracking.LngLat, seen time.Time) {
	x.settle(e)
	return tracking.LngLat{Lng: e.at[0], Lat: e.at[1]}, time.UnixMilli(e.seen).UTC()
}
