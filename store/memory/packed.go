package memory

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// packedTask is a task as it is kept, in about a tenth of what the fields of a [tracking.Task] take:
// they stand one after the other, and zeros at the end are left out. It never changes, so that a
// reader may unpack it after giving back the lock.
type packedTask string

func pack(t *tracking.Task) packedTask {
	p := packings.Get().(*packing)
	p.task(t)
	return packedTask(p.end())
}

// task unpacks it. Longer texts are parts of it; ids and words, which rows and events that stay
// hold too, are not, else each of these would keep all of a task that has been replaced.
func (p packedTask) task() (t tracking.Task) {
	p.read(&t)
	return t
}

func (p packedTask) read(t *tracking.Task) {
	u := packing{kept: string(p), owns: true}
	u.readTask(t)
}

// unpacked are the tasks of a page, in memory that the caller may have for them. Who has it keeps
// none of them for long, and so their texts are parts of them.
func unpacked(page []packedTask, into []tracking.Task) []tracking.Task {
	if len(page) == 0 {
		return nil
	}
	list := into[:cap(into)] // unpacked in place: a task is a kilobyte to copy
	if len(list) < len(page) {
		list = make([]tracking.Task, len(page))
	} else {
		list = list[:len(page)]
		clear(list)
	}
	u := packing{owns: into == nil}
	for i, p := range page {
		u.kept, u.at = string(p), 0
		u.coming = 2 * (len(page) - i)
		u.readTask(&list[i])
	}
	return list
}

// look is the task with all its texts parts of it, for who keeps none of them.
func (p packedTask) look() (t tracking.Task) {
	u := packing{kept: string(p)}
	u.readTask(&t)
	return t
}

// readTask is task for who reads. What few tasks have is read by a copy, which goes to the heap, as
// the one that is all that most need must not.
func (p *packing) readTask(t *tracking.Task) {
	if p.taskMostly(t); !p.over() {
		u := *p
		u.taskRest(t)
	}
}

// taskHead is what is asked of a task most often; it takes less time than to unpack all of it.
type taskHead struct {
	status  tracking.TaskStatus
	outcome tracking.Outcome
	id      tracking.TaskID
	version int64
}

func (p packedTask) head() (h taskHead) {
	u := packing{kept: string(p)}
	u.head(&h.status, &h.outcome, &h.id, &h.version)
	return h
}

// packedDriver is what only commits change of a driver, as a packedTask is a task; the id is kept
// apart. It is empty for no driver.
type packedDriver string

func packDriver(d *tracking.Driver) packedDriver {
	p := packings.Get().(*packing)
	p.driver(d)
	return packedDriver(p.end())
}

// driver unpacks it into d, as [packedTask.task] does.
func (p packedDriver) driver(d *tracking.Driver) {
	u := packing{kept: string(p), owns: true}
	if u.driverMostly(d); !u.over() {
		u.driverRest(d)
	}
}

// look is driver for who keeps none of the texts, without what is long where he is busy.
func (p packedDriver) look(d *tracking.Driver) {
	u := packing{kept: string(p)}
	u.driverMostly(d)
}

// driverHead is what is asked of a driver most often. The person is part of all the rest.
type driverHead struct {
	person            string
	available, silent bool
	version           int64
}

func (p packedDriver) head() (h driverHead) {
	u := packing{kept: string(p)}
	u.driverHead(&h.person, &h.available, &h.silent, &h.version)
	return h
}

// packedEvent is an event but for its Seq and its notices, as a packedTask is a task. It is never
// replaced, so that what is unpacked may be parts of it. Its id comes first.
type packedEvent string

func packEvent(e *tracking.Event) packedEvent {
	p := packings.Get().(*packing)
	p.event(e)
	return packedEvent(p.end())
}

func (p packedEvent) event() (e tracking.Event) {
	u := packing{kept: string(p)}
	u.event(&e)
	return e
}

func (p packedEvent) id() (id string) {
	u := packing{kept: string(p)}
	text(&u, &id)
	return id
}

// packing writes fields, or reads them: each of its methods does both, so that what is written and what
// is read cannot come apart. What it writes it leaves as it is, not even storing the same again: it may
// belong to the caller, for whom others read it.
type packing struct {
	writes bool
	b      []byte
	kept   string
	at     int  // in kept: to cut it would be a store that the garbage collector has to be told of
	owns   bool // names that are read are copies

	places []wholePlace // room for the next that are read …
	coming int          // … of which this many may come, or 0 for not known
}

