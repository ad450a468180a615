package nearby

import (
	"slices"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// matches knows which drivers and which waiting tasks may have found each other since
// [Index.Matches] last looked: whoever changed is queued. A pair of which neither has changed since
// a look that found nothing is no pair now.
type matches struct {
	asked   bool // the queues go by a query; else the next look goes through everything
	query   tracking.MatchQuery
	since   int64 // the latest SeenSince, UTC ms
	drivers queue[*Entry]
	tasks   queue[*waiter]
}

// queue is first in, first out.
type queue[T comparable] struct {
	items []T // zero ones are dropped
	head  int
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

func (q *queue[T]) push(v T) { q.items = append(q.items, v) }

func (q *queue[T]) pop() T {
	v := q.items[q.head]
	var zero T
	q.items[q.head] = zero
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head >= 64 && q.head > len(q.items)/2 {
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.head = 0
	}
	return v
}

// drop takes v out: zero comes in its turn.
func (q *queue[T]) drop(v T) {
	var zero T
	q.items[q.head+slices.Index(q.items[q.head:], v)] = zero
}

func (m *matches) queueTask(w *waiter) {
	if m.asked && !w.queued {
		w.queued = true
		m.tasks.push(w)
	}
}

func (m *matches) queueDriver(e *Entry) {
	if m.asked && !e.queued {
		e.queued = true
		m.drivers.push(e)
	}
}

// stir queues a driver who may now get what he could not get as he was; other says that he has
// other properties. While no task waits there is nothing to note: one that begins to wait looks at
// all drivers.
func (x *Index) stir(was, e *Entry, other bool) {
	if len(x.waiting.byID) == 0 || !e.located() || e.tree < limited {
		return
	}
	// with a limit of his own he has not come to it, however many tasks he has
	sameLimit := (was.tree == limited) == (e.tree == limited) && (e.tree == limited || was.open <= e.open)
	could := was.located() && was.tree >= limited && sameLimit && was.seen >= x.matches.since && !other
	if could && (was.at == e.at || x.matches.query.Within <= 0) { // with no limit it is all the same where he is
		return
	}
	x.matches.queueDriver(e)
}

// pieces is how many drivers or tasks Matches looks at before it lets others have the lock.
const pieces = 8

// Matches lists the tasks that tracking.Store.Matches promises, but for the rows. It looks at those
// drivers and tasks only that have changed since it last found nothing for them, and at no more of
// them than it needs.
func (x *Index) Matches(q tracking.MatchQuery) []tracking.TaskID {
	// the queues are emptied by one look at a time, lest it take for its own query what another is
	// owed
	x.matching.Lock()
	defer x.matching.Unlock()
	x.lock()
	defer x.mu.Unlock()
	f := finding{query: q, since: rows.Ceil(q.SeenSince), seen: map[*waiter]bool{}}
	x.follow(q, f.since)
	drivers, tasks := x.matches.drivers.len(), x.matches.tasks.len()
	for n := 1; n <= drivers+tasks && len(f.list) < q.Limit && f.fruitless < q.Limit; n++ {
		if n <= drivers {
			if e := x.matches.drivers.pop(); e != nil {
				x.matchDriver(&f, e)
			}
		} else {
			x.matchTask(&f, x.matches.tasks.pop())
		}
		if n%pieces == 0 {
			x.mu.Unlock()
			x.lock()
		}
	}
	return f.list
}

// finding is a look for matches.
type finding struct {
	query     tracking.MatchQuery
	since     int64
	list      []tracking.TaskID
	seen      map[*waiter]bool // those in the list
	fruitless int              // drivers and tasks that added nothing to it
}

func (f *finding) add(w *waiter) {
	f.seen[w] = true
	f.list = append(f.list, w.id)
}

// follow makes the queues fit a query. Where it may find more than the last one everything is
// looked at again, from the side that is fewer.
func (x *Index) follow(q tracking.MatchQuery, since int64) {
	m := &x.matches
	q.SeenSince, q.Limit = time.Time{}, 0
	if m.asked && m.query == q && since >= m.since {
		m.since = since
		return
	}
	for m.drivers.len() > 0 {
		if e := m.drivers.pop(); e != nil {
			e.queued = false
		}
	}
	for m.tasks.len() > 0 {
		m.tasks.pop().queued = false
	}
	m.asked, m.query, m.since = true, q, since
	onDuty := 0
	for i := limited; i < numTrees; i++ {
		onDuty += x.trees[i].len
	}
	if onDuty > len(x.waiting.byID) {
		x.waiting.each(m.queueTask)
		return
	}
	for i := limited; i < numTrees; i++ {
		x.trees[i].each(m.queueDriver)
	}
}

// matchDriver looks for tasks that a driver could get, as many as he could take. He stays in the
// queue while there are any.
func (x *Index) matchDriver(f *finding, e *Entry) {
	e.queued = false
	if !e.located() || e.tree < limited || e.seen < f.since {
		return // what changes that queues him again
	}
	room := e.room(f.query.MaxOpen)
	if room == 0 {
		return // as above
	}
	at := tracking.LngLat{Lng: e.at[0], Lat: e.at[1]}
	o := tracking.WaitingFilter{Near: &at, Within: f.query.Within, Driver: e.id, Limit: f.query.Limit - len(f.list)}
	if room > 0 {
		o.Limit = min(o.Limit, room)
	}
	// one of those in the list may be another driver's
	found := x.waiting.oldest(o, e.has, func(w *waiter) bool { return !f.seen[w] })
	for _, w := range found {
		f.add(w)
	}
	if len(found) == 0 {
		if len(x.waiting.oldest(o, e.has, nil)) == 0 {
			return
		}
		f.fruitless++
	}
	x.matches.queueDriver(e)
}

// matchTask looks for a driver who could take a task, which stays in the queue while there is one.
func (x *Index) matchTask(f *finding, w *waiter) {
	w.queued = false
	if w.gone {
		return
	}
	o := tracking.Offer{
		At: tracking.LngLat{Lng: w.at[0], Lat: w.at[1]}, MaxOpen: f.query.MaxOpen, SeenSince: f.query.SeenSince,
		Within: f.query.Within, Exclude: w.excluded, Requires: w.part.requires, Limit: 1,
	}
	q, ok := x.offers(o)
	if !ok || len(x.answer(q)) == 0 {
		return
	}
	if f.seen[w] {
		f.fruitless++
	} else {
		f.add(w)
	}
	x.matches.queueTask(w)
}
