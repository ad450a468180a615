package memory

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Purge implements [tracking.Store].
func (s *Store) Purge(ctx context.Context, b tracking.Before) (tracking.Purged, error) {
	var p tracking.Purged
	if err := s.ready(ctx); err != nil {
		return p, err
	}
	for _, a := range s.applications("", nil) {
		a.purgeErased(b.Limit, &p)
		if left := b.Limit - p.Total(); left > 0 && !b.Files.IsZero() {
			p.Files += a.purgeFiles(b.Files, left)
		}
		if left := b.Limit - p.Total(); left > 0 && !b.Fixes.IsZero() {
			p.Fixes += a.purgeFixes(rows.Ceil(b.Fixes), left)
		}
		if left := b.Limit - p.Total(); left > 0 && !b.Events.IsZero() {
			s.purgeRows(a, b.Events, left, &p)
		}
	}
	return p, nil
}

// purgeRows removes events, notices, requests and invites that are older than before, at most
// limit.
func (s *Store) purgeRows(a *application, before time.Time, limit int, p *tracking.Purged) {
	a.mu.Lock()
	defer a.mu.Unlock()
	end := p.Total() + limit
	purge(&a.events.settled, end-p.Total(), &p.Events,
		func(r *eventRow) bool { return r.recorded < rows.Ceil(before) }, a.events.remove)
	purge(&a.notices, end-p.Total(), &p.Notices, func(r *noticeRow) bool { return r.notice.Time.Before(before) },
		a.purgeNotice)
	purge(&a.invites.requests, end-p.Total(), &p.Requests,
		func(r *tracking.Request) bool { return r.CreatedAt.Before(before) }, a.dropRequest)
	purge(&a.invites.invites, end-p.Total(), &p.Invites,
		func(i *tracking.Invite) bool { return rows.Over(i).Before(before) }, func(i *tracking.Invite) {
			a.lastVersion = max(a.lastVersion, i.Version)
			s.dropInvite(a, a.drivers.row(i.DriverID))
		})
}

// purgeErased removes what deleted drivers have left, until p counts limit rows.
func (a *application) purgeErased(limit int, p *tracking.Purged) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.erased) > 0 && p.Total() < limit {
		r := a.erased[len(a.erased)-1]
		n := min(r.log.len(), limit-p.Total())
		r.log.drop(n)
		p.Fixes += n
		purge(&r.more().feed.notices, limit-p.Total(), &p.Notices, func(*noticeRow) bool { return true }, a.purgeNotice)
		if p.Total() == limit { // there may be more
			return
		}
		a.erased[len(a.erased)-1] = nil
		a.erased = a.erased[:len(a.erased)-1]
		a.drivers.rows.drop(r.no)
		a.aging.tidy(&a.drivers)
	}
}

// purge removes the first elements of l that are old, at most limit, and counts them.
func purge[T any](l *list[T], limit int, count *int, old func(T) bool, remove func(T)) {
	c := l.start(0)
	var gone []T
	for len(gone) < limit {
		r, ok := c.next()
		if !ok || !old(r) {
			break
		}
		gone = append(gone, r)
	}
	for _, r := range gone {
		remove(r)
	}
	*count += len(gone)
}

// agingQueue is a heap of drivers by the time of their oldest fix, so that a purge need not look at
// all drivers. Since an entry was made, the driver may have had an earlier fix, and another entry with
// it, or be gone; it counts only if it still has the time of the oldest fix.
type agingQueue struct {
	mu   sync.Mutex
	heap agingHeap
}

// agingEntry is in halves, as an int64 would be rounded up to 16 bytes with the number.
type agingEntry struct {
	row       driverNo
	low, high uint32
}

// at is UTC ms.
func (e agingEntry) at() int64 { return int64(e.high)<<32 | int64(e.low) }

// note sees to it that a driver whose fixes have changed is in the queue, if some of them may be
// purged one day; was is the time of the oldest before. Driver and application are locked.
func (q *agingQueue) note(r *driverRow, was int64) {
	oldest := r.log.oldest()
	if oldest >= was {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	heap.Push(&q.heap, agingEntry{r.no, uint32(oldest), uint32(oldest >> 32)})
}

// tidy drops what counts no more when that is most of it: where fixes are kept for ever nobody pops it.
// The application is locked exclusively.
func (q *agingQueue) tidy(x *drivers) {
	if len(q.heap) <= 2*x.all.len()+slabChunk {
		return
	}
	q.heap = slices.DeleteFunc(q.heap, func(e agingEntry) bool {
		r := x.rows.at(e.row)
		return r.kept == "" || r.log.oldest() != e.at()
	})
	heap.Init(&q.heap)
}

// pop takes out the driver with the oldest fix, if that is before t.
func (q *agingQueue) pop(t int64) (agingEntry, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.heap) == 0 || q.heap[0].at() >= t {
		return agingEntry{}, false
	}
	return heap.Pop(&q.heap).(agingEntry), true
}

// purgeFixes removes fixes before t (UTC ms), at most limit, and returns how many.
func (a *application) purgeFixes(t int64, limit int) (n int) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var again []*driverRow
	for n < limit {
		e, ok := a.aging.pop(t)
		if !ok {
			break
		}
		r := a.drivers.rows.at(e.row)
		if r.kept == "" {
			continue
		}
		mu := a.lock(r)
		mu.Lock()
		if r.log.oldest() == e.at() {
			n += r.log.purge(t, limit-n)
			a.purgePosition(r, t)
			again = append(again, r) // not at once: what must stay would come up again for ever
		}
		mu.Unlock()
	}
	for _, r := range again {
		mu := a.lock(r)
		mu.Lock()
		a.aging.note(r, never)
		mu.Unlock()
	}
	return n
}

// purgePosition takes a driver's position away once its fix is gone, of those before t (UTC ms).
// The driver is locked.
func (a *application) purgePosition(row *driverRow, t int64) {
	t = min(t, row.log.oldest())
	was := a.position(row)
	pos, empty, err := was.Purged(driverLog{a, row}, time.UnixMilli(t).UTC())
	if err != nil { // this log has none
		panic(err)
	}
	if empty {
		row.log.drop(row.log.len())
	}
	if pos != was {
		a.move(row, &pos)
	}
}

type agingHeap []agingEntry

func (h agingHeap) Len() int           { return len(h) }
func (h agingHeap) Less(i, j int) bool { return h[i].at() < h[j].at() }
func (h agingHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *agingHeap) Push(e any)        { *h = append(*h, e.(agingEntry)) }
func (h *agingHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = agingEntry{}
	*h = old[:len(old)-1]
	return e
}