// wholePlace is a place with all that it points to.
type wholePlace struct {
	place tracking.Place
	at    tracking.LngLat
	whom  tracking.Contact
}

// packings write, into room that is used again.
var packings = sync.Pool{New: func() any { return &packing{b: make([]byte, 0, 256), writes: true} }}

// end gives back p and what it has written, without the zeros at the end: no text ends with one.
func (p *packing) end() string {
	written := string(bytes.TrimRight(p.b, "\x00"))
	p.b = p.b[:0]
	packings.Put(p)
	return written
}

func (p *packing) head(
	status *tracking.TaskStatus, outcome *tracking.Outcome, id *tracking.TaskID, version *int64,
) {
	word(p, status)
	word(p, outcome)
	name(p, id)
	integer(p, version)
}

func (p *packing) task(t *tracking.Task) {
	p.taskMostly(t)
	p.taskRest(t)
}

// taskMostly ends with what few tasks have: now and then it looks whether there is anything left to read,
// as that takes less time than to read nothing.
func (p *packing) taskMostly(t *tracking.Task) {
	p.head(&t.Status, &t.Outcome, &t.ID, &t.Version)
	integer(p, &t.Type)
	integer(p, &t.Seq)
	p.time(&t.CreatedAt)
	p.time(&t.UpdatedAt)
	name(p, &t.OrderID)
	p.place(&t.Drop)
	p.place(&t.Pickup)
	name(p, &t.DriverID)
	p.time(&t.CompletedAt)
	if p.over() {
		return
	}
	p.time(&t.Time)
	integer(p, &t.Link.Generation)
	p.hash(&t.Link.Hash)
	p.time(&t.Link.MadeAt)
	p.time(&t.AssignedAt)
	p.time(&t.StartedAt)
	name(p, &t.Person)
	p.bool(&t.AutoAssigned)
	p.bool(&t.Waiting)
	p.time(&t.WaitsSince)
	p.time(&t.DueAt)
	text(p, &t.Notes)
	if p.over() {
		return
	}
	name(p, &t.Key)
	p.hash(&t.KeySum)
	p.time(&t.Window.From)
	p.time(&t.Window.To)
	p.time(&t.Promise)
	p.time(&t.PickedUpAt)
	p.time(&t.PickupArrivingAt)
	p.time(&t.PickupArrivedAt)
	p.time(&t.ArrivingAt)
	p.time(&t.ArrivedAt)
	p.time(&t.LateFor)
	p.time(&t.AssignAt)
	p.time(&t.StepAt)
}

func (p *packing) taskRest(t *tracking.Task) {
	texts(p, &t.Properties)
	pointer(p, &t.CompletedFrom, (*packing).whereabouts)
	text(p, &t.Reason)
	name(p, &t.ReasonCode)
	texts(p, &t.Requires)
	text(p, &t.CustomerNote)
	text(p, &t.DriverNote)
	slice(p, &t.Excluded, name[tracking.DriverID])
	slice(p, &t.Proof, name[tracking.ProofKind])
	slice(p, &t.Proofs, (*packing).proof)
	text(p, &t.ReceivedBy)
	text(p, &t.PIN)
	integer(p, &t.WrongPINs)
	slice(p, &t.Stuck, (*packing).stuck)
	slice(p, &t.Settled, (*packing).stuck)
	name(p, &t.RetryOf)
	name(p, &t.RetriedBy)
	p.time(&t.GeocodeAt)
	p.time(&t.ErasedAt)
}

func (p *packing) driverHead(person *string, available, silent *bool, version *int64) {
	text(p, person)
	p.bool(available)
	p.bool(silent)
	integer(p, version)
}

func (p *packing) driver(d *tracking.Driver) {
	p.driverMostly(d)
	p.driverRest(d)
}

