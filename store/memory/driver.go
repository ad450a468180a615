package memory

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
)

// driverNo is the number of a driver's row, by which lists have it.
type driverNo = uint32

// driverRow is a driver with requests, invite, notices and fixes. What is read for a list stands
// together, so that it is in few cache lines.
type driverRow struct {
	nearby.Entry // first, see rowOf; with the id, and for the index the place and the last sign of life
	place
	kept packedDriver // the rest but for the position: what only commits change

	// The row's lock guards what fixes change: what the index says last of the entry, moved and log.
	// The application's lock guards the rest; held exclusively, it guards everything.
	moved packedPosition
	no    driverNo
	log   fixLog
	apart *apart // nil for none
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

// person is the driver's, of which nothing may be kept.
func (r *driverRow) person() string { return r.kept.head().person }

// put makes d the row's driver, but for the position.
func (r *driverRow) put(d *tracking.Driver) { r.kept = packDriver(d) }

// rowLocks are the locks of all rows of drivers, each of many: one of its own would be 8 bytes more in
// each row, and another write to memory that a reader of ten rows has to wait for. Nobody holds two.
type rowLocks [256]sync.Mutex

// lock is a row's.
func (a *application) lock(r *driverRow) *sync.Mutex {
	return &a.rowLocks[(a.first+r.no)%uint32(len(a.rowLocks))]
}

// position is where a driver is. The row is locked.
func (a *application) position(r *driverRow) (p tracking.Position) {
	at, seen := a.nearby.Last(&r.Entry)
	r.moved.position(&p, &r.log, at, seen)
	return p
}

// move takes a driver to a position. The row is locked.
func (a *application) move(r *driverRow, p *tracking.Position) {
	a.nearby.MoveEntry(&r.Entry, *p)
	r.moved.put(p, &r.log)
}

// read sets d, which is zero, to a driver as of now.
func (a *application) read(r *driverRow, d *tracking.Driver) {
	mu := a.lock(r)
	mu.Lock()
	at, seen := a.nearby.Last(&r.Entry)
	r.moved.position(&d.Position, &r.log, at, seen)
	mu.Unlock()
	r.readKept(d)
}

// readKept sets all of d but the position.
func (r *driverRow) readKept(d *tracking.Driver) {
	d.ID, d.CreatedAt, d.Seq = r.ID(), time.UnixMilli(r.created).UTC(), r.seq
	r.kept.driver(d)
}

// driver returns a driver as of now.
func (a *application) driver(r *driverRow) (d tracking.Driver) {
	a.read(r, &d)
	return d
}

// drivers holds an application's drivers, and the lists that serve its filters.
type drivers struct {
	rows       *slab[driverRow]
	byAge      func(a, b driverNo) int
	byID       lists // by codeOf the id
	all        list[driverNo]
	available  map[bool]*list[driverNo]
	byProperty map[string]map[string]*list[driverNo]
}

func newDrivers() drivers {
	rows := new(slab[driverRow])
	return drivers{
		rows:       rows,
		byAge:      func(a, b driverNo) int { return rows.at(a).place.compare(rows.at(b).place) },
		available:  make(map[bool]*list[driverNo]),
		byProperty: make(map[string]map[string]*list[driverNo]),
	}
}

// row is a driver's, nil if there is none.
func (x *drivers) row(id tracking.DriverID) *driverRow {
	return find(&x.byID, codeOf(string(id)), func(no driverNo) *driverRow {
		if r := x.rows.at(no); r.ID() == id {
			return r
		}
		return nil
	})
}

// insert adds a new driver, whose CreatedAt and Seq are set.
func (x *drivers) insert(a *application, d *tracking.Driver) *driverRow {
	no := x.rows.put(driverRow{place: place{d.CreatedAt.UnixMilli(), d.Seq}})
	r := x.rows.at(no)
	r.no = no
	r.put(d)
	d.ID = tracking.DriverID(strings.Clone(string(d.ID)))
	a.nearby.PutEntry(&r.Entry, *d)
	r.moved.put(&d.Position, &r.log)
	x.byID.insert(codeOf(string(d.ID)), no, x.byAge)
	x.all.insert(no, x.byAge)
	x.enter(no, d, nil)
	return r
}

// replace puts d, with its position, in the place of r's driver, who was another way.
func (x *drivers) replace(a *application, r *driverRow, d, was *tracking.Driver) {
	x.leave(r.no, was, d)
	r.put(d)
	a.nearby.PutEntry(&r.Entry, *d)
	x.enter(r.no, d, was)
}

// remove takes a driver out; the row is there until it is dropped.
func (x *drivers) remove(a *application, r *driverRow, d *tracking.Driver) {
	x.leave(r.no, d, nil)
	x.all.remove(r.no, x.byAge)
	x.byID.remove(codeOf(string(d.ID)), r.no, x.byAge)
	a.nearby.RemoveEntry(&r.Entry)
}

// enter puts n, whose driver is d, into the lists where it has not been as was (nil: in none).
func (x *drivers) enter(n driverNo, d, was *tracking.Driver) {
	if was == nil || was.Available != d.Available {
		insertInto(x.available, d.Available, n, x.byAge)
	}
	for k, v := range d.Properties {
		if was != nil && has(was, k, v) {
			continue
		}
		values := x.byProperty[k]
		if values == nil {
			values = make(map[string]*list[driverNo])
			x.byProperty[strings.Clone(k)] = values
		}
		if values[v] == nil {
			v = strings.Clone(v)
		}
		insertInto(values, v, n, x.byAge)
	}
}

// leave takes n, whose driver is d, out of the lists where it will not be as next (nil: in none).
func (x *drivers) leave(n driverNo, d, next *tracking.Driver) {
	if next == nil || next.Available != d.Available {
		removeFrom(x.available, d.Available, n, x.byAge)
	}
	for k, v := range d.Properties {
		if next != nil && has(next, k, v) {
			continue
		}
		values := x.byProperty[k]
		removeFrom(values, v, n, x.byAge)
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
	if r := a.drivers.row(id); r != nil {
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
		r := a.drivers.row(id)
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
		skip, more := f.Offset(), false
		list, err := s.nearest(ctx, app, func(a *application, room []nearby.Hit) (hits []nearby.Hit) {
			hits, more = a.near(f, skip, f.Limit, room)
			return hits
		})
		return list, more, err
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
	return copies(rows, func(n driverNo) tracking.Driver { return a.driver(a.drivers.rows.at(n)) }), more, nil
}

// rarest returns the shortest list that holds all drivers of a filter, nil when there are none, and
// a test for the rest of the filter, nil when the list is the answer.
func (x *drivers) rarest(f tracking.DriverFilter) (source *list[driverNo], rest func(driverNo) bool) {
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
	return source, func(n driverNo) bool { return matches(x.rows.at(n), f) }
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

// hitRooms have room for the hits of a page.
var hitRooms = sync.Pool{New: func() any { return new(make([]nearby.Hit, 20)) }}

// near finds the nearest drivers that pass f, in room if there is enough, and tells whether there are more.
func (a *application) near(
	f tracking.DriverFilter, skip, limit int, room []nearby.Hit,
) (hits []nearby.Hit, more bool) {
	if len(f.Properties) == 0 {
		return a.nearby.Page(*f.Near, nearby.Filter{Available: f.Available}, skip, limit, room)
	}
	hits = a.nearWith(f, skip, limit+1)
	return hits[:min(limit, len(hits))], len(hits) > limit
}

// nearWith finds the nearest drivers that pass f, which asks for properties.
func (a *application) nearWith(f tracking.DriverFilter, skip, limit int) []nearby.Hit {
	source, _ := a.drivers.rarest(f)
	if source == nil || skip >= source.len() {
		return nil
	}
	// Where they are spread evenly, a walk meets all/some drivers for each one it keeps.
	some, all := source.len(), a.drivers.all.len()
	if skip < some && all/some*(skip+limit) < some {
		return a.nearby.Near(*f.Near, nearby.Filter{Available: f.Available}, skip, limit,
			func(id tracking.DriverID) bool {
				return matches(a.drivers.row(id), f)
			})
	}
	few := make([]*nearby.Entry, 0, some)
	for n := range walk(source) {
		if r := a.drivers.rows.at(n); matches(r, f) {
			few = append(few, &r.Entry)
		}
	}
	return a.nearby.Among(few, *f.Near, skip, limit)
}

// Offers implements [tracking.DriverReader].
func (s *Store) Offers(ctx context.Context, app tracking.AppID, o tracking.Offer) ([]tracking.Driver, error) {
	return s.nearest(ctx, app, func(a *application, room []nearby.Hit) []nearby.Hit { return a.nearby.Offers(o, room) })
}

// patience is how often nearest looks again without keeping fixes from coming in.
const patience = 4

// nearest reads the drivers that find returns. One may be elsewhere by the time the row is read,
// and the distance would not fit the position; then it looks again.
func (s *Store) nearest(
	ctx context.Context, app tracking.AppID, find func(a *application, room []nearby.Hit) []nearby.Hit,
) ([]tracking.Driver, error) {
	room := hitRooms.Get().(*[]nearby.Hit)
	defer func() {
		clear(*room)
		hitRooms.Put(room)
	}()
	for range patience {
		a, err := s.read(ctx, app)
		if a == nil || err != nil {
			return nil, err
		}
		list, ok := a.readHits(find(a, *room))
		a.mu.RUnlock()
		if ok {
			return list, nil
		}
	}
	a := s.application(app)
	a.mu.Lock() // they move too fast to be caught: let them stand still
	defer a.mu.Unlock()
	list, _ := a.readHits(find(a, *room))
	return list, nil
}

// readHits reads the drivers of hits, and reports whether all of them were where they had been
// found.
func (a *application) readHits(hits []nearby.Hit) ([]tracking.Driver, bool) {
	if len(hits) == 0 {
		return nil, true
	}
	a.drivers.touch(hits)
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

// touch reads a little of what the rows of hits have, for who is about to read all of it: so the cache
// misses, which are most of what that takes, come all at once and not one after another.
//
//go:noinline
func (x *drivers) touch(hits []nearby.Hit) (sum uint64) {
	for i := range hits {
		r := rowOf(hits[i].Entry)
		if sum += uint64(r.no); len(r.kept) > 0 {
			sum += uint64(r.kept[0])
		}
	}
	return sum
}
