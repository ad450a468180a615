package nearby

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/tidwall/rtree"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/cover"
)

// backlog is the tasks that wait for a driver, by what they require of one.
type backlog struct {
	byID   map[tracking.TaskID]*waiter
	plain  part             // those that require nothing
	others map[string]*part // by keyOf; none is empty
}

// part is the waiting tasks that require the same, by age and by place.
type part struct {
	requires map[string]string // never changed
	required []property        // the same in order
	byAge    []*waiter         // with those that are gone, until these are many
	head     int               // all before it are gone
	gone     int               // … in byAge
	byPlace  rtree.RTreeG[*waiter]
}

// waiter is what the index knows of a task that waits.
type waiter struct {
	id       tracking.TaskID
	created  int64 // UTC ms
	seq      int64
	at       [2]float64          // longitude, latitude
	excluded []tracking.DriverID // sorted; never changed
	part     *part               // by what it requires
	gone     bool                // it waits no longer
	queued   bool                // to be looked at by Matches
}

func (w *waiter) compare(o *waiter) int {
	return cmp.Or(cmp.Compare(w.created, o.created), cmp.Compare(w.seq, o.seq))
}

func (w *waiter) excludes(d tracking.DriverID) bool {
	_, found := slices.BinarySearch(w.excluded, d)
	return found
}

// PutTask brings the index up to date with a task as of now: it holds those that wait and whose
// point is known. ID, CreatedAt, Seq, Waiting, Excluded, Requires and what Point goes by are read.
func (x *Index) PutTask(t tracking.Task) {
	x.lock()
	defer x.mu.Unlock()
	old, p := x.waiting.byID[t.ID], t.Point()
	if !t.Waiting || p == nil {
		if old != nil {
			x.waiting.remove(old)
		}
		return
	}
	w := &waiter{
		id: t.ID, created: t.CreatedAt.UnixMilli(), seq: t.Seq, at: [2]float64{p.Lng, p.Lat},
		excluded: slices.Clone(t.Excluded),
	}
	slices.Sort(w.excluded)
	if old != nil {
		if old.at == w.at && old.compare(w) == 0 && slices.Equal(old.excluded, w.excluded) &&
			maps.Equal(old.part.requires, t.Requires) {
			return
		}
		x.waiting.remove(old)
	}
	x.waiting.add(w, t.Requires)
	x.matches.queueTask(w)
}

// of returns the part of the tasks that require these properties.
func (b *backlog) of(requires map[string]string) *part {
	if len(requires) == 0 {
		return &b.plain
	}
	required := propertiesOf(requires)
	key := keyOf(required)
	p := b.others[key]
	if p == nil {
		if b.others == nil {
			b.others = map[string]*part{}
		}
		p = &part{requires: maps.Clone(requires), required: required}
		b.others[key] = p
	}
	return p
}

func (b *backlog) add(w *waiter, requires map[string]string) {
	if b.byID == nil {
		b.byID = make(map[tracking.TaskID]*waiter)
	}
	b.byID[w.id], w.part = w, b.of(requires)
	w.part.add(w)
}

func (b *backlog) remove(w *waiter) {
	delete(b.byID, w.id)
	w.part.remove(w)
	if len(w.part.byAge) == 0 && w.part != &b.plain {
		delete(b.others, keyOf(w.part.required))
	}
}

// each calls f with all tasks.
func (b *backlog) each(f func(*waiter)) {
	b.plain.each(f)
	for _, p := range b.others {
		p.each(f)
	}
}

func (p *part) each(f func(*waiter)) {
	for _, w := range p.byAge[p.head:] {
		if !w.gone {
			f(w)
		}
	}
}

func (p *part) add(w *waiter) {
	p.byPlace.Insert(w.at, w.at, w)
	i := len(p.byAge)
	if i > 0 && p.byAge[i-1].compare(w) > 0 { // not the usual newest
		i = sort.Search(i, func(i int) bool { return p.byAge[i].compare(w) >= 0 })
		p.head = min(p.head, i)
	}
	p.byAge = slices.Insert(p.byAge, i, w)
}

