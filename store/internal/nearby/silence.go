package nearby

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// Silence is a driver who has not been heard of.
type Silence struct {
	ID    tracking.DriverID
	Since time.Time // the later of the last sign of life and DutyAt
}

// Silent lists drivers, available and not yet silent, with a position or without, whose last sign
// of life and change of duty are both at or before before, the longest silent first, at most limit.
// They stay in the index, and are listed again until a Put or a Move changes them.
func (x *Index) Silent(before time.Time, limit int) []Silence {
	x.lock()
	defer x.mu.Unlock()
	var found []*Entry
	for len(found) < limit && len(x.silence) > 0 {
		e := x.silence[0]
		if now := e.lastHeard(); now != e.due {
			e.due = now
			heap.Fix(&x.silence, 0)
			continue
		}
		if e.due > before.UnixMilli() {
			break
		}
		heap.Pop(&x.silence)
		found = append(found, e)
	}
	var list []Silence
	for _, e := range found {
		heap.Push(&x.silence, e)
		list = append(list, Silence{e.id, time.UnixMilli(e.due).UTC()})
	}
	return list
}

// Ahead lists drivers, available and not yet silent, whose last sign of life or change of duty is
// after a moment that no clock which is right has reached, at most limit. It looks at drivers only
// when there may be one.
func (x *Index) Ahead(after time.Time, limit int) (list []Silence) {
	x.lock()
	defer x.mu.Unlock()
	ms := after.UnixMilli()
	if x.farthest <= ms {
		return nil
	}
	x.farthest = math.MinInt64
	for _, e := range x.silence {
		at := e.lastHeard()
		x.farthest = max(x.farthest, at)
		if at > ms {
			list = append(list, Silence{e.id, time.UnixMilli(at).UTC()})
		}
	}
	slices.SortFunc(list, func(a, b Silence) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return list[:min(len(list), max(limit, 0))]
}

// queueSilence keeps e in the silence queue, or out of it.
func (x *Index) queueSilence(e *Entry, on bool) {
	switch {
	case on && e.turn == 0:
		e.due = e.lastHeard()
		heap.Push(&x.silence, e)
	case !on && e.turn > 0:
		heap.Remove(&x.silence, int(e.turn-1))
	case on && e.lastHeard() < e.due:
		e.due = e.lastHeard()
		heap.Fix(&x.silence, int(e.turn-1))
	}
	if on {
		x.farthest = max(x.farthest, e.lastHeard())
	}
}

// silenceQueue is a heap of the drivers that may fall silent. A fix would have to move its driver
// in the heap; instead it leaves the driver where that is, too early, and the place is put right
// when it comes up: once in a while, not with each fix.
type silenceQueue []*Entry

func (q silenceQueue) Len() int { return len(q) }
func (q silenceQueue) Less(i, j int) bool {
	if q[i].due != q[j].due {
		return q[i].due < q[j].due
	}
	return q[i].id < q[j].id
}
func (q silenceQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].turn, q[j].turn = int32(i+1), int32(j+1)
}
func (q *silenceQueue) Push(e any) {
	*q = append(*q, e.(*Entry))
	e.(*Entry).turn = int32(len(*q))
}
func (q *silenceQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1], e.turn = nil, 0
	*q = old[:len(old)-1]
	return e
}