func (p *packing) driverMostly(d *tracking.Driver) {
	p.driverHead(&d.Person, &d.Available, &d.Silent, &d.Version)
	p.time(&d.UpdatedAt)
	if p.over() {
		return
	}
	text(p, &d.Name)
	text(p, &d.Mobile)
	text(p, &d.Email)
	p.time(&d.DutyAt)
	p.time(&d.OffDutyAt)
	p.time(&d.LegAt)
	integer(p, &d.TokenGeneration)
	p.hash(&d.AppToken)
	p.hash(&d.IngestToken)
	if p.over() {
		return
	}
	texts(p, &d.Properties)
}

// driverRest is without functions that are given others, by which p would go to the heap.
func (p *packing) driverRest(d *tracking.Driver) {
	room(p, &d.Route)
	for i := range d.Route {
		p.stop(&d.Route[i])
	}
	p.optional(&d.MaxOpenTasks)
	room(p, &d.Push)
	for i := range d.Push {
		p.push(&d.Push[i])
	}
}

func (p *packing) event(e *tracking.Event) {
	text(p, &e.ID)
	text(p, &e.Subject.Kind)
	text(p, &e.Subject.ID)
	text(p, &e.Type)
	p.time(&e.Time)
	p.time(&e.RecordedAt)
	text(p, &e.Actor)
	text(p, &e.Person)
	texts(p, &e.Data)
}

// stop is part of the driver: a copy of each id would be most of what a long route takes.
func (p *packing) stop(v *tracking.Stop) {
	text(p, &v.TaskID)
	word(p, &v.Leg)
}

func (p *packing) push(v *tracking.PushSubscription) {
	text(p, &v.Endpoint)
	text(p, &v.P256dh)
	text(p, &v.Auth)
}

// place reads it into one piece of memory with those beside it: lists are full of places. Whoever keeps
// one keeps no more than a few.
func (p *packing) place(v **tracking.Place) {
	is := *v != nil
	if p.bool(&is); !is {
		return
	}
	if !p.writes {
		const few = 8
		if len(p.places) == 0 {
			p.places = make([]wholePlace, min(max(p.coming, 1), few))
		}
		all := &p.places[0]
		p.places = p.places[1:]
		*v, all.place.LngLat, all.place.Customer = &all.place, &all.at, &all.whom
	}
	if located := (*v).LngLat != nil; p.has(&located) {
		p.lnglat((*v).LngLat)
	} else if !p.writes {
		(*v).LngLat = nil
	}
	text(p, &(*v).Address)
	if known := (*v).Customer != nil; p.has(&known) {
		p.contact((*v).Customer)
	} else if !p.writes {
		(*v).Customer = nil
	}
}

func (p *packing) has(v *bool) bool {
	p.bool(v)
	return *v
}

func (p *packing) contact(v *tracking.Contact) {
	text(p, &v.Name)
	text(p, &v.Mobile)
}

func (p *packing) whereabouts(v *tracking.Whereabouts) {
	p.lnglat(&v.LngLat)
	name(p, &v.Source)
	p.float(&v.OffBy)
}

func (p *packing) proof(v *tracking.Proof) {
	name(p, &v.ID)
	name(p, &v.Kind)
	p.time(&v.At)
	name(p, &v.Type)
	integer(p, &v.Size)
	p.hash(&v.Sum)
}

func (p *packing) stuck(v *tracking.StuckStep) {
	name(p, &v.DriverID)
	name(p, &v.Step)
	p.time(&v.At)
	name(p, &v.Why)
}

// over reports whether all that is still to be read is zero.
func (p *packing) over() bool { return !p.writes && p.at == len(p.kept) }

// number writes v and returns it, or returns what it reads.
func (p *packing) number(v uint64) uint64 {
	if p.writes {
		p.b = binary.AppendUvarint(p.b, v)
		return v
	}
	v = 0
	for shift := 0; p.at < len(p.kept); shift += 7 {
		c := p.kept[p.at]
		p.at++
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			break
		}
	}
	return v
}

func text[S ~string](p *packing, v *S) {
	n := p.number(uint64(len(*v)))
	if p.writes {
		p.b = append(p.b, *v...)
		return
	}
	*v = S(p.kept[p.at:][:n])
	p.at += int(n)
}

// name is a text that others may keep.
func name[S ~string](p *packing, v *S) {
	if text(p, v); p.owns {
		*v = S(strings.Clone(string(*v)))
	}
}

