package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
)

// driverRow is a driver with requests, invite, notices and fixes.
type driverRow struct {
	nearby.Entry // first, see rowOf; with the id, and for the index the place and the last sign of life
	place
	person string
	kept   packedDriver // the rest but for the position: what only commits change
	apart  *apart       // nil for none

	// mu guards what fixes change: what the index says last of the entry, moved, log and agedAt.
	// The application's lock guards the rest; held exclusively, it guards everything.
	mu     sync.Mutex
	moved  packedPosition
	log    fixLog
	agedAt int64 // with which it is in the aging queue; never: it is not there
}

// apart is what many drivers have not.
type apart struct {
	requests map[tracking.TrackingID]*tracking.Request
	invite   *tracking.Invite
	feed     feed
}

// rowOf is the row that an entry is the first field of.
func rowOf(e *nearby.Entry) *driverRow { return (*driverRow)(unsafe.Pointer(e)) }

const _ = -unsafe.Offsetof(driverRow{}.Entry) // of an unsigned constant only 0 can be negated

// others returns what many drivers have not, for reading only.
func (r *driverRow) others() *apart {
	if r.apart == nil {
		return &apart{}
	}
	return r.apart
}

// more returns it for writing.
func (r *driverRow) more() *apart {
	if r.apart == nil {
		r.apart = new(apart)
	}
	return r.apart
}

// version is 0 of a row that is not there.
func (r *driverRow) version() int64 {
	if r == nil {
		return 0
	}
	return r.kept.head().version
}

func (r *driverRow) compare(o *driverRow) int { return r.place.compare(o.place) }

// put makes d the row's driver, but for the position.
func (r *driverRow) put(d *tracking.Driver) {
	if r.person != d.Person {
		r.person = strings.Clone(d.Person)
	}
	r.kept = packDriver(d)
}

// position is where a driver is. The row is locked.
func (a *application) position(r *driverRow) tracking.Position {
	return r.moved.position(a.nearby.Last(&r.Entry))
}

// move takes a driver to a position. The row is locked.
func (a *application) move(r *driverRow, p *tracking.Position) {
	a.nearby.MoveEntry(&r.Entry, *p)
	r.moved.put(p)
}

// read sets d to a driver as of now.
func (a *application) read(r *driverRow, d *tracking.Driver) {
	r.mu.Lock()
	d.Position = a.position(r)
	r.mu.Unlock()
	r.readKept(d)
}

// readKept sets all of d but the position.
func (r *driverRow) readKept(d *tracking.Driver) {
	d.ID, d.Person = r.ID(), r.person
	d.CreatedAt, d.Seq = time.UnixMilli(r.created).UTC(), r.seq
	r.kept.driver(d)
}

// driver returns a driver as of now.
func (a *application) driver(r *driverRow) (d tracking.Driver) {
	a.read(r, &d)
	return d
}

// drivers holds an application's drivers, and the lists that serve its filters.
type drivers struct {
	byID       map[tracking.DriverID]*driverRow
	all        list[*driverRow]
	available  map[bool]*list[*driverRow]
	byProperty map[string]map[string]*list[*driverRow]
}

func newDrivers() drivers {
	return drivers{
		byID:       make(map[tracking.DriverID]*driverRow),
		available:  make(map[bool]*list[*driverRow]),
		byProperty: make(map[string]map[string]*list[*driverRow]),
	}
}

// insert adds a new driver, whose CreatedAt and Seq are set.
func (x *drivers) insert(a *application, d *tracking.Driver) *driverRow {
	r := &driverRow{place: place{d.CreatedAt.UnixMilli(), d.Seq}, agedAt: never}
	r.put(d)
	d.ID = tracking.DriverID(strings.Clone(string(d.ID)))
	a.nearby.PutEntry(&r.Entry, *d)
	r.moved.put(&d.Position)
	x.byID[d.ID] = r
	x.all.insert(r, (*driverRow).compare)
	x.enter(r, d, nil)
	return r
}

// replace puts d, with its position, in the place of r's driver, who was another way.
func (x *drivers) replace(a *application, r *driverRow, d, was *tracking.Driver) {
	x.leave(r, was, d)
	r.put(d)
	a.nearby.PutEntry(&r.Entry, *d)
	x.enter(r, d, was)
}

