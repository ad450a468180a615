package tracking

import (
	"context"
	"crypto/ecdh"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// DriverID identifies a driver (operator). The application chooses it, or one is made.
type DriverID string

// Driver is a person who carries out tasks and trips.
type Driver struct {
	// ID is chosen by the application, or made. Another person may have it later.
	ID DriverID

	// Person tells those apart who have the ID one after another. It is made with the row, and
	// never again.
	Person string

	Name   string
	Mobile string
	Email  string

	// Available says that the driver is on duty.
	Available bool

	// Properties are the application's own, and can be filtered by.
	Properties map[string]string

	// Route is what the driver has to do, in order: the stops of all tasks that are assigned to or in
	// progress with the driver, at most [MaxStops].
	Route []Stop

	// LegAt is when another stop of the Route last became the next one: the way to it began then, or
	// later.
	LegAt time.Time

	// MaxOpenTasks is how many open tasks the driver may get automatically; nil: as
	// Options.MaxOpenTasks says; negative: no limit.
	MaxOpenTasks *int

	// Silent says that the driver, who is available, has not been heard of for Options.MaxFixAge.
	Silent bool

	// DutyAt is when Available last changed; zero: never.
	DutyAt time.Time

	// OffDutyAt is when the driver last went off duty, at first when made; zero: not known. Of who
	// is available, that lasted from here to DutyAt.
	OffDutyAt time.Time

	// TokenGeneration is raised by joining and by revoking.
	TokenGeneration int

	// AppToken is the hash of the token that the driver's app acts with; zero: none.
	AppToken Hash

	// IngestToken is the hash of the token in the URL that the phone app posts to; zero: none.
	IngestToken Hash

	// Push is where the driver's browsers are told of notices.
	Push []PushSubscription

	// CreatedAt is when the driver was made, by our clock.
	CreatedAt time.Time

	// UpdatedAt is when the driver last changed, by our clock. Fixes do not count.
	UpdatedAt time.Time

	// Seq is the order of insertion. The store gives it.
	Seq int64

	// Version is raised by each change, but not by fixes. The store gives it.
	Version int64

	// Position is filled in by reads and ignored by Commit.
	Position Position

	// Distance in metres is filled in by lists with a point, and 0 elsewhere.
	Distance float64
}

// Clone returns a deep copy.
func (d Driver) Clone() Driver {
	d.Properties = maps.Clone(d.Properties)
	if len(d.Properties) == 0 {
		d.Properties = nil
	}
	d.Push = append([]PushSubscription(nil), d.Push...)
	d.Route, d.MaxOpenTasks = append([]Stop(nil), d.Route...), clonePtr(d.MaxOpenTasks)
	return d
}

// Stop is a place that a driver has to go to: the end of a leg of one of the driver's tasks.
type Stop struct {
	TaskID TaskID
	Leg    Leg
}

// MaxStops is how long a route can be.
const MaxStops = 1000

// routed is a route with those legs of a task and no others, in a slice of its own. Stops that are
// there stay where they are. New ones come first, or else at the end, but a pickup before its drop.
func routed(route []Stop, id TaskID, legs []Leg, first bool) []Stop {
	next := make([]Stop, 0, len(route)+len(legs))
	for _, s := range route {
		if s.TaskID != id || slices.Contains(legs, s.Leg) {
			next = append(next, s)
		}
	}
	at := len(next)
	if first {
		at = 0
	}
	for _, leg := range slices.Backward(legs) {
		i := slices.IndexFunc(next, func(s Stop) bool { return s.TaskID == id && s.Leg == leg })
		if i < 0 {
			next = slices.Insert(next, at, Stop{id, leg})
		} else if !first {
			at = i
		}
	}
	return next
}

// OpenTasks is how many tasks are assigned to or in progress with the driver: those in the Route.
func (d Driver) OpenTasks() int {
	if len(d.Route) < 2 {
		return len(d.Route)
	}
	n := 0
	if len(d.Route) <= 16 { // to look back takes less than a map
		for i, s := range d.Route {
			if !slices.ContainsFunc(d.Route[:i], func(o Stop) bool { return o.TaskID == s.TaskID }) {
				n++
			}
		}
		return n
	}
	seen := make(map[TaskID]struct{}, len(d.Route))
	for _, s := range d.Route {
		if _, twice := seen[s.TaskID]; !twice {
			seen[s.TaskID] = struct{}{}
			n++
		}
	}
	return n
}

// Full reports whether the driver has as many open tasks as may come automatically: as MaxOpenTasks
// says, or else most; negative: no limit.
func (d Driver) Full(most int) bool {
	most = d.mostOpen(most)
	return most >= 0 && d.OpenTasks() >= most
}

// mostOpen is how many open tasks the driver may get automatically, where others may get so many.
func (d Driver) mostOpen(others int) int {
	if d.MaxOpenTasks != nil {
		return *d.MaxOpenTasks
	}
	return others
}

// Meets reports whether the driver has all these properties.
func (d Driver) Meets(requires map[string]string) bool {
	for k, v := range requires {
		if has, ok := d.Properties[k]; !ok || has != v {
			return false
		}
	}
	return true
}

func (id DriverID) subject() Subject { return Subject{KindDriver, string(id)} }

// PushSubscription is how a browser is reached by Web Push, as its PushSubscription object says
// (W3C Push API).
type PushSubscription struct {
	Endpoint Secret // https URL of the push service
	P256dh   string // the browser's public key, base64url
	Auth     Secret // the browser's authentication secret, base64url
}

// Position is what is known of where a driver is.
type Position struct {
	Fix    Fix       // the newest good fix, or a coarse one while there is nothing better; zero Time: none
	Tail   string    // what else the next fix is judged by, for [FixBatch.Record] alone; mostly ""
	SeenAt time.Time // of the last sign of life, by our clock; zero: never
	Skew   Skew      // what the last arrivals say of the phone's clock
	Unread int       // what phone apps sent in a form we do not know, since the last fix that was read

	// Rewrites is raised whenever something before the newest good fix has changed: a path that was
	// read holds while it stays.
	Rewrites int
}

// TailUnknown is the Tail of a position that was kept without one: it is made anew from the kept
// fixes.
const TailUnknown = "?"

// ClockSkew is by how many seconds the phone's clock runs ahead (+) or behind (−); not known unless
// it is 30 s or more.
func (p Position) ClockSkew() Reading {
	if s := p.Skew.Least; s.Known && math.Abs(s.Value) >= 30 {
		return s
	}
	return Reading{}
}

// Located reports whether there is a position.
func (p Position) Located() bool { return !p.Fix.Time.IsZero() }

// Skew is by how many seconds the fixes of the last arrivals ran ahead (+) or behind (−) of them.
// What was delayed on its way seems to run behind, and what a phone had kept while offline by
// hours; so it is the smallest that tells: Least is that of the last 5 to 9 arrivals.
type Skew struct {
	Least    Reading
	Recent   Reading // the smallest of the last Arrivals, from which Least is made anew
	Arrivals int
}

// DriverFilter picks drivers. Zero fields do not filter.
type DriverFilter struct {
	Page               // default limit 20
	Near       *LngLat // only drivers with a position, nearest first
	Available  *bool
	Properties map[string]string // all of these, exactly
}

// Offer picks drivers for automatic assignment.
type Offer struct {
	At        LngLat
	MaxOpen   int               // only drivers that are not [Driver.Full] by this; negative: no limit
	Full      bool              // also those that are
	SeenSince time.Time         // only drivers whose last sign of life is at or after this
	Within    float64           // metres; 0: no limit
	Requires  map[string]string // only drivers whose Properties have all of these, exactly
	Exclude   []DriverID
	Limit     int
}

// TokenKind tells a driver's two tokens apart.
type TokenKind int

const (
	TokenApp    TokenKind = 1 // acts as the driver
	TokenIngest TokenKind = 2 // can only record the driver's fixes
)

// DriverReader reads drivers. The Position of each is as of now.
type DriverReader interface {
	// Driver reads one.
	Driver(ctx context.Context, app AppID, id DriverID) (Driver, error)

	// Drivers lists oldest first, by CreatedAt and then insertion; with f.Near nearest first by
	// [Distance], ties by ID, and only those that have a position, each with its Distance. More
	// tells whether a further page exists. Page.Limit is given, 1 or more.
	Drivers(ctx context.Context, app AppID, f DriverFilter) (list []Driver, more bool, err error)

	// Offers lists drivers that are Available, not Silent, have a position and pass o, each with
	// its Distance: nearest first by [Distance], of equally near ones those with fewer OpenTasks
	// first, then by ID. So the first of them is the one to take, however many stand in one spot.
	// It costs the number of drivers that it looks at near o.At, not the number of those that are
	// not to be offered anything, nor of those that are as near as the last one listed.
	Offers(ctx context.Context, app AppID, o Offer) ([]Driver, error)

	// DriverByToken finds the driver, of any application, whose token's hash this is.
	DriverByToken(ctx context.Context, kind TokenKind, hash Hash) (AppID, Driver, error)
}

func (d Driver) subject() Subject { return d.ID.subject() }

// dutySlack is how old a fix may be when its driver comes on duty: the first that a phone sends
// then is often one it had already.
const dutySlack = 2 * time.Minute

// offDuty reports whether the driver is off duty now, or is known to have been so at t, dutySlack
// and more before coming on duty.
func (d Driver) offDuty(t time.Time) bool {
	if !d.Available {
		return true
	}
	return !d.OffDutyAt.IsZero() && !t.Before(d.OffDutyAt) && t.Before(d.DutyAt.Add(-dutySlack))
}

type appDriver struct {
	app    AppID
	driver DriverID
}

// DriverUpdate describes a driver to make or change. A nil field stays as it is.
type DriverUpdate struct {
	ID        DriverID // 1 to 128 characters, no control character, no comma, no blank at either end
	Name      *string  // up to 200 characters
	Mobile    *string  // up to 32
	Email     *string
	Available *bool // on duty; tasks come automatically only while heard of within Options.MaxFixAge
	// replaces all; empty and not nil removes all; up to 50, keys up to 64 characters, values up to
	// 256
	Properties map[string]string
	// how many open tasks may come automatically, up to 1,000, which nobody can exceed; or
	// [NoLimit], or [AsOptions], which is so at first
	MaxOpenTasks *int
	LngLat       *LngLat // where the driver is now; never a jump, and kept on duty or off
}

// Values of DriverUpdate.MaxOpenTasks.
const (
	NoLimit   = -1 // any number of open tasks may come automatically
	AsOptions = -2 // as many as Options.MaxOpenTasks says
)

func (n DriverUpdate) check() error {
	var c check
	c.name("driver_id", string(n.ID))
	c.person(n.Name, n.Mobile, n.Email)
	c.properties("properties", n.Properties)
	if most := n.MaxOpenTasks; most != nil && (*most < AsOptions || *most > MaxStops) {
		c.fail("max_open_tasks", "must be from 0 to 1000, -1 for no limit, or -2 for that of the service.")
	}
	c.point("lnglat", n.LngLat)
	return c.err
}

// properties checks what a driver has, or must have.
func (c *check) properties(field string, m map[string]string) {
	if len(m) > 50 {
		c.fail(field, "has more than 50 entries.")
	}
	if len(m) == 0 {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if k == "" {
			c.fail(field, "has an empty key.")
		}
		c.text(field, k, 64)
		c.text(field, m[k], 256) // a key is the caller's word, and not repeated
	}
}

func (c *check) person(name, mobile, email *string) {
	if name != nil {
		c.text("name", *name, 200)
	}
	if mobile != nil {
		c.line("mobile", *mobile, 32)
	}
	if email != nil && *email != "" {
		c.line("email", *email, 254)
		user, host, ok := strings.Cut(*email, "@")
		if !ok || user == "" || host == "" || strings.ContainsAny(host, "@") ||
			strings.ContainsFunc(*email, unicode.IsSpace) {
			c.fail("email", "must be an address like name@example.com.")
		}
	}
}

// SaveDriver makes a driver, who is not available unless said so, or changes one. Codes:
// ErrInvalid.
func (s *Service) SaveDriver(ctx context.Context, n DriverUpdate) (_ Driver, err error) {
	defer s.observe(&ctx, "SaveDriver").end(&err)
	if err := n.check(); err != nil {
		return Driver{}, err
	}
	err = s.change(ctx, verb{name: "SaveDriver"}, func(c *change) error {
		d, err := s.driver(ctx, n.ID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		fresh := err != nil
		if err := s.expected(d.Version); err != nil {
			return err
		}
		if fresh {
			d = c.newDriver(n.ID)
		}
		changed := d.describe(n.Name, n.Mobile, n.Email) || fresh
		if n.Properties != nil && !maps.Equal(n.Properties, d.Properties) {
			d.Properties, changed = maps.Clone(n.Properties), true
		}
		if n.MaxOpenTasks != nil {
			most := clonePtr(n.MaxOpenTasks)
			if *most == AsOptions {
				most = nil
			}
			changed = changed || !same(most, d.MaxOpenTasks)
			d.MaxOpenTasks = most
		}
		if n.Available != nil && *n.Available != d.Available {
			c.duty(&d, *n.Available, c.now)
			changed = true
		}
		if n.LngLat != nil {
			at := c.now // what was told last counts, even beside a phone whose clock is ahead
			if newest := d.Position.newest(); !newest.Before(at) && !ahead(newest, c.now) {
				at = newest.Add(time.Millisecond)
			}
			c.heard(d.ID, Fix{LngLat: *n.LngLat, Time: at, Trusted: true})
		}
		if changed {
			d.UpdatedAt = c.now
			c.cs.Drivers = []Driver{d}
		}
		c.serves = true
		return nil
	})
	if err != nil {
		return Driver{}, err
	}
	return s.Driver(ctx, n.ID)
}

// describe takes over what is given, and reports whether it changes anything.
func (d *Driver) describe(name, mobile, email *string) (changed bool) {
	for _, f := range []struct{ to, from *string }{{&d.Name, name}, {&d.Mobile, mobile}, {&d.Email, email}} {
		if f.from != nil && *f.from != *f.to {
			*f.to, changed = *f.from, true
		}
	}
	return changed
}

// SetAvailability puts a driver on or off duty, at the driver's word; tasks and trips stay as they
// are. It is a sign of life. At is when, as in [Step]. Codes: ErrNotFound.
func (s *Service) SetAvailability(ctx context.Context, id DriverID, available bool, at time.Time,
) (_ Driver, err error) {
	defer s.observe(&ctx, "SetAvailability").end(&err)
	err = s.change(ctx, verb{name: "SetAvailability", driver: id}, func(c *change) error {
		d, err := c.named(ctx, id)
		if err != nil {
			return err
		}
		c.heard(id)
		if d.Available != available {
			c.duty(&d, available, at)
			c.cs.Drivers = []Driver{d}
		}
		c.serves = true
		return nil
	})
	if err != nil {
		return Driver{}, err
	}
	return s.Driver(ctx, id)
}

// Driver reads one. Codes: ErrNotFound.
func (s *Service) Driver(ctx context.Context, id DriverID) (_ Driver, err error) {
	defer s.observe(&ctx, "Driver").end(&err)
	var d Driver
	err = s.op(ctx, "Driver", func(time.Time) (err error) { d, err = s.driver(ctx, id); return err })
	return d, err
}

// Drivers lists oldest first, or with f.Near nearest first, and tells whether there is a further
// page. Codes: ErrInvalid.
func (s *Service) Drivers(ctx context.Context, f DriverFilter) (list []Driver, more bool, err error) {
	defer s.observe(&ctx, "Drivers").end(&err)
	var c check
	c.page(&f.Page, 20)
	c.lnglat("position", f.Near)
	if len(f.Properties) > 10 {
		c.fail("properties", "has more than 10 filters.")
	}
	if len(f.Properties) > 0 {
		for _, k := range slices.Sorted(maps.Keys(f.Properties)) {
			if k == "" {
				c.fail("properties", "needs a key.")
			}
			c.text("properties", k, 64)
		}
	}
	if c.err != nil {
		return nil, false, c.err
	}
	for _, v := range f.Properties {
		if strings.IndexByte(v, 0) >= 0 || !utf8.ValidString(v) {
			return nil, false, nil
		}
	}
	err = s.op(ctx, "Drivers", func(time.Time) (err error) {
		list, more, err = s.store.Drivers(ctx, s.app, f)
		return err
	})
	return list, more, err
}

// DeleteDriver erases a driver: record, tokens, invite, requests, notices, position and fixes;
// [Service.Purge] takes away in steps what there is much of. Tasks and trips keep the bare id. Who
// is made with that id later is another person: nothing of the first one is ever his. Codes:
// ErrNotFound; ErrConflict while the driver has open tasks or active trips, for which there is
// [Service.ForceDeleteDriver].
func (s *Service) DeleteDriver(ctx context.Context, id DriverID) (err error) {
	defer s.observe(&ctx, "DeleteDriver").end(&err)
	return s.deleteDriver(ctx, id, false)
}

// ForceDeleteDriver erases a driver as [Service.DeleteDriver] does, whatever he is at: in the same
// step his open tasks are unassigned, as by [Service.UnassignTask], and his active trips stopped.
// The tasks wait for nobody; assign them anew. Codes: ErrNotFound.
func (s *Service) ForceDeleteDriver(ctx context.Context, id DriverID) (err error) {
	defer s.observe(&ctx, "ForceDeleteDriver").end(&err)
	return s.deleteDriver(ctx, id, true)
}

// deleteDriver erases a driver; with force also one who is at something.
func (s *Service) deleteDriver(ctx context.Context, id DriverID, force bool) error {
	return s.change(ctx, verb{name: "DeleteDriver", locks: []Subject{id.subject()}}, func(c *change) error {
		if err := s.endDue(ctx, id, c.now); err != nil {
			return err
		}
		d, err := c.named(ctx, id)
		if err == nil {
			err = s.expected(d.Version)
		}
		if err != nil {
			return err
		}
		tasks, trips, err := s.underWay(ctx, d)
		if err != nil {
			return err
		}
		if busy := len(tasks) + len(trips); busy > 0 && !force {
			return conflict(fmt.Sprintf("The driver has %s and %s; unassign or complete the tasks and stop the trips first, or delete with force.",
				count(len(tasks), "open task"), count(len(trips), "active trip")))
		}
		// Whatever would give him more to do changes his row, and then this is decided anew.
		c.cs.DeleteDrivers = []Driver{d}
		for _, t := range tasks {
			next := t.freed(c.now)
			next.Excluded = t.Excluded // he is gone, and whoever has the id next may have it
			c.cs.Tasks = append(c.cs.Tasks, next)
			c.event(t.subject(), t.Person, c.now, TaskUnassignedData{id})
		}
		for _, t := range trips {
			if err := c.endTrip(ctx, t, tripEnd{status: TripStopped, at: c.now}); err != nil {
				return err
			}
		}
		return nil
	})
}

// underWay lists a driver's open tasks and active trips.
func (s *Service) underWay(ctx context.Context, d Driver) (tasks []Task, trips []Trip, err error) {
	if tasks, err = s.openTasks(ctx, d.ID); err != nil {
		return nil, nil, err
	}
	for n, more := 1, true; more; n++ {
		var page []Trip
		page, more, err = s.store.Trips(ctx, s.app, TripFilter{Page: Page{n, 1000}, DriverID: d.ID, Status: TripActive})
		if err != nil {
			return nil, nil, err
		}
		trips = append(trips, page...)
	}
	return tasks, trips, nil
}

// openTasks lists a driver's open tasks, newest first.
func (s *Service) openTasks(ctx context.Context, id DriverID) (list []Task, err error) {
	for n, more := 1, true; more; n++ {
		var page []Task
		page, more, err = s.store.Tasks(ctx, s.app, TaskFilter{
			Page: Page{n, 1000}, DriverID: id, Status: []TaskStatus{StatusAssigned, StatusInProgress},
		})
		if err != nil {
			return nil, err
		}
		list = append(list, page...)
	}
	return list, nil
}

// newDriver is the row of a driver who is made now.
func (c *change) newDriver(id DriverID) Driver {
	return Driver{ID: id, Person: c.ids.next(c.now), OffDutyAt: c.now, CreatedAt: c.now, UpdatedAt: c.now}
}

// duty puts a driver on or off duty, and puts in the event of it.
func (c *change) duty(d *Driver, available bool, at time.Time) {
	at = clampAt(at, d.DutyAt, c.now)
	d.Available, d.Silent, d.DutyAt, d.UpdatedAt = available, false, at, c.now
	d.OffDutyAt = earlier(d.OffDutyAt, at) // it was in the future of a clock that was wrong
	if available {
		c.event(d.subject(), d.Person, at, DriverAvailableData{})
		return
	}
	d.OffDutyAt = at
	c.event(d.subject(), d.Person, at, DriverUnavailableData{})
}

// count says how many there are: "no open tasks", "1 open task", "2 open tasks".
func count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	}
	return fmt.Sprint(n, " ", what, "s")
}

