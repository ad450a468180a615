package memory

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
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

// open appends outboxes to a list, making those that are new.
func (b *outboxes) open(list []*outbox, names ...string) []*outbox {
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

// outbox holds what is to be delivered to one receiver: a box for each application, in two heaps.
//
// A commit locks the box of its own application, and the outbox only when what the heaps go by has
// changed. The outbox is locked before a box.
type outbox struct {
	name string

	mu    sync.Mutex
	boxes map[*application]*box
	ready heaped[*box] // something may be leased now, the oldest first event first
	later heaped[*box] // something is leased, or to be tried again later; the earliest first

	// No lease lasts longer, and no retry is later: what a lease sees when a clock was put back.
	farLease, farRetry atomic.Int64
}

func newOutbox(name string) *outbox {
	return &outbox{
		name:  name,
		boxes: make(map[*application]*box),
		ready: heaped[*box]{
			less: func(a, b *box) bool { return a.oldest < b.oldest },
			slot: func(b *box) *int { return &b.readySlot },
		},
		later: heaped[*box]{
			less: func(a, b *box) bool { return a.earliest < b.earliest },
			slot: func(b *box) *int { return &b.laterSlot },
		},
	}
}

// box is what an outbox has undelivered of one application: a queue for each subject that has
// something to deliver, in one of two heaps.
type box struct {
	outbox *outbox
	app    *application

	mu    sync.Mutex
	ready heaped[*queue] // may be leased now, oldest first event first
	later heaped[*queue] // leased, or to be tried again later; the earliest first

	// What the outbox's heaps go by; none when there is nothing. Changed under both locks, so that
	// either is enough to read it.
	oldest, earliest     int64
	readySlot, laterSlot int
}

// none is the key of a box that is in no heap.
const none = math.MinInt64

// box is an application's, which is made when it has none. The application is locked.
func (o *outbox) box(a *application) *box {
	for _, b := range a.boxes {
		if b.outbox == o {
			return b
		}
	}
	slot := func(q *queue) *int { return &q.slot }
	b := &box{
		outbox: o, app: a, oldest: none, earliest: none,
		ready: heaped[*queue]{less: func(a, b *queue) bool { return a.order() < b.order() }, slot: slot},
		later: heaped[*queue]{less: func(a, b *queue) bool {
			return cmp.Or(cmp.Compare(a.freeAt(), b.freeAt()), cmp.Compare(a.order(), b.order())) < 0
		}, slot: slot},
	}
	a.boxes = append(a.boxes, b)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.boxes[a] = b
	return b
}

// keys are what the outbox's heaps should go by.
func (b *box) keys() (oldest, earliest int64) {
	oldest, earliest = none, none
	if b.ready.Len() > 0 {
		oldest = b.ready.all[0].order()
	}
	if b.later.Len() > 0 {
		earliest = b.later.all[0].freeAt()
	}
	return oldest, earliest
}

// changed tells the outbox of what has become of b, whose lock the caller has held meanwhile, and
// holds no more.
func (b *box) changed() {
	o := b.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	o.place(b)
}

// place puts b where it belongs in the outbox's heaps. Both are locked.
func (o *outbox) place(b *box) {
	oldest, earliest := b.keys()
	if oldest != b.oldest {
		o.ready.drop(b, b.oldest != none)
		if b.oldest = oldest; oldest != none {
			heap.Push(&o.ready, b)
		}
	}
	if earliest != b.earliest {
		o.later.drop(b, b.earliest != none)
		if b.earliest = earliest; earliest != none {
			heap.Push(&o.later, b)
		}
	}
}

// queue is what an outbox has undelivered of a subject, in order of Seq. While it is not empty it
// is in exactly one of its box's heaps. The lock of its box guards it; which queues a subject has,
// the application's.
type queue struct {
	box    *box
	events []*delivery
	owner  string // of the present lease, or of the last one
	until  int64  // UTC ms: the end of the lease; 0 when it has been given back
	ended  bool   // its owner has given it back, but FinishEvents is not through with it
	in     *heaped[*queue]
	slot   int
	only   [1]*delivery // where events are while there is no second one
}

// order is that of its first event.
func (q *queue) order() int64 { return q.events[0].row.order }

// freeAt is the moment (UTC ms) from which the queue may be leased.
func (q *queue) freeAt() int64 {
	return max(q.until, q.events[0].retryAt)
}

// heaped is a heap whose elements know their place in it.
type heaped[T any] struct {
	all  []T
	less func(a, b T) bool
	slot func(T) *int
}

func (h *heaped[T]) Len() int           { return len(h.all) }
func (h *heaped[T]) Less(i, j int) bool { return h.less(h.all[i], h.all[j]) }
func (h *heaped[T]) Swap(i, j int) {
	h.all[i], h.all[j] = h.all[j], h.all[i]
	*h.slot(h.all[i]), *h.slot(h.all[j]) = i, j
}
func (h *heaped[T]) Push(v any) {
	*h.slot(v.(T)) = len(h.all)
	h.all = append(h.all, v.(T))
}
func (h *heaped[T]) Pop() any {
	v := h.all[len(h.all)-1]
	clear(h.all[len(h.all)-1:])
	h.all = h.all[:len(h.all)-1]
	return v
}

// drop takes v out, if it is there. It must be done before what the heap orders it by changes.
func (h *heaped[T]) drop(v T, there bool) {
	if there {
		heap.Remove(h, *h.slot(v))
	}
}

// take takes q out of its heap. It must be done before what the heap orders it by changes.
func (b *box) take(q *queue) {
	if q.in != nil {
		q.in.drop(q, true)
		q.in = nil
	}
}

// put puts q into the heap that it belongs to at the moment now (UTC ms), or into none when it is
// empty.
func (b *box) put(q *queue, now int64) {
	if len(q.events) == 0 {
		return
	}
	q.in = &b.ready
	if q.freeAt() > now {
		q.in = &b.later
		raise(&b.outbox.farLease, q.until)
		raise(&b.outbox.farRetry, q.events[0].retryAt)
	}
	heap.Push(q.in, q)
}

// raise makes v at least n.
func raise(v *atomic.Int64, n int64) {
	for was := v.Load(); was < n && !v.CompareAndSwap(was, n); was = v.Load() {
	}
}

// queueOf is a subject's queue, which is made when it has none. The application is locked.
func (b *box) queueOf(s *subject) *queue {
	for _, q := range s.queues {
		if q.box == b {
			return q
		}
	}
	q := &queue{box: b}
	q.events = q.only[:0]
	if s.queues == nil {
		s.queues = s.only[:0]
	}
	if s.queues = append(s.queues, q); len(s.queues) > 1 {
		s.only[0] = nil // let go of it: they are elsewhere
	}
	return q
}

// insert makes d the i-th event. The queue is in no heap, or it is not the first.
func (q *queue) insert(i int, d *delivery) {
	if q.events = slices.Insert(q.events, i, d); len(q.events) > 1 {
		q.only[0] = nil // as above
	}
}

// add appends events to the queues of their subjects, all in one step. The application is locked.
func (o *outbox) add(a *application, events []*eventRow) {
	b := o.box(a)
	b.mu.Lock()
	for _, r := range events {
		q := b.queueOf(r.subject)
		q.insert(len(q.events), r.in(o))
		if len(q.events) == 1 { // else what it is ordered by stays as it is
			b.put(q, r.recorded)
		}
	}
	b.unlock()
}

// unlock ends a change of b, and tells the outbox if that has to know.
func (b *box) unlock() {
	oldest, earliest := b.keys()
	changed := oldest != b.oldest || earliest != b.earliest
	b.mu.Unlock()
	if changed {
		b.changed()
	}
}

// LeaseEvents implements [tracking.Store].
func (s *Store) LeaseEvents(ctx context.Context, l tracking.Lease) ([]tracking.Leased, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	o := s.boxes.find(l.Outbox)
	if o == nil {
		return nil, nil
	}
	var list []tracking.Leased
	for _, d := range o.lease(l) {
		list = append(list, tracking.Leased{
			Outbox: o.name, App: d.row.app.id, Event: d.row.event(), Attempt: d.tries + 1,
		})
	}
	return list, nil
}

// leased is a delivery that was handed out, with the tries so far.
type leased struct {
	*delivery
	tries int
}

// lease hands out deliveries.
func (o *outbox) lease(l tracking.Lease) (list []leased) {
	now, until := l.Now.UnixMilli(), l.Now.Add(l.For).UnixMilli()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.letGo(l, now)
	for o.later.Len() > 0 && o.later.all[0].earliest <= now {
		o.later.all[0].wakeUp(now)
	}
	var full []*box
	taken := make(map[*box]int)
	for len(list) < l.Limit && o.ready.Len() > 0 {
		b := o.ready.all[0]
		if l.Each > 0 && l.Busy[b.app.id]+taken[b] >= l.Each {
			full = append(full, b)
			heap.Pop(&o.ready)
			continue
		}
		if events := b.leaseOne(l.Owner, until, l.Limit-len(list)); events != nil {
			list = append(list, events...)
			taken[b]++
		}
	}
	for _, b := range full {
		heap.Push(&o.ready, b)
	}
	return list
}

// letGo ends leases and retries that a wrong clock has put further ahead than they can be. It looks
// at what there is only when there is one.
func (o *outbox) letGo(l tracking.Lease, now int64) {
	maxLease, maxRetry := rows.Bounds(l)
	if o.farLease.Load() <= maxLease && o.farRetry.Load() <= maxRetry {
		return
	}
	o.farLease.Store(0)
	o.farRetry.Store(0)
	for _, b := range o.boxes {
		b.mu.Lock()
		for _, q := range slices.Clone(b.later.all) {
			b.take(q)
			if q.until > maxLease {
				q.owner, q.until = "", 0
			}
			if q.events[0].retryAt > maxRetry {
				q.events[0].retryAt = 0
			}
			b.put(q, now)
		}
		o.place(b)
		b.mu.Unlock()
	}
}

// wakeUp makes ready what has come due. The outbox is locked.
func (b *box) wakeUp(now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.later.Len() > 0 && b.later.all[0].freeAt() <= now {
		q := b.later.all[0]
		b.take(q)
		b.put(q, now)
	}
	b.outbox.place(b)
}

// leaseOne leases the oldest queue, if one is ready still, and returns what it hands out, at most
// limit. The outbox is locked.
func (b *box) leaseOne(owner string, until int64, limit int) (list []leased) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.outbox.place(b)
	if b.ready.Len() == 0 {
		return nil
	}
	q := b.ready.all[0]
	b.take(q)
	for _, d := range q.events[:min(len(q.events), limit)] {
		list = append(list, leased{d, d.attempts})
	}
	q.owner, q.until = owner, until
	b.put(q, until-1) // it is leased, whatever the caller's clock says
	return list
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
		for _, a := range s.applications(p.app, nil) {
			o.finish(a, done)
		}
	}
	return nil
}