func (p *part) remove(w *waiter) {
	p.byPlace.Delete(w.at, w.at, w)
	w.gone = true
	p.gone++
	for p.head < len(p.byAge) && p.byAge[p.head].gone {
		p.head++
	}
	if p.gone > len(p.byAge)/2 {
		p.byAge = slices.DeleteFunc(p.byAge, func(w *waiter) bool { return w.gone })
		p.head, p.gone = 0, 0
	}
}

// Tasks is the number of waiting tasks in the index.
func (x *Index) Tasks() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.waiting.byID)
}

// Waiting lists the tasks that tracking.Store.Waiting promises, but for the rows.
func (x *Index) Waiting(f tracking.WaitingFilter) []tracking.TaskID {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var list []tracking.TaskID
	for _, w := range x.waiting.oldest(f, meets(f), nil) {
		list = append(list, w.id)
	}
	return list
}

// oldest finds the tasks of a filter, oldest first; of its driver has says whether he has what they
// require. With keep only those count for which it returns true.
func (b *backlog) oldest(f tracking.WaitingFilter, has func([]property) bool, keep func(*waiter) bool) []*waiter {
	limit := min(f.Limit, len(b.byID))
	if limit <= 0 {
		return nil
	}
	found := b.plain.oldest(f, limit, keep)
	if len(b.others) == 0 {
		return found
	}
	for _, p := range b.others {
		if f.Driver == "" || has(p.required) {
			found = append(found, p.oldest(f, limit, keep)...)
		}
	}
	slices.SortFunc(found, (*waiter).compare)
	return found[:min(limit, len(found))]
}

// oldest finds the tasks of a filter, oldest first, at most limit; with keep only those for which
// it returns true.
//
// Where few are in reach a look round the place finds them all, and where many are a walk by age
// soon meets one. So it looks round for as long as there are few, then walks for as long as that
// may pay, each about the square root of what waits; only then it looks at all that are in reach.
func (p *part) oldest(f tracking.WaitingFilter, limit int, keep func(*waiter) bool) []*waiter {
	fits := func(w *waiter) bool {
		return !w.gone && (keep == nil || keep(w)) && (f.Driver == "" || !w.excludes(f.Driver))
	}
	byAge := p.byAge[p.head:]
	if f.Near == nil || f.Within <= 0 {
		found, _ := walk(byAge, limit, len(byAge), fits)
		return found
	}
	boxes, n := cover.Circle(*f.Near, f.Within)
	near := func(w *waiter) bool {
		// which costs less than a distance
		return slices.ContainsFunc(boxes[:n], func(x cover.Box) bool { return x.Holds(w.at) }) &&
			tracking.Distance(*f.Near, tracking.LngLat{Lng: w.at[0], Lat: w.at[1]}) <= f.Within && fits(w)
	}
	few := 64 + int(math.Sqrt(float64(len(byAge))))
	found, all := p.round(boxes[:n], few, near)
	if !all {
		if found, all = walk(byAge, limit, few, near); !all {
			found, _ = p.round(boxes[:n], len(byAge), near)
		}
	}
	slices.SortFunc(found, (*waiter).compare)
	return found[:min(limit, len(found))]
}

// walk finds the first tasks by age that fit, at most limit. It is done when it has them or has
// come to the end, and not when it gives up after so many steps.
func walk(byAge []*waiter, limit, steps int, fits func(*waiter) bool) (found []*waiter, done bool) {
	for i, w := range byAge {
		if i == steps {
			return nil, false
		}
		if fits(w) {
			if found = append(found, w); len(found) == limit {
				break
			}
		}
	}
	return found, true
}

// round finds the tasks in the boxes that fit, in no order. It is done unless it gives up after
// having looked at so many.
func (p *part) round(boxes []cover.Box, steps int, fits func(*waiter) bool) (found []*waiter, done bool) {
	done = true
	for _, x := range boxes {
		p.byPlace.Search(x.Min, x.Max, func(_, _ [2]float64, w *waiter) bool {
			if steps--; steps < 0 {
				done = false
				return false
			}
			if fits(w) {
				found = append(found, w)
			}
			return true
		})
	}
	return found, done
}