// Route is a driver's stops in order.
type Route struct {
	Stops   []RouteStop
	Version int64 // of the driver, to change it by
}

// RouteStop is a stop, and when the driver is expected there; ETA is nil while that can't be said.
type RouteStop struct {
	Stop
	ETA *ETA
}

// Route reads a driver's route. Codes: ErrNotFound.
func (s *Service) Route(ctx context.Context, id DriverID) (_ Route, err error) {
	defer s.observe(&ctx, "Route").end(&err)
	var r Route
	err = s.op(ctx, "Route", func(now time.Time) error {
		d, err := s.driver(ctx, id)
		if err == nil {
			r, err = s.route(ctx, d, now)
		}
		return err
	})
	return r, err
}

// SetRoute puts a driver's stops in another order, of which the driver is told. They must be exactly
// those of his route, each pickup before its drop. Version is the [Route].Version that the order was
// made from; 0 for whatever there is now. Codes: ErrInvalid, ErrNotFound; ErrConflict when the stops
// are not his, or the version is an older one.
func (s *Service) SetRoute(ctx context.Context, id DriverID, stops []Stop, version int64) (_ Route, err error) {
	defer s.observe(&ctx, "SetRoute").end(&err)
	return s.reorder(ctx, verb{name: "SetRoute"}, id, stops, version)
}

