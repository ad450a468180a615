package tracking

import (
	"context"
	"crypto/ecdh"
	"encoding/base64"
	"errors"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// DriverID identifies a driver (operator). The application chooses it, or one is made.
type DriverID string

// Driver is a person who carries out tasks and trips.
type Driver struct {
	ID         DriverID
	Name       string
	Mobile     string
	Email      string
	Available  bool // on duty
	Properties map[string]string

	OpenTasks int       // tasks assigned to or in progress with the driver
	Silent    bool      // available, but not heard of for Options.MaxFixAge
	DutyAt    time.Time // when Available last changed; zero: never
	OffDutyAt time.Time // when the driver last went off duty, at first when made; zero: not known. With Available, that lasted from here to DutyAt

	TokenGeneration int  // raised by joining and by revoking
	AppToken        Hash // of the token the driver's app acts with; zero: none
	IngestToken     Hash // of the token in the URL that the phone app posts to; zero: none

	Push []PushSubscription // where the driver's browsers are told of notices

	CreatedAt time.Time
	UpdatedAt time.Time

	Seq     int64 // order of insertion; given by the store
	Version int64 // raised by each change; given by the store; fixes do not touch it

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
	return d
}

// PushSubscription is how a browser is reached by Web Push, as its PushSubscription object says (W3C Push API).
type PushSubscription struct {
	Endpoint string // https URL of the push service
	P256dh   string // the browser's public key, base64url
	Auth     string // the browser's authentication secret, base64url
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
	MaxOpen   int       // only drivers with fewer open tasks; negative: no limit
	SeenSince time.Time // only drivers whose last sign of life is at or after this
	Within    float64   // metres; 0: no limit
	Exclude   []DriverID
	Limit     int
}

// TokenKind tells a driver's two tokens apart.
type TokenKind int

const (
	AppToken    TokenKind = 1 // acts as the driver
	IngestToken TokenKind = 2 // can only record the driver's fixes
)

// DriverReader reads drivers. The Position of each is as of now.
type DriverReader interface {
	// Driver reads one.
	Driver(ctx context.Context, app AppID, id DriverID) (Driver, error)

	// Drivers lists oldest first, by CreatedAt and then insertion; with f.Near nearest first by [Distance], ties by ID, and only those that have a position,
	// each with its Distance. More tells whether a further page exists. Page.Limit is given, 1 or more.
	Drivers(ctx context.Context, app AppID, f DriverFilter) (list []Driver, more bool, err error)

	// Offers lists drivers that are Available, not Silent, have a position and pass o, nearest first by [Distance], ties by ID, each with its Distance.
	// It costs the number of drivers that it looks at near o.At, not the number of drivers that are not to be offered anything.
	Offers(ctx context.Context, app AppID, o Offer) ([]Driver, error)

	// DriverByToken finds the driver, of any application, whose token's hash this is.
	DriverByToken(ctx context.Context, kind TokenKind, hash Hash) (AppID, Driver, error)
}

// dutySlack is how old a fix may be when its driver comes on duty: the first that a phone sends then is often one it had already.
const dutySlack = 2 * time.Minute

// offDuty reports whether the driver is off duty now, or is known to have been so at t, dutySlack and more before coming on duty.
func (d Driver) offDuty(t time.Time) bool {
	if !d.Available {
		return true
	}
	return !d.OffDutyAt.IsZero() && !t.Before(d.OffDutyAt) && t.Before(d.DutyAt.Add(-dutySlack))
}

func (d Driver) subject() Subject { return Subject{KindDriver, string(d.ID)} }

// driver reads a driver that the caller named.
func (s *Service) driver(ctx context.Context, id DriverID) (Driver, error) {
	if !lookup(string(id)) {
		return Driver{}, notFound("driver_id", "driver")
	}
	d, err := s.store.Driver(ctx, s.app, id)
	return d, orNotFound(err, "driver_id", "driver")
}

// SaveDriver describes a driver to make or change. A nil field stays as it is.
type SaveDriver struct {
	ID         DriverID // 1 to 128 characters, no control character, no comma, no blank at either end
	Name       *string  // up to 200 characters
	Mobile     *string  // up to 32
	Email      *string
	Available  *bool
	Properties map[string]string // replaces all; empty and not nil removes all; up to 50, keys up to 64 characters, values up to 256
	LngLat     *LngLat           // where the driver is now; never a jump, and kept on duty or off
}

func (n SaveDriver) check() error {
	var c check
	c.name("driver_id", string(n.ID))
	c.person(n.Name, n.Mobile, n.Email)
	if len(n.Properties) > 50 {
		c.fail("properties", "has more than 50 entries.")
	}
	for _, k := range slices.Sorted(maps.Keys(n.Properties)) {
		if k == "" {
			c.fail("properties", "has an empty key.")
		}
		c.text("properties", k, 64)
		c.text("properties", n.Properties[k], 256) // a key is the caller's word, and not repeated
	}
	c.point("lnglat", n.LngLat)
	return c.err
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
		if !ok || user == "" || host == "" || strings.ContainsAny(host, "@") || strings.ContainsFunc(*email, unicode.IsSpace) {
			c.fail("email", "must be an address like name@example.com.")
		}
	}
}