// remove takes a driver out.
func (x *drivers) remove(a *application, r *driverRow, d *tracking.Driver) {
	x.leave(r, d, nil)
	x.all.remove(r, (*driverRow).compare)
	delete(x.byID, d.ID)
	a.nearby.RemoveEntry(&r.Entry)
}

// enter puts r, whose driver is d, into the lists where it has not been as was (nil: in none).
func (x *drivers) enter(r *driverRow, d, was *tracking.Driver) {
	if was == nil || was.Available != d.Available {
		insertInto(x.available, d.Available, r, (*driverRow).compare)
	}
	for k, v := range d.Properties {
		if was != nil && has(was, k, v) {
			continue
		}
		values := x.byProperty[k]
		if values == nil {
			values = make(map[string]*list[*driverRow])
			x.byProperty[strings.Clone(k)] = values
		}
		if values[v] == nil {
			v = strings.Clone(v)
		}
		insertInto(values, v, r, (*driverRow).compare)
	}
}

// leave takes r, whose driver is d, out of the lists where it will not be as next (nil: in none).
func (x *drivers) leave(r *driverRow, d, next *tracking.Driver) {
	if next == nil || next.Available != d.Available {
		removeFrom(x.available, d.Available, r, (*driverRow).compare)
	}
	for k, v := range d.Properties {
		if next != nil && has(next, k, v) {
			continue
		}
		values := x.byProperty[k]
		removeFrom(values, v, r, (*driverRow).compare)
		if len(values) == 0 {
			delete(x.byProperty, k)
		}
	}
}

func has(d *tracking.Driver, key, value string) bool {
	v, ok := d.Properties[key]
	return ok && v == value
}

// Driver implements [tracking.DriverReader].
func (s *Store) Driver(ctx context.Context, app tracking.AppID, id tracking.DriverID) (tracking.Driver, error) {
	a, err := s.read(ctx, app)
	if err != nil {
		return tracking.Driver{}, err
	}
	if a == nil {
		return tracking.Driver{}, tracking.ErrNotFound
	}
	defer a.mu.RUnlock()
	if r := a.drivers.byID[id]; r != nil {
		return a.driver(r), nil
	}
	return tracking.Driver{}, tracking.ErrNotFound
}

// DriverByToken implements [tracking.DriverReader].
func (s *Store) DriverByToken(
	ctx context.Context, kind tracking.TokenKind, hash tracking.Hash,
) (tracking.AppID, tracking.Driver, error) {
	tokens := &s.secrets.appTokens
	switch kind {
	case tracking.TokenApp:
	case tracking.TokenIngest:
		tokens = &s.secrets.ingestTokens
	default:
		return "", tracking.Driver{}, cmp.Or[error](s.ready(ctx), tracking.ErrNotFound)
	}
	var found tracking.Driver
	a, _, err := findSecret(ctx, s, tokens, hash, func(a *application, id tracking.DriverID) *driverRow {
		r := a.drivers.byID[id]
		if r == nil {
			return nil
		}
		found = a.driver(r)
		token := found.AppToken
		if kind == tracking.TokenIngest {
			token = found.IngestToken
		}
		if token != hash {
			return nil
		}
		return r
	})
	if err != nil {
		return "", tracking.Driver{}, err
	}
	a.mu.RUnlock()
	return a.id, found, nil
}

// Drivers implements [tracking.DriverReader].
func (s *Store) Drivers(
	ctx context.Context, app tracking.AppID, f tracking.DriverFilter,
) ([]tracking.Driver, bool, error) {
	if f.Near != nil {
		skip, limit := f.Offset(), f.Limit
		list, err := s.nearest(ctx, app, func(a *application) []nearby.Hit { return a.near(f, skip, limit+1) })
		if more := len(list) > limit; more {
			return list[:limit:limit], true, err
		}
		return list, false, err
	}
	a, err := s.read(ctx, app)
	if a == nil || err != nil {
		return nil, false, err
	}
	defer a.mu.RUnlock()
	source, rest := a.drivers.rarest(f)
	if source == nil || f.Offset() >= source.len() {
		return nil, false, nil
	}
	c, skip := source.start(0), f.Offset()
	if rest == nil {
		c, skip = source.start(skip), 0
	}
	rows, more := take(c.next, skip, f.Limit, rest)
	return copies(rows, a.driver), more, nil
}