// ReorderRoute is SetRoute at the driver's own word. Codes: as there; ErrConflict also where
// Options.DriversReorder is false.
func (s *Service) ReorderRoute(ctx context.Context, id DriverID, stops []Stop, version int64) (_ Route, err error) {
	defer s.observe(&ctx, "ReorderRoute").end(&err)
	if !*s.opts.DriversReorder {
		return Route{}, conflict("Drivers cannot change the order of their stops here.")
	}
	return s.reorder(ctx, verb{name: "ReorderRoute", driver: id}, id, stops, version)
}

func (s *Service) reorder(ctx context.Context, v verb, id DriverID, stops []Stop, version int64) (Route, error) {
	if err := checkStops(stops); err != nil {
		return Route{}, err
	}
	if version < 0 {
		return Route{}, invalid("version", "must be 0 or more.")
	}
	v.locks = append(v.locks, id.subject())
	err := s.change(ctx, v, func(c *change) error {
		d, err := c.named(ctx, id)
		switch {
		case err != nil:
			return err
		case slices.Equal(stops, d.Route): // said again it is done, whatever the version
			return nil
		case version != 0 && version != d.Version:
			return &Error{
				Code: ErrConflict, Field: "version",
				Message: "The driver has changed meanwhile; read the route again.",
			}
		}
		if err := reordered(d.Route, stops); err != nil {
			return err
		}
		if d, err = c.inOrder(ctx, d, stops); err != nil {
			return err
		}
		c.cs.Drivers = []Driver{d}
		if v.driver == "" {
			c.routed(d)
		} else {
			c.event(d.subject(), d.Person, c.now, DriverRoutedData{})
		}
		return nil
	})
	if err != nil {
		return Route{}, err
	}
	return s.Route(ctx, id)
}

// checkStops refuses what can be nobody's route.
func checkStops(stops []Stop) error {
	if len(stops) > MaxStops {
		return &Error{Code: ErrConflict, Field: "stops", Message: "stops has more than 1,000 entries."}
	}
	for i, stop := range stops {
		if stop.Leg != LegPickup && stop.Leg != LegDrop {
			return invalid(fmt.Sprintf("stops[%d].leg", i), "must be pickup or drop.")
		}
	}
	return nil
}

// inOrder is a driver with those stops. Where another one is the next of what is under way, its leg
// begins now.
func (c *change) inOrder(ctx context.Context, d Driver, stops []Stop) (Driver, error) {
	next := func() (stop Stop, err error) {
		if len(d.Route) > 0 {
			_, stop, err = c.underWayNext(ctx, d)
		}
		return stop, err
	}
	was, err := next()
	if err != nil {
		return d, err
	}
	d.Route, d.UpdatedAt = slices.Clone(stops), c.now
	is, err := next()
	if was != is {
		d.LegAt = c.now
	}
	return d, err
}

// routed puts in that somebody else has changed the order of a driver's stops.
func (c *change) routed(d Driver) {
	c.event(d.subject(), d.Person, c.now, DriverRoutedData{})
	c.tell(Notice{DriverID: d.ID, Kind: NoticeRoute})
}

// reordered checks that stops are those of a route in another order, pickups before their drops.
func reordered(route, stops []Stop) error {
	differs := func(i int, what string) error {
		field := fmt.Sprintf("stops[%d]", i)
		return &Error{Code: ErrConflict, Field: field, Message: field + " " + what}
	}
	left := make(map[Stop]bool, len(route))
	for _, stop := range route {
		left[stop] = true
	}
	for i, stop := range stops {
		ahead, known := left[stop]
		switch {
		case !known:
			return differs(i, "is no stop of this driver.")
		case !ahead:
			return differs(i, "is there twice.")
		case stop.Leg == LegDrop && left[Stop{stop.TaskID, LegPickup}]:
			return differs(i, "is the drop of a task whose pickup comes after it.")
		}
		left[stop] = false
	}
	for _, stop := range route {
		if left[stop] {
			return &Error{
				Code: ErrConflict, Field: "stops",
				Message: fmt.Sprintf("stops lacks the %s of task %s.", stop.Leg, stop.TaskID),
			}
		}
	}
	return nil
}

// route is a driver's route with the expected times, through all of it.
func (s *Service) route(ctx context.Context, d Driver, now time.Time) (Route, error) {
	r := Route{Version: d.Version, Stops: make([]RouteStop, len(d.Route))}
	for i, stop := range d.Route {
		r.Stops[i].Stop = stop
	}
	from := d.Position.Fix
	if len(d.Route) == 0 || !d.Position.Located() || !within(from.Time, now, liveFor+1) {
		return r, nil
	}
	tasks, err := s.tasksOn(ctx, d.ID, d.Route)
	if err != nil {
		return r, err
	}
	recent, err := s.recent(ctx, d)
	if err != nil {
		return r, err
	}
	places := placesOf(d.Route, tasks)
	points, times := timesTo(from, places, recent, s.opts.StopTime)
	last := len(places) - 1
	if last == 0 && places[0] == nil {
		return r, nil
	}
	way := wayTo{from: from, since: d.LegAt, stops: places[:last], place: points[last+1]}
	end := s.expect(ctx, etaKey{app: s.app, driver: d.ID, place: way.place}, way, recent, now)
	whole := end.Time.Sub(end.ComputedAt).Seconds() / estimate(points, recent, s.opts.StopTime).Seconds()
	for i, took := range times {
		if places[i] == nil {
			continue
		}
		eta := *end
		switch {
		case took == 0:
			eta.Time = end.ComputedAt
		case i < last:
			took = max(time.Duration(whole*float64(took)), time.Minute)
			eta.Time = end.ComputedAt.Add(took).Truncate(time.Second)
		}
		r.Stops[i].ETA = &eta
	}
	return r, nil
}

// placesOf are where the stops of a route are; nil for one whose point is not known.
func placesOf(route []Stop, tasks map[TaskID]Task) []*LngLat {
	places := make([]*LngLat, len(route))
	for i, stop := range route {
		t := tasks[stop.TaskID]
		places[i] = pointOf(t.place(stop.Leg))
	}
	return places
}

// recent are the driver's good fixes of the last minutes before the newest, one a second at most.
func (s *Service) recent(ctx context.Context, d Driver) (list recents, err error) {
	from := FixRange{Person: d.Person, From: d.Position.Fix.Time.Add(-recentFor)}
	for f, err := range s.store.Fixes(ctx, s.app, d.ID, from) {
		if err != nil {
			return recents{}, err
		}
		list = list.with(f)
	}
	return list, nil
}

// Notices lists what a driver has been told, those with an id greater than after, at most limit (1
// to 100; 0 means 100). Lost tells that the place is gone: read the driver's tasks and requests
// instead, and go on from the end of the feed. Codes: ErrNotFound; ErrInvalid.
func (s *Service) Notices(ctx context.Context, driver DriverID, after int64, limit int) (list []Notice, lost bool,
	err error) {
	defer s.observe(&ctx, "Notices").end(&err)
	if limit < 0 || limit > 100 {
		return nil, false, invalid("limit", "must be from 1 to 100.")
	}
	if after < 0 {
		return nil, false, invalid("after", "must be 0 or more.")
	}
	defaultTo(&limit, 100)
	err = s.op(ctx, "Notices", func(time.Time) (err error) {
		if list, lost, err = s.store.Notices(ctx, s.app, driver, after, limit); err != nil {
			return err
		}
		_, err = s.driver(ctx, driver) // afterwards: who has the id then has had it when they were read, or nobody had
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return list, lost, nil
}

// pushAtMost is how many browsers of one driver are told; the oldest give way.
const pushAtMost = 10

// SubscribePush notes a browser of the driver's that is to be told of notices by Web Push; with the
// endpoint of one that is known it replaces that one. Joining anew and [Service.RevokeTokens] end
// all. Codes: ErrInvalid, ErrNotFound.
func (s *Service) SubscribePush(ctx context.Context, id DriverID, sub PushSubscription) (err error) {
	defer s.observe(&ctx, "SubscribePush").end(&err)
	var c check
	c.line("endpoint", string(sub.Endpoint), 2000)
	if u, err := url.Parse(string(sub.Endpoint)); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		c.fail("endpoint", "must be an https address.")
	}
	point, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(sub.P256dh, "="))
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(point)
	}
	if err != nil {
		c.fail("p256dh", "must be an uncompressed point of P-256 in base64url.")
	}
	if secret, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(string(sub.Auth), "=")); err != nil ||
		len(secret) != 16 {
		c.fail("auth", "must be 16 bytes in base64url.")
	}
	if c.err != nil {
		return c.err
	}
	return s.changePush(ctx, "SubscribePush", id, func(list []PushSubscription) []PushSubscription {
		list = slices.DeleteFunc(list, func(p PushSubscription) bool { return p.Endpoint == sub.Endpoint })
		return append(list[max(len(list)-pushAtMost+1, 0):], sub)
	})
}

