package memory

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"sync"

	"github.com/seed-8aba7b13/tracking"
)

// outboxes are the store's, by name. They are few, and stay.
type outboxes struct {
	mu     sync.RWMutex
	byName map[string]*outbox
}

// find finds an outbox that something has gone to; nil when nothing has.
func (b *outboxes) find(name string) *outbox {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.byName[name]
}

// open finds outboxes, making those that are new.
func (b *outboxes) open(names []string) (list []*outbox) {
	for _, name := range names {
		o := b.find(name)
		if o == nil {
			o = b.make(name)
		}
		list = append(list, o)
	}
	return list
}

func (b *outboxes) make(name string) *outbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.byName[name]
	if o == nil {
		o = newOutbox(name)
		if b.byName == nil {
			b.byName = make(map[string]*outbox)
		}
		b.byName[name] = o
	}
	return o
}

// outbox holds what is to be delivered to one receiver: a queue for each subject that has something to deliver, in one of two heaps.
type outbox struct {
	name string

	mu    sync.Mutex
	ready queues // may be leased now, oldest first event first
	later queues // leased, or to be tried again later; the earliest first
}

func newOutbox(name string) *outbox {
	return &outbox{
		name:  name,
		ready: queues{less: func(a, b *queue) bool { return a.order() < b.order() }},
		later: queues{less: func(a, b *queue) bool {
			return cmp.Or(cmp.Compare(a.freeAt(), b.freeAt()), cmp.Compare(a.order(), b.order())) < 0
		}},
	}
}

// queue is what an outbox has undelivered of a subject, in order of Seq. While it is not empty it is in exactly one of the outbox's heaps.
// The lock of its outbox guards it; which queues a subject has, the application's.
type queue struct {
	outbox *outbox
	events []*delivery
	owner  string // of the present lease, or of the last one
	until  int64  // UTC ms: the end of the lease; 0 when it has been given back
	ended  bool   // its owner has given it back, but FinishEvents is not through with it
	in     *queues
	slot   int
}

// order is that of its first event.
func (q *queue) order() int64 { return q.events[0].row.order }

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

// queueOf is a subject's queue, which is made when it has none. The application is locked.
func (o *outbox) queueOf(s *subject) *queue {
	for _, q := range s.queues {
		if q.outbox == o {
			return q
		}
	}
	q := &queue{outbox: o}
	s.queues = append(s.queues, q)
	return q
}

// add appends events to the queues of their subjects, all in one step. The application is locked.
func (o *outbox) add(a *application, rows []*eventRow) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range rows {
		q := o.queueOf(a.events.subjects[r.event.Subject])
		q.events = append(q.events, r.in(o))
		if len(q.events) == 1 { // else what it is ordered by stays as it is
			o.put(q, r.event.RecordedAt.UnixMilli())
		}
	}
}

// LeaseEvents implements [tracking.Store].
func (s *Store) LeaseEvents(ctx context.Context, l tracking.Lease) ([]tracking.Leased, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	now, until := l.Now.UnixMilli(), l.Until.UnixMilli()
	o := s.boxes.find(l.Outbox)
	if o == nil {
		return nil, nil
	}
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
		if slices.Contains(l.Except, q.events[0].row.app.id) {
			passed = append(passed, q)
			continue
		}
		if q.freeAt() > now { // the caller's clock is behind that of an earlier caller
			o.put(q, now)
			continue
		}
		for _, d := range q.events[:min(len(q.events), l.Limit-len(list))] {
			list = append(list, tracking.Leased{Outbox: o.name, App: d.row.app.id, Event: d.row.event.Clone(), Attempt: d.attempts + 1})
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
	type part struct {
		app    tracking.AppID
		outbox string
	}
	parts := make(map[part][]tracking.Delivery)
	for _, d := range done {
		p := part{d.App, d.Outbox}
		parts[p] = append(parts[p], d)
	}
	for p, done := range parts {
		o := s.boxes.find(p.outbox)
		if o == nil {
			continue
		}
		for _, a := range s.applications(p.app) {
			o.finish(a, done)
		}
	}
	return nil
}

// finish says what became of events of one application.
func (o *outbox) finish(a *application, done []tracking.Delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	touched := make(map[*queue]*subject)
	for _, d := range done {
		r := a.events.byID[d.EventID]
		if r == nil {
			continue
		}
		sub := a.events.subjects[r.event.Subject]
		q := o.queueOf(sub)
		if touched[q] == nil {
			o.take(q)
			touched[q] = sub
		}
		a.finishOne(q, r.in(o), d)
	}
	for q, sub := range touched {
		if q.ended {
			q.ended, q.until = false, 0
		}
		if len(q.events) == 0 && q.until == 0 {
			sub.queues = slices.DeleteFunc(sub.queues, func(other *queue) bool { return other == q })
		}
		o.put(q, 0)
	}
}

// finishOne notes one delivery; own is nil for an event that never went to the outbox. The queue is in no heap meanwhile.
func (a *application) finishOne(q *queue, own *delivery, d tracking.Delivery) {
	q.ended = q.ended || q.owner == d.Owner
	if own == nil {
		return
	}
	i := slices.Index(q.events, own)
	if d.State == tracking.Delivered {
		if i >= 0 {
			q.events = slices.Delete(q.events, i, i+1)
		}
		a.events.settle(own, delivered)
		return
	}
	if own.state == dead && d.State == tracking.Released {
		own.attempts, own.retryAt = 0, 0
		at, _ := slices.BinarySearchFunc(q.events, own, (*delivery).compare)
		q.events = slices.Insert(q.events, at, own)
		a.events.settle(own, pending)
		return
	}
	if i < 0 || q.owner != d.Owner {
		return
	}
	switch d.State {
	case tracking.Retry:
		own.attempts++
		own.retryAt = d.RetryAt.UnixMilli()
	case tracking.Dead:
		q.events = slices.Delete(q.events, i, i+1)
		a.events.settle(own, dead)
	}
}

func (d *delivery) compare(other *delivery) int { return d.row.compare(other.row) }