// rarest returns the shortest list that holds all drivers of a filter, nil when there are none, and
// a test for the rest of the filter, nil when the list is the answer.
func (x *drivers) rarest(f tracking.DriverFilter) (source *list[*driverRow], rest func(*driverRow) bool) {
	source = &x.all
	filters := len(f.Properties)
	if f.Available != nil {
		filters++
		if source = x.available[*f.Available]; source == nil {
			return nil, nil
		}
	}
	for k, v := range f.Properties {
		l := x.byProperty[k][v]
		if l == nil {
			return nil, nil
		}
		if l.len() < source.len() || source == &x.all {
			source = l
		}
	}
	if filters < 2 {
		return source, nil
	}
	return source, func(r *driverRow) bool { return matches(r, f) }
}

// matches reports whether a driver has the duty and the properties that f asks for.
func matches(r *driverRow, f tracking.DriverFilter) bool {
	if f.Available != nil && r.kept.head().available != *f.Available {
		return false
	}
	for k, v := range f.Properties {
		if !r.Has(k, v) {
			return false
		}
	}
	return true
}

// near finds the nearest drivers that pass f.
func (a *application) near(f tracking.DriverFilter, skip, limit int) []nearby.Hit {
	if len(f.Properties) == 0 {
		return a.nearby.Near(*f.Near, nearby.Filter{Available: f.Available}, skip, limit, nil)
	}
	source, _ := a.drivers.rarest(f)
	if source == nil || skip >= source.len() {
		return nil
	}
	// Where they are spread evenly, a walk meets all/some drivers for each one it keeps.
	some, all := source.len(), len(a.drivers.byID)
	if skip < some && all/some*(skip+limit) < some {
		return a.nearby.Near(*f.Near, nearby.Filter{Available: f.Available}, skip, limit,
			func(id tracking.DriverID) bool {
				return matches(a.drivers.byID[id], f)
			})
	}
	var hits []nearby.Hit
	c := source.start(0)
	for r, ok := c.next(); ok; r, ok = c.next() {
		if !matches(r, f) {
			continue
		}
		r.mu.Lock()
		located := r.moved.located()
		at, _ := a.nearby.Last(&r.Entry)
		r.mu.Unlock()
		if located {
			hits = append(hits, nearby.Hit{Entry: &r.Entry, ID: r.ID(), Distance: tracking.Distance(*f.Near, at), At: at})
		}
	}
	slices.SortFunc(hits, func(a, b nearby.Hit) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), strings.Compare(string(a.ID), string(b.ID)))
	})
	hits = hits[min(skip, len(hits)):]
	return hits[:min(limit, len(hits))]
}

// Offers implements [tracking.DriverReader].
func (s *Store) Offers(ctx context.Context, app tracking.AppID, o tracking.Offer) ([]tracking.Driver, error) {
	return s.nearest(ctx, app, func(a *application) []nearby.Hit { return a.nearby.Offers(o, nil) })
}

// patience is how often nearest looks again without keeping fixes from coming in.
const patience = 4

// nearest reads the drivers that find returns. One may be elsewhere by the time the row is read,
// and the distance would not fit the position; then it looks again.
func (s *Store) nearest(
	ctx context.Context, app tracking.AppID, find func(*application) []nearby.Hit,
) ([]tracking.Driver, error) {
	for range patience {
		a, err := s.read(ctx, app)
		if a == nil || err != nil {
			return nil, err
		}
		list, ok := a.readHits(find(a))
		a.mu.RUnlock()
		if ok {
			return list, nil
		}
	}
	a := s.application(app)
	a.mu.Lock() // they move too fast to be caught: let them stand still
	defer a.mu.Unlock()
	list, _ := a.readHits(find(a))
	return list, nil
}

// readHits reads the drivers of hits, and reports whether all of them were where they had been
// found.
func (a *application) readHits(hits []nearby.Hit) ([]tracking.Driver, bool) {
	if len(hits) == 0 {
		return nil, true
	}
	list := make([]tracking.Driver, len(hits))
	for i, h := range hits {
		d := &list[i]
		if a.read(rowOf(h.Entry), d); !d.Position.Located() || d.Position.Fix.LngLat != h.At {
			return nil, false
		}
		d.Distance = h.Distance
	}
	return list, true
}