// SaveDriver makes a driver, who is not available unless said so, or changes one. Codes: ErrInvalid.
func (s *Service) SaveDriver(ctx context.Context, n SaveDriver) (Driver, error) {
	if err := n.check(); err != nil {
		return Driver{}, err
	}
	var saved Driver
	err := s.op(ctx, "SaveDriver", func(now time.Time) error {
		d, err := s.driver(ctx, n.ID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		fresh := err != nil
		if fresh {
			d = Driver{ID: n.ID, OffDutyAt: now, CreatedAt: now, UpdatedAt: now}
		}
		cs := &Changeset{}
		changed := d.describe(n.Name, n.Mobile, n.Email) || fresh
		if n.Properties != nil && !maps.Equal(n.Properties, d.Properties) {
			d.Properties, changed = maps.Clone(n.Properties), true
		}
		if n.Available != nil && *n.Available != d.Available {
			cs.Events = append(cs.Events, s.setDuty(&d, *n.Available, now, now, s.actor))
			changed = true
		}
		if n.LngLat != nil {
			at := now // what was told last counts, even beside a phone whose clock is ahead
			for _, f := range []Fix{d.Position.Fix, d.Position.Candidate} {
				if !f.Time.Before(at) {
					at = f.Time.Add(time.Millisecond)
				}
			}
			cs.Fixes = []FixBatch{{DriverID: d.ID, SeenAt: now, Fixes: []Fix{{LngLat: *n.LngLat, Time: at, Trusted: true}}}}
		}
		if changed {
			d.UpdatedAt = now
			cs.Drivers = []Driver{d}
		}
		if changed || cs.Fixes != nil {
			if err := s.commit(ctx, cs); err != nil {
				return err
			}
			kick(s.waiting)
		}
		saved, err = s.driver(ctx, n.ID)
		return err
	})
	return saved, err
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

// setDuty puts a driver on or off duty, and returns the event of it.
func (s *Service) setDuty(d *Driver, available bool, at, now time.Time, actor string) Event {
	at = clampAt(at, d.DutyAt, now)
	d.Available, d.Silent, d.DutyAt, d.UpdatedAt = available, false, at, now
	typ := DriverAvailable
	if !available {
		typ, d.OffDutyAt = DriverUnavailable, at
	}
	return s.event(typ, d.subject(), at, now, actor)
}

// SetAvailability puts a driver on or off duty, at the driver's word; tasks and trips stay as they are. It is a sign of life. At is when, as in [Step].
// Codes: ErrNotFound.
func (s *Service) SetAvailability(ctx context.Context, id DriverID, available bool, at time.Time) (Driver, error) {
	var saved Driver
	err := s.op(ctx, "SetAvailability", func(now time.Time) error {
		d, err := s.driver(ctx, id)
		if err != nil {
			return err
		}
		cs := &Changeset{Fixes: []FixBatch{{DriverID: id, SeenAt: now}}}
		if d.Available != available {
			cs.Events = append(cs.Events, s.setDuty(&d, available, at, now, driverActor(id)))
			cs.Drivers = []Driver{d}
		}
		if err := s.commit(ctx, cs); err != nil {
			return err
		}
		kick(s.waiting)
		saved, err = s.driver(ctx, id)
		return err
	})
	return saved, err
}

// Driver reads one. Codes: ErrNotFound.
func (s *Service) Driver(ctx context.Context, id DriverID) (Driver, error) {
	var d Driver
	err := s.op(ctx, "Driver", func(time.Time) (err error) { d, err = s.driver(ctx, id); return err })
	return d, err
}

// Drivers lists oldest first, or with f.Near nearest first, and tells whether there is a further page. Codes: ErrInvalid.
func (s *Service) Drivers(ctx context.Context, f DriverFilter) (list []Driver, more bool, err error) {
	var c check
	c.page(&f.Page, 20)
	c.lnglat("position", f.Near)
	if len(f.Properties) > 10 {
		c.fail("properties", "has more than 10 filters.")
	}
	for _, k := range slices.Sorted(maps.Keys(f.Properties)) {
		if k == "" {
			c.fail("properties", "needs a key.")
		}
		c.text("properties", k, 64)
	}
	if c.err != nil {
		return nil, false, c.err
	}
	for _, v := range f.Properties {
		if strings.IndexByte(v, 0) >= 0 || !utf8.ValidString(v) {
			return nil, false, nil
		}
	}
	err = s.op(ctx, "Drivers", func(time.Time) (err error) { list, more, err = s.store.Drivers(ctx, s.app, f); return err })
	return list, more, err
}

// DeleteDriver erases a driver: record, tokens, invite, requests, notices, position and fixes. Tasks and trips keep the bare id.
// Codes: ErrNotFound; ErrConflict while the driver has open tasks or active trips.
func (s *Service) DeleteDriver(ctx context.Context, id DriverID) error {
	return s.op(ctx, "DeleteDriver", func(now time.Time) error {
		if err := s.endDue(ctx, now); err != nil {
			return err
		}
		d, err := s.driver(ctx, id)
		if err != nil {
			return err
		}
		if d.OpenTasks > 0 {
			return conflict("The driver has open tasks.")
		}
		trips, _, err := s.store.Trips(ctx, s.app, TripFilter{Page: Page{1, 1}, DriverID: id, Status: Active})
		if err != nil {
			return err
		}
		if len(trips) > 0 {
			return conflict("The driver has an active trip.")
		}
		if err := s.store.Commit(ctx, s.app, &Changeset{DeleteDrivers: []Driver{d}}); err != nil {
			return err
		}
		s.forget(id)
		s.hub.publish(s.app, d.subject())
		return nil
	})
}

const (
	// MaxFixes is how many fixes one call may carry.
	MaxFixes = 1000

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
	case c.err != nil, f.Time.IsZero(), bad(f.Accuracy, 0, math.MaxFloat64), bad(f.Speed, 0, math.MaxFloat64), bad(f.Bearing, 0, 360), bad(f.Battery, 0, 1):
		return FixInvalid
	case f.Time.After(now.Add(maxAhead)):
		return FixFuture
	}
	return ""
}

// RecordFixes keeps what a driver's phone measured, up to 1000 fixes in any order, and says of each what became of it. No fixes is a sign of life.
// What is wrong with one fix does not touch the others. Codes: ErrNotFound; ErrTooLarge.
func (s *Service) RecordFixes(ctx context.Context, driver DriverID, fixes []Fix) ([]FixOutcome, error) {
	if len(fixes) > MaxFixes {
		return nil, &Error{Code: ErrTooLarge, Field: "fixes", Message: "fixes has more than 1000 entries; send them in parts."}
	}
	outcomes := make([]FixOutcome, len(fixes))
	err := s.op(ctx, "RecordFixes", func(now time.Time) error {
		if err := s.endDue(ctx, now); err != nil {
			return err
		}
		if !lookup(string(driver)) {
			return notFound("driver_id", "driver")
		}
		good := make([]Fix, 0, len(fixes))
		for i, f := range fixes {
			f.Trusted = false
			if outcomes[i] = f.screen(now); outcomes[i] == "" {
				f.Time = stamp(f.Time)
				good = append(good, f)
			}
		}
		rec, err := s.store.RecordFixes(ctx, s.app, FixBatch{DriverID: driver, SeenAt: now, Fixes: good, KeepOffDuty: s.opts.KeepOffDuty})
		if err != nil {
			return orNotFound(err, "driver_id", "driver")
		}
		next := 0
		for i := range outcomes {
			if outcomes[i] == "" {
				outcomes[i] = rec.Outcomes[next]
				next++
			}
		}
		if slices.Contains(rec.Outcomes, FixLate) || slices.Contains(rec.Outcomes, FixJump) {
			s.forget(driver)
			s.hub.publish(s.app, rec.Driver.subject())
		}
		if rec.Moved {
			s.hub.publish(s.app, rec.Driver.subject())
		}
		if rec.Driver.Silent {
			return s.heard(ctx, driver)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

// heard ends a driver's silence.
func (s *Service) heard(ctx context.Context, id DriverID) error {
	return s.op(ctx, "RecordFixes", func(time.Time) error {
		d, err := s.driver(ctx, id)
		if err != nil || !d.Silent {
			return err
		}
		d.Silent = false
		if err := s.commit(ctx, &Changeset{Drivers: []Driver{d}}); err != nil {
			return err
		}
		kick(s.waiting)
		return nil
	})
}

// MarkSilent notes the available drivers, of all applications, who have not been heard of for Options.MaxFixAge: each fires driver.silent once, and is not
// offered anything until heard of again. It reports how many. [Service.Run] calls it.
func (s *Service) MarkSilent(ctx context.Context) (int, error) {
	due, err := s.store.Due(ctx, DueQuery{Kind: DueSilence, Before: s.silentBefore(s.now()), Limit: 100})
	if err != nil {
		return 0, s.failure(ctx, "MarkSilent", err)
	}
	return s.each(ctx, due, func(svc *Service, subject Subject) (bool, error) {
		return true, svc.markSilent(ctx, DriverID(subject.ID))
	})
}

// silentBefore: who was last heard of at this moment or earlier is silent at now.
func (s *Service) silentBefore(now time.Time) time.Time {
	return now.Add(-s.opts.MaxFixAge - time.Millisecond)
}

func (s *Service) markSilent(ctx context.Context, id DriverID) error {
	return s.op(ctx, "MarkSilent", func(now time.Time) error {
		d, err := s.driver(ctx, id)
		if err != nil {
			return err
		}
		before := s.silentBefore(now)
		if !d.Available || d.Silent || d.Position.SeenAt.After(before) || d.DutyAt.After(before) {
			return nil
		}
		d.Silent = true
		if err := s.commit(ctx, &Changeset{Drivers: []Driver{d}, Events: []Event{s.event(DriverSilent, d.subject(), now, now, "system")}}); err != nil {
			return err
		}
		// A fix leaves the version alone: one that came since the driver was read has not seen the silence that it ends.
		if d, err = s.driver(ctx, id); err == nil && d.Position.SeenAt.After(before) {
			return s.heard(ctx, id)
		}
		return nil
	})
}

// Notices lists what a driver has been told, those with an id greater than after, at most limit (1 to 100; 0 means 100). Lost tells that the place is gone:
// read the driver's tasks and requests instead, and go on from the end of the feed. Codes: ErrNotFound; ErrInvalid.
func (s *Service) Notices(ctx context.Context, driver DriverID, after int64, limit int) (list []Notice, lost bool, err error) {
	if limit < 0 || limit > 100 {
		return nil, false, invalid("limit", "must be from 1 to 100.")
	}
	if after < 0 {
		return nil, false, invalid("after", "must be 0 or more.")
	}
	defaultTo(&limit, 100)
	err = s.op(ctx, "Notices", func(time.Time) error {
		if _, err := s.driver(ctx, driver); err != nil {
			return err
		}
		list, lost, err = s.store.Notices(ctx, s.app, driver, after, limit)
		return err
	})
	return list, lost, err
}

// pushAtMost is how many browsers of one driver are told; the oldest give way.
const pushAtMost = 10

// SubscribePush notes a browser of the driver's that is to be told of notices by Web Push; with the endpoint of one that is known it replaces that one.
// Joining anew and [Service.RevokeTokens] end all. Codes: ErrInvalid, ErrNotFound.
func (s *Service) SubscribePush(ctx context.Context, id DriverID, sub PushSubscription) error {
	var c check
	c.line("endpoint", sub.Endpoint, 2000)
	if u, err := url.Parse(sub.Endpoint); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		c.fail("endpoint", "must be an https address.")
	}
	point, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(sub.P256dh, "="))
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(point)
	}
	if err != nil {
		c.fail("p256dh", "must be an uncompressed point of P-256 in base64url.")
	}
	if secret, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(sub.Auth, "=")); err != nil || len(secret) != 16 {
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

// UnsubscribePush forgets a browser. One that is not known is nothing. Codes: ErrNotFound.
func (s *Service) UnsubscribePush(ctx context.Context, id DriverID, endpoint string) error {
	return s.changePush(ctx, "UnsubscribePush", id, func(list []PushSubscription) []PushSubscription {
		return slices.DeleteFunc(list, func(p PushSubscription) bool { return p.Endpoint == endpoint })
	})
}

func (s *Service) changePush(ctx context.Context, name string, id DriverID, change func([]PushSubscription) []PushSubscription) error {
	return s.op(ctx, name, func(time.Time) error {
		d, err := s.driver(ctx, id)
		if err != nil {
			return err
		}
		list := change(slices.Clone(d.Push))
		if slices.Equal(list, d.Push) {
			return nil
		}
		d.Push = list
		return s.commit(ctx, &Changeset{Drivers: []Driver{d}})
	})
}