// finish says what became of events of one application.
func (o *outbox) finish(a *application, done []tracking.Delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := o.box(a)
	b.mu.Lock()
	defer b.unlock()
	touched := make(map[*queue]*subject)
	for _, d := range done {
		r := a.events.row(d.EventID)
		if r == nil {
			continue
		}
		sub := r.subject
		q := b.queueOf(sub)
		if touched[q] == nil {
			b.take(q)
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
		b.put(q, 0)
	}
}

// finishOne notes one delivery; own is nil for an event that never went to the outbox. The queue is
// in no heap meanwhile.
func (a *application) finishOne(q *queue, own *delivery, d tracking.Delivery) {
	q.ended = q.ended || q.owner == d.Owner
	if own == nil {
		return
	}
	i := slices.Index(q.events, own)
	if d.State == tracking.DeliveryDone {
		if i >= 0 {
			q.events = slices.Delete(q.events, i, i+1)
		}
		a.events.settle(own, delivered)
		return
	}
	if own.state == dead && d.State == tracking.DeliveryReleased {
		own.attempts, own.retryAt = 0, 0
		at, _ := slices.BinarySearchFunc(q.events, own, (*delivery).compare)
		q.insert(at, own)
		a.events.settle(own, pending)
		return
	}
	if i < 0 || q.owner != d.Owner {
		return
	}
	switch d.State {
	case tracking.DeliveryRetry:
		own.attempts++
		own.retryAt = d.Now.Add(d.RetryIn).UnixMilli()
	case tracking.DeliveryDead:
		q.events = slices.Delete(q.events, i, i+1)
		a.events.settle(own, dead)
	}
}

func (d *delivery) compare(other *delivery) int { return d.row.compare(other.row) }

// count is what the box has undelivered and dead. The application is locked.
func (b *box) count() []rows.Stat {
	b.mu.Lock()
	defer b.mu.Unlock()
	waits, gone := rows.Stat{What: "undelivered", Name: b.outbox.name}, rows.Stat{What: "dead", Name: b.outbox.name}
	var first *eventRow
	for _, q := range slices.Concat(b.ready.all, b.later.all) {
		waits.N += len(q.events)
		if first == nil || q.order() < first.order {
			first = q.events[0].row
		}
	}
	if l := b.app.events.dead[b.outbox]; l != nil {
		gone.N = l.len()
	}
	var list []rows.Stat
	if first != nil {
		waits.At = time.UnixMilli(first.recorded).UTC()
		list = append(list, waits)
	}
	if gone.N > 0 {
		list = append(list, gone)
	}
	return list
}