// UnsubscribePush forgets a browser; repeating it changes nothing. Codes: ErrNotFound.
func (s *Service) UnsubscribePush(ctx context.Context, id DriverID, endpoint Secret) (err error) {
	defer s.observe(&ctx, "UnsubscribePush").end(&err)
	return s.changePush(ctx, "UnsubscribePush", id, func(list []PushSubscription) []PushSubscription {
		return slices.DeleteFunc(list, func(p PushSubscription) bool { return p.Endpoint == endpoint })
	})
}

func (s *Service) changePush(ctx context.Context, name string, id DriverID,
	edit func([]PushSubscription) []PushSubscription) error {
	return s.change(ctx, verb{name: name}, func(c *change) error {
		d, err := c.named(ctx, id)
		if err != nil {
			return err
		}
		list := edit(slices.Clone(d.Push))
		if !slices.Equal(list, d.Push) {
			d.Push = list
			c.cs.Drivers = []Driver{d}
		}
		return nil
	})
}

// driver reads a driver that the caller named.
func (s *Service) driver(ctx context.Context, id DriverID) (Driver, error) {
	if !lookup(string(id)) {
		return Driver{}, notFound("driver_id", "driver")
	}
	d, err := s.store.Driver(ctx, s.app, id)
	if p := s.person(id); err == nil && p != "" && p != d.Person {
		err = ErrNotFound
	}
	return d, orNotFound(err, "driver_id", "driver")
}

// Step is what a driver reports of something done.
type Step struct {
	At     time.Time // when, by the phone; clamped to between the step before and now; zero: now
	LngLat *LngLat   // where; nil: not said
}

func (st Step) check() error {
	var c check
	c.point("lnglat", st.LngLat)
	return c.err
}

// step puts in that a driver has been heard of with a step that was done at at, with its fix if it
// has one.
func (c *change) step(driver DriverID, st Step, at time.Time) {
	if st.LngLat == nil {
		c.heard(driver)
		return
	}
	c.heard(driver, Fix{LngLat: *st.LngLat, Time: at})
}

// Reading is a measured value that may be unknown.
type Reading struct {
	Value float64
	Known bool
}

// Known is a known reading.
func Known(v float64) Reading { return Reading{v, true} }

// Fix is a position as a phone measured it.
type Fix struct {
	LngLat   LngLat
	Time     time.Time // when it was measured
	EventID  string    // of the caller; "" for none
	Accuracy Reading   // metres
	Speed    Reading   // m/s
	Bearing  Reading   // degrees, clockwise from north
	Battery  Reading   // 0 … 1

	// Trusted says that it was told and not measured, by SaveDriver or at a trip's start: it is
	// never a jump. RecordFixes takes none for told.
	Trusted bool
}

// FixOutcome is what became of a fix, as it looked on arrival.
type FixOutcome string

const (
	FixInvalid   FixOutcome = "invalid"   // wrong in itself; not kept
	FixFuture    FixOutcome = "future"    // more than 2 minutes ahead; not kept
	FixOffDuty   FixOutcome = "off_duty"  // the driver was off duty and on no trip; not kept
	FixDuplicate FixOutcome = "duplicate" // the driver has one of this time; not kept
	FixJump      FixOutcome = "jump"      // kept, but left out until the next fix agrees with it
	// kept; its accuracy is worse than Options.MaxAccuracy: in no path, and live only where there
	// is nothing better
	FixCoarse FixOutcome = "coarse"
	FixLate   FixOutcome = "late" // kept; there was a newer one
	FixLive   FixOutcome = "live" // kept; it is the live position
)

// Kept reports whether the fix was kept.
func (o FixOutcome) Kept() bool {
	return o == FixJump || o == FixCoarse || o == FixLate || o == FixLive
}

const (
	// MaxBatch is how many fixes one call may carry.
	MaxBatch = 1000

	maxAhead = 2 * time.Minute // of our clock
)

// screen says what is wrong with a fix in itself; "" for nothing.
func (f Fix) screen(now time.Time) FixOutcome {
	var c check
	c.point("", &f.LngLat)
	c.line("", f.EventID, 128)
	c.time("", f.Time)
	bad := func(r Reading, lo, hi float64) bool { return r.Known && !(r.Value >= lo && r.Value <= hi) }
	switch {
	case c.err != nil, f.Time.IsZero(), bad(f.Accuracy, 0, math.MaxFloat64), bad(f.Speed, 0, math.MaxFloat64),
		bad(f.Bearing, 0, 360), bad(f.Battery, 0, 1):
		return FixInvalid
	case f.Time.After(now.Add(maxAhead)):
		return FixFuture
	}
	return ""
}

// RecordFixes keeps what a driver's phone measured, up to 1000 fixes in any order, and says of each
// what became of it. No fixes is a sign of life. What is wrong with one fix does not touch the
// others: the outcomes say so, and there is no error. Off duty and on no trip nothing is kept.
// Codes: ErrNotFound; ErrTooLarge.
func (s *Service) RecordFixes(ctx context.Context, driver DriverID, fixes []Fix) (_ []FixOutcome, err error) {
	defer s.observe(&ctx, "RecordFixes").end(&err)
	if len(fixes) > MaxBatch {
		return nil, &Error{
			Code: ErrTooLarge, Field: "fixes", Message: "fixes has more than 1000 entries; send them in parts.",
		}
	}
	outcomes := make([]FixOutcome, len(fixes))
	kept, err := s.record(ctx, "RecordFixes", driver, fixes, outcomes, 0)
	if err != nil {
		return nil, err
	}
	for i := range outcomes {
		if outcomes[i] == "" {
			outcomes[i], kept = kept[0], kept[1:]
		}
	}
	return outcomes, nil
}

// NoteUnread notes that a phone app of the driver's sent n records in a form that we do not know,
// or places that could not be read. It is a sign of life. Position.Unread counts them until a fix
// is read. Codes: ErrNotFound.
func (s *Service) NoteUnread(ctx context.Context, driver DriverID, n int) (err error) {
	defer s.observe(&ctx, "NoteUnread").end(&err)
	_, err = s.record(ctx, "NoteUnread", driver, nil, nil, max(n, 0))
	return err
}

// record keeps what a driver's phone sent, and tells those who look on. It sets the outcomes of the fixes
// that are not to be recorded, and returns those of the others.
func (s *Service) record(
	ctx context.Context, name string, driver DriverID, fixes []Fix, outcomes []FixOutcome, unread int,
) ([]FixOutcome, error) {
	if !lookup(string(driver)) {
		return nil, notFound("driver_id", "driver")
	}
	var rec Recorded
	err := s.op(ctx, name, func(now time.Time) error {
		if err := s.endDue(ctx, driver, now); err != nil {
			return err
		}
		b := s.batch(driver, now)
		b.Unread = unread
		room := rooms.Get().(*room)
		b.screen(fixes, outcomes, room.fix[:0])
		var err error
		// The store calls b.Record inside its own transaction: the rule of fixes is there.
		rec, err = s.store.RecordFixes(ctx, s.app, b)
		if err == nil { // else it may still be at it, as the docs of Store say
			room.leave()
		}
		return orNotFound(err, "driver_id", "driver")
	})
	if err != nil {
		return nil, err
	}
	if rec.Rewritten || rec.Moved || slices.Contains(rec.Outcomes, FixLate) || slices.Contains(rec.Outcomes, FixJump) {
		s.hub.moved(s.app, driver)
	}
	if rec.Driver.Silent {
		err = s.endSilenceOf(ctx, driver)
	}
	if len(rec.Driver.Route) > 0 && slices.ContainsFunc(rec.Outcomes, FixOutcome.Kept) {
		s.approach(ctx, rec)
	}
	return rec.Outcomes, err
}

// endSilenceOf notes that a driver who was silent has been heard of.
func (s *Service) endSilenceOf(ctx context.Context, id DriverID) error {
	return s.change(ctx, verb{name: "RecordFixes"}, func(c *change) error {
		d, err := c.named(ctx, id)
		if err == nil && d.Silent {
			d.Silent = false
			c.cs.Drivers, c.serves = []Driver{d}, true
		}
		return err
	})
}

// batch is what reached us of a driver now; with no fixes it is a sign of life.
func (s *Service) batch(driver DriverID, now time.Time, fixes ...Fix) FixBatch {
	return FixBatch{
		DriverID: driver, Person: s.person(driver), SeenAt: now, Latest: now.Add(maxAhead), Fixes: fixes,
		KeepOffDuty: s.opts.KeepOffDuty, MaxAccuracy: max(s.opts.MaxAccuracy, 0), MaxFixAge: s.opts.MaxFixAge,
	}
}