// words take one byte each.
var words = [...]string{
	"", string(tracking.StatusCreated), string(tracking.StatusAssigned), string(tracking.StatusInProgress),
	string(tracking.StatusCompleted), string(tracking.OutcomeSucceeded), string(tracking.OutcomeFailed),
	string(tracking.OutcomeCancelled), string(tracking.LegPickup), string(tracking.LegDrop),
}

// word is a text that is mostly one of the words.
func word[S ~string](p *packing, v *S) {
	n := slices.Index(words[:], string(*v))
	if n < 0 {
		n = len(words)
	}
	if n = int(p.number(uint64(n))); n == len(words) {
		name(p, v)
	} else if !p.writes {
		*v = S(words[n])
	}
}

func integer[I ~int | ~int64](p *packing, v *I) {
	n := p.number(uint64(*v)<<1 ^ uint64(int64(*v)>>63))
	if !p.writes {
		*v = I(int64(n>>1) ^ -int64(n&1))
	}
}

func (p *packing) bool(v *bool) {
	var n uint64
	if *v {
		n = 1
	}
	if n = p.number(n); !p.writes {
		*v = n == 1
	}
}

func (p *packing) float(v *float64) {
	if n := p.number(math.Float64bits(*v)); !p.writes {
		*v = math.Float64frombits(n)
	}
}

// time keeps a moment in whole milliseconds, UTC; with 0 for none, as so few have one.
func (p *packing) time(v *time.Time) {
	if p.writes && v.IsZero() {
		p.b = append(p.b, 0)
		return
	}
	var ms int64
	if p.writes {
		if ms = v.UnixMilli(); ms >= 0 {
			ms++ // as 0 is none
		}
	}
	if integer(p, &ms); p.writes || ms == 0 {
		return
	}
	if ms > 0 {
		ms--
	}
	*v = time.UnixMilli(ms).UTC()
}

// hash keeps as many bytes as there are; those that were left out at the end are zeros.
func (p *packing) hash(v *tracking.Hash) {
	is := !v.IsZero()
	if p.bool(&is); !is {
		return
	}
	if p.writes {
		p.b = append(p.b, v[:]...)
		return
	}
	p.at += copy(v[:], p.kept[p.at:])
}

// lnglat keeps ten-millionths of degrees where a place is in such.
func (p *packing) lnglat(v *tracking.LngLat) {
	lng, exactly := tenMillionths(v.Lng)
	lat, too := tenMillionths(v.Lat)
	wide := !exactly || !too
	if p.bool(&wide); wide {
		p.float(&v.Lng)
		p.float(&v.Lat)
		return
	}
	east, north := int64(lng), int64(lat)
	integer(p, &east)
	integer(p, &north)
	if !p.writes {
		v.Lng, v.Lat = float64(east)/1e7, float64(north)/1e7
	}
}

// pointer reads into what v points to, if it does.
func pointer[T any](p *packing, v **T, each func(*packing, *T)) {
	is := *v != nil
	if p.bool(&is); !is {
		if !p.writes {
			*v = nil
		}
		return
	}
	if *v == nil {
		*v = new(T)
	}
	each(p, *v)
}

// optional is pointer to an integer.
func (p *packing) optional(v **int) {
	if is := *v != nil; p.has(&is) {
		if *v == nil {
			*v = new(int)
		}
		integer(p, *v)
	}
}

func slice[T any](p *packing, v *[]T, each func(*packing, *T)) {
	room(p, v)
	for i := range *v {
		each(p, &(*v)[i])
	}
}

// room is how many there are, with room for those that are read.
func room[T any](p *packing, v *[]T) {
	if n := p.number(uint64(len(*v))); !p.writes && n > 0 {
		*v = make([]T, n)
	}
}

func texts(p *packing, v *map[string]string) {
	n := p.number(uint64(len(*v)))
	if p.writes {
		for key, value := range *v {
			name(p, &key)
			name(p, &value)
		}
		return
	}
	if n > 0 {
		*v = make(map[string]string, n)
	}
	for range n {
		var key, value string
		name(p, &key)
		name(p, &value)
		(*v)[key] = value
	}
}

// packedPosition is a position, but for what the index's entry has of it, in plain numbers that a fix
// changes in place.
type packedPosition struct {
	at            int64     // UTC ms of the fix
	readings      [4]uint32 // the fix's, in the order of the fields of tracking.Fix
	least, recent float32   // of the skew
	rewrites      uint32
	unread        uint8
	arrivals      uint8
	has           uint16
}

