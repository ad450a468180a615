package memory

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"sync"

	"github.com/seed-8aba7b13/tracking"
)

// outbox holds what is to be delivered: a queue for each subject that has something to deliver, in one of two heaps.
type outbox struct {
	mu    sync.Mutex
	ready queues // may be leased now, oldest first event first
	later queues // leased, or to be tried again later; the earliest first
}

func newOutbox() outbox {
	return outbox{
		ready: queues{less: func(a, b *queue) bool { return a.events[0].order < b.events[0].order }},
		later: queues{less: func(a, b *queue) bool {
			return cmp.Or(cmp.Compare(a.freeAt(), b.freeAt()), cmp.Compare(a.events[0].order, b.events[0].order)) < 0
		}},
	}
}

// queue is the undelivered events of a subject, in order of Seq. While it is not empty it is in exactly one of the outbox's heaps.
type queue struct {
	events []*eventRow
	owner  string // of the present lease, or of the last one
	until  int64  // UTC ms: the end of the lease; 0 when it has been given back
	ended  bool   // its owner has given it back, but FinishEvents is not through with it
	in     *queues
	slot   int
}

// freeAt is the moment (UTC ms) from which the queue may be leased.
func (q *queue) freeAt() int64 {
	return max(q.until, q.events[0].retryAt)
}

// queues is a heap of queues.
type queues struct {
	q    []*queue
	less func(a, b *queue) bool
}

func (h *queues) Len() int           { return len(h.q) }
func (h *queues) Less(i, j int) bool { return h.less(h.q[i], h.q[j]) }
func (h *queues) Swap(i, j int) {
	h.q[i], h.q[j] = h.q[j], h.q[i]
	h.q[i].slot, h.q[j].slot = i, j
}
func (h *queues) Push(q any) {
	q.(*queue).slot = len(h.q)
	h.q = append(h.q, q.(*queue))
}
func (h *queues) Pop() any {
	q := h.q[len(h.q)-1]
	h.q[len(h.q)-1] = nil
	h.q = h.q[:len(h.q)-1]
	return q
}

// take takes q out of its heap. It must be done before what the heap orders it by changes.
func (o *outbox) take(q *queue) {
	if q.in != nil {
		heap.Remove(q.in, q.slot)
		q.in = nil
	}
}

// put puts q into the heap that it belongs to at the moment now (UTC ms), or into none when it is empty.
func (o *outbox) put(q *queue, now int64) {
	if len(q.events) == 0 {
		return
	}
	q.in = &o.ready
	if q.freeAt() > now {
		q.in = &o.later
	}
	heap.Push(q.in, q)
}

// add appends an event to its subject's queue.
func (o *outbox) add(s *subject, r *eventRow) {
	if s.queue == nil {
		s.queue = new(queue)
	}
	q := s.queue
	if len(q.events) > 0 {
		q.events = append(q.events, r) // what it is ordered by stays as it is
		return
	}
	q.events = append(q.events, r)
	o.put(q, r.event.RecordedAt.UnixMilli())
}

// LeaseEvents implements [tracking.Store].
func (s *Store) LeaseEvents(ctx context.Context, l tracking.Lease) ([]tracking.Leased, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	now, until := l.Now.UnixMilli(), l.Until.UnixMilli()
	o := &s.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.later.Len() > 0 && o.later.q[0].freeAt() <= now {
		q := o.later.q[0]
		o.take(q)
		o.put(q, now)
	}
	var list []tracking.Leased
	var passed []*queue
	for len(list) < l.Limit && o.ready.Len() > 0 {
		q := o.ready.q[0]
		o.take(q)
		if slices.Contains(l.Except, q.events[0].app.id) {
			passed = append(passed, q)
			continue
		}
		if q.freeAt() > now { // the caller's clock is behind that of an earlier caller
			o.put(q, now)
			continue
		}
		for _, r := range q.events[:min(len(q.events), l.Limit-len(list))] {
			list = append(list, tracking.Leased{App: r.app.id, Event: r.event.Clone(), Attempt: r.attempts + 1})
		}
		q.owner, q.until = l.Owner, until
		q.in = &o.later
		heap.Push(q.in, q)
	}
	for _, q := range passed {
		o.put(q, now)
	}
	return list, nil
}

// FinishEvents implements [tracking.Store].
func (s *Store) FinishEvents(ctx context.Context, done []tracking.Delivery) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	byApp := make(map[tracking.AppID][]tracking.Delivery)
	for _, d := range done {
		byApp[d.App] = append(byApp[d.App], d)
	}
	for id, done := range byApp {
		for _, a := range s.applications(id) {
			s.finish(a, done)
		}
	}
	return nil
}

// finish says what became of events of one application.
func (s *Store) finish(a *application, done []tracking.Delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := &s.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	var touched []*subject
	for _, d := range done {
		r := a.events.byID[d.EventID]
		if r == nil {
			continue
		}
		sub := a.events.subjects[r.event.Subject]
		if sub.queue == nil {
			sub.queue = new(queue)
		}
		if !slices.Contains(touched, sub) {
			o.take(sub.queue)
			touched = append(touched, sub)
		}
		a.finishOne(sub.queue, r, d)
	}
	for _, sub := range touched {
		q := sub.queue
		if q.ended {
			q.ended, q.until = false, 0
		}
		if len(q.events) == 0 && q.until == 0 {
			sub.queue = nil
		}
		o.put(q, 0)
	}
}

// finishOne notes one delivery. The queue is in no heap meanwhile.
func (a *application) finishOne(q *queue, r *eventRow, d tracking.Delivery) {
	i := slices.Index(q.events, r)
	q.ended = q.ended || q.owner == d.Owner
	if d.State == tracking.Delivered {
		if i >= 0 {
			q.events = slices.Delete(q.events, i, i+1)
		}
		a.events.settle(r, delivered)
		return
	}
	if r.state == dead && d.State == tracking.Released {
		r.attempts, r.retryAt = 0, 0
		at, _ := slices.BinarySearchFunc(q.events, r, (*eventRow).compare)
		q.events = slices.Insert(q.events, at, r)
		a.events.settle(r, pending)
		return
	}
	if i < 0 || q.owner != d.Owner {
		return
	}
	switch d.State {
	case tracking.Retry:
		r.attempts++
		r.retryAt = d.RetryAt.UnixMilli()
	case tracking.Dead:
		q.events = slices.Delete(q.events, i, i+1)
		a.events.settle(r, dead)
	}
}