// room is for what passes of a batch of one fix, as most are: used again, for else to make it and to
// collect it is a third of what a fix in memory costs.
type room struct {
	fix  [1]Fix
	kept [1]KeptFix
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// leave gives it back.
func (r *room) leave() {
	*r = room{}
	rooms.Put(r)
}

// screen takes in, into room if there is enough, those of the fixes that can be what a phone measured, and
// sets the outcomes of the others.
func (b *FixBatch) screen(fixes []Fix, outcomes []FixOutcome, room []Fix) {
	if len(fixes) == 0 {
		return
	}
	b.Fixes = slices.Grow(room, len(fixes))
	for i, f := range fixes {
		f.Trusted = false
		outcomes[i] = f.screen(b.SeenAt)
		if outcomes[i] != FixInvalid {
			b.Skew = nearer(b.Skew, Known(f.Time.Sub(b.SeenAt).Seconds()))
		}
		if outcomes[i] == "" {
			f.Time = stamp(f.Time)
			b.Fixes = append(b.Fixes, f)
		}
	}
}

const skewArrivals = 5

// add takes in what the next arrival says.
func (k Skew) add(s Reading) Skew {
	if !s.Known {
		return k
	}
	s.Value = math.Trunc(s.Value)
	k.Least, k.Recent = nearer(k.Least, s), nearer(k.Recent, s)
	if k.Arrivals++; k.Arrivals == skewArrivals {
		return Skew{Least: k.Recent}
	}
	return k
}

// nearer is the one of two readings that is nearer to zero.
func nearer(a, b Reading) Reading {
	if !a.Known || b.Known && math.Abs(b.Value) <= math.Abs(a.Value) {
		return b
	}
	return a
}

// FixBatch is what one call records for one driver.
type FixBatch struct {
	DriverID DriverID
	// which of those who have had that id; of another one there is nothing to record; "": whoever
	// has it
	Person      string
	SeenAt      time.Time // when it reached us
	Fixes       []Fix     // in any order; none is a sign of life
	KeepOffDuty bool      // keep fixes whatever the duty
	// the latest that a fix or a sign of life can be by now: what is kept beyond was noted by a
	// clock that was wrong, and is forgotten; zero: nothing is
	Latest      time.Time
	MaxAccuracy float64 // metres; a fix whose accuracy is worse is coarse; 0: none is
	// how much newer than the newest good fix a coarse one must be to be the live position; 0: that
	// it never is where there is a good one
	MaxFixAge time.Duration
	// seconds by which what a phone sent ran ahead of SeenAt (+) or behind (−), the smallest of the
	// batch; known when a fix was read, even one that is not kept
	Skew   Reading
	Unread int // how much more a phone app sent in a form that we do not know
}

// wrong reports whether a moment lies further ahead than one can that was noted by a clock which is
// right.
func (b *FixBatch) wrong(t time.Time) bool { return !b.Latest.IsZero() && t.After(b.Latest) }

// forget removes the kept fixes that lie further ahead than they can, and brings the driver back to
// the newest one that does not: else his position could not move until their time had come.
func (b *FixBatch) forget(log FixLog, d *Driver, newest time.Time) error {
	if b.wrong(d.DutyAt) {
		d.DutyAt = b.SeenAt
	}
	if !b.wrong(newest) {
		return nil
	}
	if err := log.Forget(b.Latest); err != nil {
		return err
	}
	d.Position.Fix, d.Position.Tail = Fix{}, ""
	list, err := log.Before(b.Latest.Add(time.Millisecond), horizon)
	for _, f := range list {
		if f.Mark.Good() && !f.Purged {
			d.Position.Fix = f.Fix
			break
		}
	}
	if len(list) > 0 {
		d.Position.Tail = TailUnknown
	}
	return err
}

// arrive is where a driver is when nothing but the arrival of the batch counts.
func (b *FixBatch) arrive(pos Position) Position {
	if b.SeenAt.After(pos.SeenAt) || b.wrong(pos.SeenAt) {
		pos.SeenAt = b.SeenAt
	}
	pos.Skew = pos.Skew.add(b.Skew)
	if b.Skew.Known || slices.ContainsFunc(b.Fixes, func(f Fix) bool { return !f.Trusted }) {
		pos.Unread = 0
	}
	pos.Unread += b.Unread
	return pos
}

// Recorded is what became of a batch.
type Recorded struct {
	Outcomes []FixOutcome // one for each fix, in the batch's order
	Driver   Driver       // afterwards
	Moved    bool         // the live position changed
	Before   time.Time    // of the live position that was shown before; zero: there was none
	// the past changed: fixes that were kept before are now in the paths of their time, or out of
	// them
	Rewritten bool
}

// KeptFix is a fix with its mark, as a store keeps it.
type KeptFix struct {
	Fix
	Mark   FixMark
	Purged bool // gone for everybody; only kept until nothing is judged by it any more
}

// FixMark is what the fixes around it make of a kept fix. Where a mark ends what is still open, the
// fixes after it are judged by it alone, whatever was before; that bounds what a late fix can
// change.
type FixMark int

const (
	// good, and nothing is open: the fixes after it are judged by it and the good one before it
	MarkGood      FixMark = 1
	MarkOpen      FixMark = 2 // good, but there was a jump not long ago
	MarkOut       FixMark = 3 // left out: its neighbours contradict it
	MarkCoarse    FixMark = 4 // too coarse to be judged, or to judge others by
	MarkLost      FixMark = 5 // left out among too many jumps: the fixes after it are judged by it alone
	MarkForgotten FixMark = 6 // coarse, after so many coarse ones that what was before is forgotten
)

// Good reports whether the fix is in the paths of its time.
func (m FixMark) Good() bool { return m == MarkGood || m == MarkOpen }

// closed reports whether the fixes after it are judged without those before it.
func (m FixMark) closed() bool { return m == MarkGood || m == MarkLost || m == MarkForgotten }

// FixLog is one driver's kept fixes, as [FixBatch.Record] needs them. A store implements it inside
// its own lock or transaction. What a [Store.Purge] has removed, but what the fixes after it are
// still judged by, is among them.
type FixLog interface {
	// InTrip reports whether t is within the window of one of the trips that the driver, and nobody
	// else of that id, has driven: at or after StartedAt, and the trip is active or t is at or
	// before EndedAt.
	InTrip(t time.Time) (bool, error)

	// Before lists the newest n kept fixes before t, newest first.
	Before(t time.Time, n int) ([]KeptFix, error)

	// From lists the oldest n kept fixes at or after t, oldest first.
	From(t time.Time, n int) ([]KeptFix, error)

	// Put keeps new fixes, in order of time. There is none of their times. The slice is the caller's
	// again afterwards.
	Put(fixes []KeptFix) error

	// Forget removes the kept fixes after t.
	Forget(t time.Time) error

	// Mark changes the marks of kept fixes to those of these. Nothing else of them is looked at but
	// their times.
	Mark(fixes []KeptFix) error
}

// Record applies the rules of fixes to a batch that is well formed and not from the future: it puts
// into log what is to be kept, with its mark, changes the marks that it changes of those before,
// and returns where the driver is now and what became of each fix. d is the driver as of before,
// with the Position.
//
// Fixes that are newer than all before cost no reading of the log; late ones cost the reading of
// those around, once for all that lie together. ErrNotFound when d is another person than the batch
// is of.
func (b FixBatch) Record(log FixLog, d Driver) (Recorded, error) {
	if b.Person != "" && b.Person != d.Person {
		return Recorded{}, ErrNotFound
	}
	shown, duty := d.Position, d.DutyAt
	end, known := d.Position.tail()
	newest := d.Position.newestOf(end, known)
	if err := b.forget(log, &d, newest); err != nil {
		return Recorded{}, err
	}
	if d.Position != shown {
		end, known = d.Position.tail()
		newest = d.Position.newestOf(end, known)
	}
	j := judgement{
		FixBatch: b, log: log, pos: b.arrive(d.Position), end: end, known: known, live: d.Position.Fix.Time,
	}
	var one [1]judged // on the stack, if nothing else keeps a part of it
	fresh, err := j.admit(&d, one[:0])
	if err != nil {
		return Recorded{}, err
	}
	if len(fresh) > 0 {
		done, err := j.append(fresh)
		if err == nil && !done {
			err = j.insert(fresh)
		}
		if err != nil {
			return Recorded{}, err
		}
		j.name(fresh)
	}
	moved, rewritten := j.pos.Fix != shown.Fix, j.rewritten || d.Position.Fix != shown.Fix
	if rewritten || j.late(newest) {
		j.pos.Rewrites++
	}
	d.Position, d.DutyAt = j.pos, duty
	return Recorded{
		Outcomes: j.outcomes, Driver: d, Moved: moved, Before: shown.Fix.Time, Rewritten: rewritten,
	}, nil
}

// livelier is the live one of the newest good fix and a coarse one; either may be none.
func (b FixBatch) livelier(good, coarse Fix) Fix {
	switch {
	case good.Time.IsZero():
		return coarse
	case !coarse.Time.IsZero() && b.MaxFixAge > 0 && coarse.Time.Sub(good.Time) > b.MaxFixAge:
		return coarse
	}
	return good
}

// newest is the time of the newest kept fix.
func (p Position) newest() time.Time { return p.newestOf(p.tail()) }

// newestOf is newest, of a position with this tail.
func (p Position) newestOf(t tail, known bool) time.Time {
	if known && t.Newest != never {
		return time.UnixMilli(t.Newest).UTC()
	}
	return p.Fix.Time
}

// show moves a position to fix, with the tail after the newest kept fix.
func (p Position) show(fix Fix, t tail) Position {
	p.Fix = fix
	switch s := spotOf(fix); t {
	case tailAfter(s, false):
		p.Tail = ""
	case tailAfter(s, true):
		p.Tail = tailFirst
	default:
		p.Tail = t.text()
	}
	return p
}

// Purged is the position once all fixes before t are purged: where the one shown was among them, it
// is gone with them. Log is the driver's; a store empties it when empty tells that there is nothing
// left in it but what was purged.
func (p Position) Purged(log FixLog, t time.Time) (next Position, empty bool, err error) {
	if p.Located() && !p.Fix.Time.Before(t) {
		return p, false, nil
	}
	next, empty = p, true
	next.Fix = Fix{} // there is no good one after it; a coarse one may take its place
	for from := t; ; {
		list, err := log.From(from, readMost)
		if err != nil {
			return p, false, err
		}
		for _, f := range list {
			if empty = empty && f.Purged; f.Mark == MarkCoarse && !f.Purged || f.Mark == MarkForgotten && !f.Purged {
				next.Fix = f.Fix
			}
		}
		if len(list) < readMost {
			break
		}
		from = list[len(list)-1].Time.Add(time.Millisecond)
	}
	if empty {
		next.Tail = ""
		return next, true, nil
	}
	if tail, known := p.tail(); known {
		if tail.GoodAt = never; next.Fix.Time.IsZero() {
			tail.CoarseAt = 0
		}
		next = next.show(next.Fix, tail)
	}
	return next, false, nil
}

// MaxSpeed is the speed in m/s above which a fix is a jump from the good fix before it: 504 km/h,
// faster than any train in service.
const MaxSpeed = 140

const (
	// a longer time without a good fix is a silence: the first one after it must be borne out as
	// well
	silence = 90 * time.Second
	island  = 5 * time.Minute // a stretch between two jumps that lasts longer is no island
	horizon = 512             // how many kept fixes the judgement of one may depend on, at most, on each side
)

// jump reports whether b cannot have been reached from a.
func jump(a, b Fix) bool { return !spotOf(a).reaches(spotOf(b)) }

// spot is a fix as the rule sees it. The zero spot is none.
type spot struct {
	Kind spotKind `json:"k"`
	At   int64    `json:"t"` // UTC ms
	Lng  float64  `json:"x"`
	Lat  float64  `json:"y"`
}

type spotKind int8

const (
	measured spotKind = 1
	told     spotKind = 2 // Fix.Trusted
)

func spotOf(f Fix) spot {
	s := spot{measured, f.Time.UnixMilli(), f.LngLat.Lng, f.LngLat.Lat}
	if f.Trusted {
		s.Kind = told
	}
	return s
}

func (s spot) known() bool { return s.Kind != 0 }

// after is the time from o to s.
func (s spot) after(o spot) time.Duration { return time.Duration(s.At-o.At) * time.Millisecond }

// reaches reports whether both are known and one can have been reached from the other.
func (s spot) reaches(o spot) bool {
	if !s.known() || !o.known() {
		return false
	}
	dt := max(o.after(s).Abs(), time.Second)
	return noFarther(LngLat{s.Lng, s.Lat}, LngLat{o.Lng, o.Lat}, MaxSpeed*dt.Seconds())
}

// noFarther reports whether the [Distance] is at most so many metres. Mostly a way first along the meridian
// and then along the equator is short enough, and no shorter: to know that takes no sine.
func noFarther(a, b LngLat, metres float64) bool {
	const rounding = 1e-9 // far more than what either is off by where places are near each other
	if degrees := math.Abs(b.Lat-a.Lat) + between(a.Lng, b.Lng); degrees < 1 && degrees*degree*(1+rounding) <= metres {
		return true
	}
	return Distance(a, b) <= metres
}

// left is a stretch of fixes that was left by a jump.
type left struct {
	End   spot  `json:"e"`           // its last good fix
	Since int64 `json:"s"`           // when what came after it began, UTC ms
	Out   bool  `json:"o,omitempty"` // it was a single first fix, and is left out
	Prior spot  `json:"p,omitzero"`  // then: the good one before it
}

// back reports whether f is where that stretch was. A single first fix that is left out was one of
// it where it agrees with f; else the stretch ended before.
func (l left) back(f spot) (restored, back bool) {
	if l.End.reaches(f) {
		return l.Out, true
	}
	return false, l.Out && l.Prior.reaches(f)
}

// track is the rule of fixes: which of a driver's kept fixes are good. It is its state after some
// of them, in order of time; add judges the next one. That a fix is good is thus a function of the
// kept fixes alone, and what is said here is its definition; see the package's documentation for
// the idea.
//
// Whatever the state has been, it is one and the same again after a fix with a closed mark. Such a
// fix comes soon, as the state forgets: a jump when the fixes have agreed with each other for
// longer than an island lasts, or horizon of them have; everything that was before when jumps come
// without such a calm for horizon fixes (then a fix is good if it agrees with the very one before
// or after it), and when horizon coarse ones come in a row.
type track struct {
	Good  spot `json:"g,omitzero"` // the newest good fix
	First bool `json:"f,omitzero"` // it is the first ever, or after a silence, or was told: nothing bears it out yet
	Prior spot `json:"p,omitzero"` // then: the good one before it
	// the newest of all that are not coarse, if it is left out: the next one may show it to be good
	Cand spot `json:"c,omitzero"`

	Left   [3]left `json:"l,omitzero"` // stretches that were left by a jump not long ago, the newest first
	Broke  int64   `json:"b,omitzero"` // when a fix was last beyond reach of the very one before it, UTC ms
	Calm   int     `json:"n,omitzero"` // how many fixes came since
	Unrest int     `json:"u,omitzero"` // how many came since the last calm; 0: none, nothing is open
	Coarse int     `json:"k,omitzero"` // how many coarse ones came last
}

// revision is what a fix makes of those before it: times in UTC ms, never for none.
type revision struct {
	good     int64 // this candidate, or first one, is good
	restored int64
	out      int64 // this first one is left out
	from, to int64 // those at or after from and before to are left out, but what was told
}

const never = math.MinInt64

func (t *track) lost() bool { return t.Unrest > horizon }

// addCoarse takes in that the next fix is coarse.
func (t *track) addCoarse() FixMark {
	if t.Coarse >= horizon {
		*t = track{Coarse: horizon + 1}
		return MarkForgotten
	}
	t.Coarse++
	return MarkCoarse
}

// add judges the next fix in time that is not coarse.
func (t *track) add(f spot) (mark FixMark, c revision) {
	c = revision{never, never, never, never, never}
	last := t.Good
	if t.Cand.known() {
		last = t.Cand
	}
	broken := last.known() && !last.reaches(f)
	t.Coarse = 0
	good := true
	switch {
	case !last.known(): // the first of all
		t.accept(spot{}, f)
	case t.lost() && broken && f.Kind != told:
		good = false
	case t.Good.reaches(f): // it agrees with the good one; soon after a candidate, with that as well
		prior := t.Good
		if t.Cand.reaches(f) && f.after(t.Cand) <= silence {
			prior, c.good = t.Cand, t.Cand.At
		}
		t.accept(prior, f)
	case t.Cand.reaches(f): // the candidate and it bear each other out: the way goes on from there
		c.good = t.Cand.At
		t.turn(&c)
		t.accept(t.Cand, f)
	case t.First && t.Prior.reaches(f): // it goes on from before a first one, which was wrong
		prior := t.Good
		if prior.Kind != told {
			prior, c.out = t.Prior, t.Good.At
		}
		t.accept(prior, f)
	case f.Kind == told:
		t.accept(t.Good, f)
	default:
		good = false
	}
	if !good {
		t.Cand = f
	}
	t.settle(f, broken)
	switch {
	case good && t.Unrest == 0:
		return MarkGood, c
	case good:
		return MarkOpen, c
	case t.lost():
		return MarkLost, c
	}
	return MarkOut, c
}

// accept makes f the newest good fix, after prior.
func (t *track) accept(prior, f spot) {
	t.Good, t.First, t.Prior, t.Cand = f, unproven(prior, f), spot{}, spot{}
	if t.First {
		t.Prior = prior
	}
}

// unproven reports whether a good fix holds no more truth than the next one. Prior is the good one
// before it.
func unproven(prior, f spot) bool {
	return !prior.known() || f.after(prior) > silence || !prior.reaches(f)
}

// turn sees what to make of the stretch before the candidate, when a fix agrees with that and not
// with the stretch.
func (t *track) turn(c *revision) {
	if !t.Good.known() {
		return
	}
	for i, l := range t.Left {
		restored, back := l.back(t.Cand)
		if !back || t.Good.At-l.Since > island.Milliseconds() {
			continue
		}
		c.from, c.to = l.Since, t.Cand.At
		if restored {
			c.restored = l.End.At
		}
		rest := [3]left{}
		copy(rest[:], t.Left[i+1:])
		t.Left = rest
		return
	}
	l := left{End: t.Good, Since: t.Cand.At}
	if t.First && t.Good.Kind != told { // a single one that two do not agree with
		c.out, l.Out, l.Prior = t.Good.At, true, t.Prior
	}
	t.leave(l)
}

func (t *track) leave(l left) { t.Left = [3]left{l, t.Left[0], t.Left[1]} }

// settle keeps the account of jumps, and forgets what is over.
func (t *track) settle(f spot, broken bool) {
	switch {
	case broken:
		t.Broke, t.Calm, t.Unrest = f.At, 0, min(t.Unrest+1, horizon+1)
	case t.Unrest > 0:
		t.Calm, t.Unrest = t.Calm+1, min(t.Unrest+1, horizon+1)
		if t.Calm >= horizon || f.At-t.Broke > island.Milliseconds() {
			t.Broke, t.Calm, t.Unrest, t.Left = 0, 0, 0, [3]left{}
		}
	}
	if t.lost() {
		t.Left = [3]left{}
		if t.Cand.known() {
			t.Good, t.First, t.Prior = spot{}, false, spot{}
		}
	}
}

// tail is what a Position's Tail holds.
type tail struct {
	track
	GoodAt int64 `json:"v"` // of the newest good fix, never for none; UTC ms
	Newest int64 `json:"a"` // of the newest kept fix of all

	// of the newest coarse one, if that is newer than the newest good one; 0 for none
	CoarseAt int64 `json:"w,omitempty"`
}

// tail is the state after the driver's newest kept fix; not known when it must be made anew from
// the log.
func (p Position) tail() (t tail, known bool) {
	switch {
	case p.Tail == "" && !p.Located():
		return tail{GoodAt: never, Newest: never}, true
	case p.Tail == "", p.Tail == tailFirst:
		return tailAfter(spotOf(p.Fix), p.Tail == tailFirst), true
	}
	return parseTail(p.Tail)
}

// tailFirst is the Tail of who has a first fix and no other, as many have: it says no more than that.
const tailFirst = "1"

// tailAfter is the state after a good fix behind which there is nothing open but, where it is the
// first, that nothing bears it out yet.
func tailAfter(s spot, first bool) tail {
	return tail{track: track{Good: s, First: first}, GoodAt: s.At, Newest: s.At}
}

// text and parseTail are apart from those who call them, for most positions have no tail: here t
// costs memory.
func (t tail) text() string {
	b, err := json.Marshal(t)
	if err != nil { // numbers and booleans
		panic(err)
	}
	return string(b)
}

func parseTail(text string) (t tail, known bool) {
	known = json.Unmarshal([]byte(text), &t) == nil
	return t, known
}

// judgement is the work of Record.
type judgement struct {
	FixBatch
	log       FixLog
	pos       Position
	end       tail // of pos, before
	known     bool
	outcomes  []FixOutcome
	live      time.Time // of the newest good fix of those before
	rewritten bool
}

// judged is a fix on its way through the rule.
type judged struct {
	KeptFix
	was    FixMark // 0: it is new
	looked FixMark // what a new one looks like on arrival: what others of its batch make of it does not count
	coarse bool
	index  int // of a new one in the batch
}

// kept is a fix of the log.
func kept(f KeptFix) judged {
	return judged{KeptFix: f, was: f.Mark, coarse: f.Mark == MarkCoarse || f.Mark == MarkForgotten}
}

func (f judged) at() int64 { return f.Time.UnixMilli() }

// admit sorts out what is not to be kept, and returns the rest in order of time, in room if there is
// enough.
func (j *judgement) admit(d *Driver, room []judged) ([]judged, error) {
	if len(j.Fixes) == 0 {
		return nil, nil
	}
	fresh := slices.Grow(room, len(j.Fixes))
	j.outcomes = make([]FixOutcome, len(j.Fixes))
	sorted := true
	for i, f := range j.Fixes {
		if !j.KeepOffDuty && !f.Trusted && d.offDuty(f.Time) {
			in, err := j.log.InTrip(f.Time)
			if err != nil {
				return nil, err
			}
			if !in {
				j.outcomes[i] = FixOffDuty
				continue
			}
		}
		sorted = sorted && (len(fresh) == 0 || fresh[len(fresh)-1].Time.Before(f.Time))
		coarse := j.MaxAccuracy > 0 && f.Accuracy.Known && f.Accuracy.Value > j.MaxAccuracy
		fresh = append(fresh, judged{KeptFix: KeptFix{Fix: f}, coarse: coarse, index: i})
	}
	if sorted {
		return fresh, nil
	}
	slices.SortStableFunc(fresh, func(a, b judged) int { return a.Time.Compare(b.Time) })
	n := 1
	for _, f := range fresh[1:] {
		if f.Time.Equal(fresh[n-1].Time) {
			j.outcomes[f.index] = FixDuplicate
			continue
		}
		fresh[n] = f
		n++
	}
	return fresh[:n], nil
}

// step judges the last of rows, which lie in order of time, and changes the marks that it changes
// before. One that is not among rows is handed to elsewhere; beyond tells that there are more of
// them than one, and that the state was not changed.
func (t *track) step(rows []judged, elsewhere func(at int64, mark FixMark)) (beyond bool) {
	last := len(rows) - 1
	f := &rows[last]
	if f.coarse {
		f.Mark = t.addCoarse()
		f.looked = f.Mark
		return false
	}
	next := *t
	var c revision
	f.Mark, c = next.add(spotOf(f.Fix))
	if c.from != never && c.from < rows[0].at() {
		return true
	}
	*t, f.looked = next, f.Mark
	set := func(r *judged, m FixMark) {
		if r.Mark = m; f.was != 0 { // what was there before bears it out, or contradicts it
			r.looked = m
		}
	}
	single := func(at int64, m FixMark) {
		if at == never {
			return
		}
		for i := last - 1; i >= 0 && rows[i].at() >= at; i-- {
			if rows[i].at() == at {
				set(&rows[i], m)
				return
			}
		}
		elsewhere(at, m)
	}
	single(c.good, MarkOpen)
	single(c.restored, MarkOpen)
	single(c.out, MarkOut)
	for i := last - 1; c.from != never && i >= 0 && rows[i].at() >= c.from; i-- {
		if r := &rows[i]; r.at() < c.to && r.Mark.Good() && !r.Trusted {
			set(r, MarkOut)
		}
	}
	return false
}

// append keeps the batch if all of it is newer than what is kept, without reading the log, and
// tells whether it could.
func (j *judgement) append(fresh []judged) (done bool, err error) {
	t := j.end
	if !j.known || t.Newest != never && fresh[0].at() <= t.Newest {
		return false, nil
	}
	var changed []KeptFix
	for i := range fresh {
		beyond := t.step(fresh[:i+1], func(at int64, mark FixMark) {
			changed = append(changed, KeptFix{Fix: Fix{Time: time.UnixMilli(at).UTC()}, Mark: mark})
		})
		if beyond {
			return false, nil
		}
	}
	good, coarse := newestOf(fresh)
	if !good.Time.IsZero() {
		t.CoarseAt = 0
	}
	if !coarse.Time.IsZero() {
		t.CoarseAt = spotOf(coarse).At
	}
	if shown := j.pos.Fix; good.Time.IsZero() && t.GoodAt != never && t.GoodAt == spotOf(shown).At {
		good = shown
	} else if good.Time.IsZero() && coarse.Time.IsZero() {
		coarse = shown
	}
	fix := j.livelier(good, coarse)
	if !good.Time.IsZero() {
		t.GoodAt = spotOf(good).At
	}
	t.Newest = fresh[len(fresh)-1].at()
	j.pos = j.pos.show(fix, t)
	if len(changed) > 0 {
		j.rewritten = true
		if err := j.log.Mark(changed); err != nil {
			return true, err
		}
	}
	return true, j.put(fresh)
}

// put keeps the new ones of rows.
func (j *judgement) put(rows []judged) error {
	fresh := 0
	for i := range rows {
		if rows[i].was == 0 {
			fresh++
		}
	}
	if fresh == 0 {
		return nil
	}
	room := rooms.Get().(*room)
	kept := slices.Grow(room.kept[:0], fresh)
	for i := range rows {
		if rows[i].was == 0 {
			kept = append(kept, rows[i].KeptFix)
		}
	}
	err := j.log.Put(kept)
	room.leave()
	return err
}

// newestOf finds the newest good fix of rows, and the newest coarse one if that is newer.
func newestOf(rows []judged) (good, coarse Fix) {
	for _, r := range slices.Backward(rows) {
		switch {
		case r.Purged:
			return good, coarse
		case r.Mark.Good():
			return r.Fix, coarse
		case r.coarse && coarse.Time.IsZero():
			coarse = r.Fix
		}
	}
	return good, coarse
}

const (
	readFirst = 8 // how many kept fixes are read at first: mostly they suffice
	readMost  = 1024
)

// insert puts the batch among the kept fixes: from one to judge by before the first to where all is
// as it was, and so on from the next new fix.
func (j *judgement) insert(fresh []judged) error {
	for i := range fresh {
		fresh[i].Mark, fresh[i].looked = 0, 0
	}
	for rest := fresh; len(rest) > 0; {
		n, err := j.insertSome(rest)
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// insertSome does it for those of rest that lie together, and tells how many that were.
func (j *judgement) insertSome(rest []judged) (n int, err error) {
	t, rows, prior, err := j.resume(rest[0].Time)
	if err != nil {
		return 0, err
	}
	// What is kept is read in growing parts, merged with the new ones by time, and judged.
	elsewhere := func(at int64, _ FixMark) {
		err = fmt.Errorf("tracking: a kept fix is missing from its log, at %d ms", at)
	}
	from, size, useful, ended := rest[0].Time, readFirst, false, false
	var ahead []KeptFix
	for err == nil {
		if len(ahead) == 0 && !ended {
			if ahead, err = j.log.From(from, size); err != nil {
				return 0, err
			}
			if ended, useful = len(ahead) < size, false; len(ahead) > 0 {
				from = ahead[len(ahead)-1].Time.Add(time.Millisecond)
			}
			size = min(2*size, readMost)
		}
		switch {
		case n < len(rest) && (len(ahead) == 0 || rest[n].Time.Before(ahead[0].Time)):
			rows = append(rows, rest[n])
			n, useful = n+1, true
			t.step(rows, elsewhere)
			continue
		case len(ahead) == 0:
			return n, j.flush(rest[:n], rows, &t)
		case n < len(rest) && rest[n].Time.Equal(ahead[0].Time):
			j.outcomes[rest[n].index] = FixDuplicate
			n, useful = n+1, true
			continue
		}
		// A kept one. Once the rule is after it where it was before, nothing further changes.
		old := kept(ahead[0])
		ahead, rows = ahead[1:], append(rows, old)
		if t.step(rows, elsewhere); err != nil {
			break
		}
		asBefore := t.asAfter(old, prior) && rows[len(rows)-1].Mark == old.was
		if asBefore && n < len(rest) && len(ahead) > 0 {
			asBefore = rest[n].Time.After(ahead[len(ahead)-1].Time)
		} else if asBefore && n < len(rest) {
			asBefore = !useful // the next new fix may lie among those to read next
		}
		if asBefore {
			return n, j.flush(rest[:n], rows, nil)
		}
		prior = old.prior(prior)
	}
	return n, err
}

// prior is the good fix before the one after f, when prior is the one before f.
func (f judged) prior(prior spot) spot {
	switch {
	case f.was.Good():
		return spotOf(f.Fix)
	case f.was == MarkForgotten:
		return spot{}
	}
	return prior
}

// after is the state after a fix with a closed mark; prior is the good one before it.
func after(f judged, prior spot) track {
	s := spotOf(f.Fix)
	switch f.was {
	case MarkGood:
		t := track{}
		t.accept(prior, s)
		return t
	case MarkLost:
		return track{Cand: s, Broke: s.At, Unrest: horizon + 1}
	}
	return track{Coarse: horizon + 1}
}

// asAfter reports whether the state is what it was after f before: prior was the good fix before
// it.
func (t *track) asAfter(f judged, prior spot) bool { return f.was.closed() && *t == after(f, prior) }

// resume finds the kept fix that those from at on are judged by, and returns the state after it, it
// and the kept fixes after it, judged anew, and the newest good one of them as it was.
func (j *judgement) resume(at time.Time) (t track, rows []judged, prior spot, err error) {
	base, begin := -1, false // of rows, which lie newest first as yet
	for size := readFirst; !begin; size = min(2*size, readMost) {
		list, err := j.log.Before(at, size)
		if err != nil {
			return t, nil, prior, err
		}
		for _, k := range list {
			f := kept(k)
			if base < 0 {
				rows = append(rows, f)
				if f.was.closed() {
					base, begin = len(rows)-1, f.was != MarkGood
				}
			} else if f.was.Good() || f.was == MarkForgotten {
				prior, begin = f.prior(prior), true
			}
			if begin {
				break
			}
		}
		if begin = begin || len(list) < size; !begin {
			at = list[len(list)-1].Time
		}
	}
	slices.Reverse(rows)
	first := 0
	if base >= 0 {
		t, first = after(rows[0], prior), 1
		prior = rows[0].prior(prior)
	}
	for i := first; i < len(rows); i++ {
		t.step(rows[:i+1], func(int64, FixMark) {})
		prior = rows[i].prior(prior)
	}
	return t, rows, prior, nil
}

// flush writes what has become of rows, of which rest are the new ones that were not known before.
// With a state they end with the newest kept fix of all.
func (j *judgement) flush(rest, rows []judged, t *track) error {
	var changed []KeptFix
	for _, r := range rows {
		switch {
		case r.was == 0:
			for rest[0].index != r.index {
				rest = rest[1:]
			}
			rest[0].looked = r.looked
		case r.Mark != r.was:
			changed = append(changed, KeptFix{Fix: Fix{Time: r.Time}, Mark: r.Mark})
			j.rewritten = j.rewritten || r.Mark.Good() != r.was.Good()
		}
	}
	if t != nil && len(rows) > 0 {
		if !j.live.Before(rows[0].Time) {
			j.live = time.Time{}
		}
		for _, r := range rows {
			if r.was != 0 && r.Mark.Good() {
				j.live = r.Time
			}
		}
		good, coarse, err := j.newest(rows)
		if err != nil {
			return err
		}
		end := tail{track: *t, GoodAt: never, Newest: rows[len(rows)-1].at()}
		if !good.Time.IsZero() {
			end.GoodAt = spotOf(good).At
		}
		if !coarse.Time.IsZero() {
			end.CoarseAt = spotOf(coarse).At
		}
		j.pos = j.pos.show(j.livelier(good, coarse), end)
	} else if err := j.reshow(rows); err != nil {
		return err
	}
	if len(changed) > 0 {
		if err := j.log.Mark(changed); err != nil {
			return err
		}
	}
	return j.put(rows)
}

// newest finds the newest good fix of rows and of all before them, and the newest coarse one if
// that is newer.
func (j *judgement) newest(rows []judged) (good, coarse Fix, err error) {
	good, coarse = newestOf(rows)
	for at := rows[0].Time; good.Time.IsZero(); {
		list, err := j.log.Before(at, readMost)
		if err != nil {
			return good, coarse, err
		}
		for _, k := range list {
			if f := kept(k); f.Purged {
				return good, coarse, nil
			} else if f.was.Good() {
				return f.Fix, coarse, nil
			} else if f.coarse && coarse.Time.IsZero() {
				coarse = f.Fix
			}
		}
		if len(list) < readMost {
			break
		}
		at = list[len(list)-1].Time
	}
	return good, coarse, nil
}

// reshow moves the position when rows, after which all is as it was, have changed and nothing after
// them is good.
func (j *judgement) reshow(rows []judged) error {
	end, known := j.pos.tail()
	if len(rows) == 0 || !known || rows[len(rows)-1].Mark.Good() || end.GoodAt > rows[len(rows)-1].at() {
		return nil
	}
	shown := j.pos.Fix
	shownCoarse := j.pos.Located() && end.GoodAt != spotOf(shown).At
	good, coarse := newestOf(rows)
	switch {
	case !good.Time.IsZero() && spotOf(good).At >= end.GoodAt:
		end.GoodAt = spotOf(good).At
	case good.Time.IsZero() && end.GoodAt < rows[0].at():
		if j.pos.Located() && !shownCoarse {
			good = shown
		}
	default: // what was the newest good one is none any more: a coarse one that was too near to it may be the live one now
		var err error
		if good, coarse, err = j.newest(rows); err != nil {
			return err
		}
		if end.GoodAt = never; !good.Time.IsZero() {
			end.GoodAt = spotOf(good).At
		}
		if at := time.UnixMilli(end.CoarseAt).UTC(); !shownCoarse && end.CoarseAt != 0 && at.After(coarse.Time) {
			list, err := j.log.From(at, 1)
			if err != nil {
				return err
			}
			if len(list) > 0 && !list[0].Purged {
				coarse = list[0].Fix
			}
		}
	}
	if shownCoarse && shown.Time.After(coarse.Time) {
		coarse = shown
	}
	if end.CoarseAt <= end.GoodAt {
		end.CoarseAt = 0
	}
	if !coarse.Time.IsZero() && (end.CoarseAt == 0 || end.CoarseAt < spotOf(coarse).At) {
		end.CoarseAt = spotOf(coarse).At
	}
	j.pos = j.pos.show(j.livelier(good, coarse), end)
	return nil
}

// name says of each fix how it looked on arrival.
func (j *judgement) name(fresh []judged) {
	for _, f := range fresh {
		switch f.looked {
		case MarkCoarse, MarkForgotten:
			j.outcomes[f.index] = FixCoarse
		case MarkOut, MarkLost:
			j.outcomes[f.index] = FixJump
		}
	}
	for i, f := range j.Fixes {
		if j.outcomes[i] != "" {
			continue
		}
		if j.outcomes[i] = FixLate; f.Time.After(j.live) {
			j.outcomes[i], j.live = FixLive, f.Time
		} else if f.Time.Equal(j.pos.Fix.Time) {
			j.outcomes[i] = FixLive
		}
	}
}

// late reports whether a fix was kept that is not newer than the newest before, and may be in a
// path.
func (j *judgement) late(newest time.Time) bool {
	for i, o := range j.outcomes {
		if o == FixLate || o == FixJump && !j.Fixes[i].Time.After(newest) {
			return true
		}
	}
	return false
}

// MarkSilent notes the available drivers, of all applications, who have not been heard of for
// Options.MaxFixAge: each fires driver.silent once, and is not offered anything until heard of
// again. It reports how many. [Service.Run] calls it.
func (s *Service) MarkSilent(ctx context.Context) (_ int, err error) {
	defer s.observe(&ctx, "MarkSilent").end(&err)
	s.runner.here.Store(true)
	now := s.now()
	before, err := s.silentBefore(ctx, now)
	if err != nil {
		return 0, s.failure(ctx, "MarkSilent", err)
	}
	due, err := s.store.Due(ctx, DueQuery{
		Kind: DueSilence, Before: before, Beyond: now.Add(maxAhead), Claim: s.claimed(now, sweepFor), Limit: 100,
	})
	if err != nil {
		return 0, s.failure(ctx, "MarkSilent", err)
	}
	return s.each(ctx, due, func(ctx context.Context, svc *Service, subject Subject) (bool, error) {
		return svc.markSilent(ctx, DriverID(subject.ID), before)
	})
}

// ears are since when this process can hear drivers.
type ears struct {
	mu    sync.Mutex
	since time.Time // zero: the store has been away
}

// close notes that the store is away: nobody can be heard.
func (e *ears) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.since = time.Time{}
}

// open notes that the store has answered at now, and returns since when drivers can be heard.
func (e *ears) open(now time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.since.IsZero() {
		e.since = now
	}
	return earlier(e.since, now)
}

// hearing is when drivers could be heard by any process, as the store remembers it: that a process
// starts again, or starts beside others, is no outage, and neither does it hold up silences for
// ever.
type hearing struct {
	Last time.Time `json:"last"`           // somebody could hear them
	Deaf []span    `json:"deaf,omitempty"` // nobody could, before that; in order of time
}

type span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

const (
	hearingMemo = "hearing"
	deafFor     = time.Minute // a shorter outage is none
	hearingStep = 15 * time.Second
	deafAtMost  = 50
)

// note is h when a process that has heard since since still hears at now.
func (h hearing) note(since, now time.Time) hearing {
	if ahead(h.Last, now) { // a clock that was wrong
		h = hearing{}
	}
	if since.Sub(h.Last) > deafFor {
		h.Deaf = append(slices.Clone(h.Deaf), span{h.Last, since})
	}
	if n := len(h.Deaf) - deafAtMost; n > 0 {
		h.Deaf = slices.Delete(h.Deaf, 0, n)
	}
	if now.After(h.Last) {
		h.Last = now
	}
	return h
}

// before is the moment since which drivers could be heard for d in all: who was last heard of then,
// or earlier, is silent at now. What lies before is forgotten.
func (h hearing) before(now time.Time, d time.Duration) (time.Time, hearing) {
	at := now.Add(-d - time.Millisecond)
	for i := len(h.Deaf) - 1; i >= 0; i-- {
		switch deaf := h.Deaf[i]; {
		case !deaf.To.After(at):
			h.Deaf = h.Deaf[i+1:]
			return at, h
		case deaf.From.IsZero(): // nothing is known of the time before
			return time.Time{}, h
		default:
			at = at.Add(-deaf.To.Sub(deaf.From))
		}
	}
	return at, h
}

// silentBefore: who was last heard of at this moment or earlier is silent at now. Times in which
// nobody could be heard, because no process ran or the store was away, do not count: phones have
// Options.MaxFixAge from the moment we can hear again.
func (s *Service) silentBefore(ctx context.Context, now time.Time) (time.Time, error) {
	value, err := s.store.Memo(ctx, hearingMemo)
	if err != nil {
		return time.Time{}, err
	}
	var was hearing
	if len(value) > 0 {
		if err := json.Unmarshal(value, &was); err != nil {
			return time.Time{}, err
		}
	}
	h := was.note(s.ears.open(now), now)
	before, h := h.before(now, s.opts.MaxFixAge)
	if h.Last.Sub(was.Last).Abs() < hearingStep && len(h.Deaf) == len(was.Deaf) {
		return before, nil
	}
	if value, err = json.Marshal(h); err != nil {
		return time.Time{}, err
	}
	return before, s.store.SetMemo(ctx, hearingMemo, value)
}

// markSilent notes that a driver who was last heard of at before or earlier is silent, and reports
// whether there was something to note: stores may list others too. Who was heard of in our future,
// by a clock of ours that was wrong, counts as heard of now.
func (s *Service) markSilent(ctx context.Context, id DriverID, before time.Time) (done bool, err error) {
	marked := false
	err = s.change(ctx, verb{name: "MarkSilent", actor: "system"}, func(c *change) error {
		marked = false
		defer func() { done = !c.empty() }()
		d, err := s.driver(ctx, id)
		if err != nil {
			return err
		}
		if ahead(d.Position.SeenAt, c.now) {
			c.heard(id)
		}
		switch {
		case ahead(d.DutyAt, c.now):
			d.DutyAt, d.OffDutyAt = c.now, earlier(d.OffDutyAt, c.now)
			c.cs.Drivers = []Driver{d}
		case d.Available && !d.Silent && !d.Position.SeenAt.After(before) && !d.DutyAt.After(before):
			d.Silent, marked = true, true
			c.cs.Drivers = []Driver{d}
			c.event(d.subject(), d.Person, c.now, DriverSilentData{})
		}
		return nil
	})
	if err != nil || !marked {
		return done, err
	}
	// A fix leaves the version alone: one that came since the driver was read has not seen the
	// silence that it ends.
	if d, err := s.Driver(ctx, id); err == nil && d.Position.SeenAt.After(before) {
		return done, s.endSilenceOf(ctx, id)
	}
	return done, nil
}