// What a packedPosition has.
const (
	hasFix = 1 << iota
	hasTrust
	hasTail // the one of tailAfterOne
	hasLeast
	hasRecent
	hasReading // and the next three
	_
	_
	_
	hasThousandths // and the next three: the reading is so many thousandths, and not a float32
	_
	_
	_
	hasOdd   // the readings are in the log's rest, as one is neither
	hasWhole // the position is there, as these numbers can't hold it
)

// tailAfterOne is the Tail after a first fix: as most have none, and few another one.
const tailAfterOne = "1"

// put makes it v, whose place and last sign of life are in the index. The log is the same row's.
func (p *packedPosition) put(v *tracking.Position, l *fixLog) {
	n := packedPosition{
		least: float32(v.Skew.Least.Value), recent: float32(v.Skew.Recent.Value),
		rewrites: uint32(v.Rewrites), unread: uint8(v.Unread), arrivals: uint8(v.Skew.Arrivals),
	}
	note := func(is bool, bit uint16) {
		if is {
			n.has |= bit
		}
	}
	f := &v.Fix
	if v.Located() {
		n.at = f.Time.UnixMilli()
	}
	note(v.Located(), hasFix)
	note(f.Trusted, hasTrust)
	note(v.Tail == tailAfterOne, hasTail)
	note(v.Skew.Least.Known, hasLeast)
	note(v.Skew.Recent.Known, hasRecent)
	for i, r := range [...]*tracking.Reading{&f.Accuracy, &f.Speed, &f.Bearing, &f.Battery} {
		note(r.Known, hasReading<<i)
		if w := float32(r.Value); math.Float64bits(float64(w)) == math.Float64bits(r.Value) {
			n.readings[i] = math.Float32bits(w)
			continue
		}
		w := math.Round(r.Value * 1000)
		if w >= 0 && w <= math.MaxUint32 && w/1000 == r.Value {
			n.readings[i], n.has = uint32(w), n.has|hasThousandths<<i
		} else {
			n.has |= hasOdd
		}
	}
	if n.has&hasOdd != 0 {
		l.more().readings = [...]float64{f.Accuracy.Value, f.Speed.Value, f.Bearing.Value, f.Battery.Value}
	}
	var is tracking.Position
	if n.position(&is, l, f.LngLat, time.UnixMilli(v.SeenAt.UnixMilli()).UTC()); is != *v {
		n.has |= hasWhole
		r := l.more()
		if r.whole == nil {
			r.whole = new(tracking.Position)
		}
		*r.whole = *v
	} else if l.rest != nil {
		l.rest.whole = nil
	}
	*p = n
}

// position sets v, which is zero, to the position with what the index has of it.
func (p *packedPosition) position(v *tracking.Position, l *fixLog, at tracking.LngLat, seen time.Time) {
	if p.has&hasWhole != 0 {
		*v = *l.rest.whole
		return
	}
	v.SeenAt, v.Unread, v.Rewrites = seen, int(p.unread), int(p.rewrites)
	v.Skew = tracking.Skew{
		Least:    tracking.Reading{Value: float64(p.least), Known: p.has&hasLeast != 0},
		Recent:   tracking.Reading{Value: float64(p.recent), Known: p.has&hasRecent != 0},
		Arrivals: int(p.arrivals),
	}
	if p.has&hasTail != 0 {
		v.Tail = tailAfterOne
	}
	f := &v.Fix
	if f.LngLat = at; p.has&hasFix != 0 {
		f.Time = time.UnixMilli(p.at).UTC()
	}
	f.Trusted = p.has&hasTrust != 0
	if p.readings == [4]uint32{} && p.has&(hasOdd|hasReading*0b1111) == 0 { // as where somebody told the place
		return
	}
	for i, r := range [...]*tracking.Reading{&f.Accuracy, &f.Speed, &f.Bearing, &f.Battery} {
		r.Known = p.has&(hasReading<<i) != 0
		switch n := p.readings[i]; {
		case p.has&hasOdd != 0:
			r.Value = l.rest.readings[i]
		case p.has&(hasThousandths<<i) != 0:
			r.Value = float64(n) / 1000
		default:
			r.Value = float64(math.Float32frombits(n))
		}
	}
}
