package memory

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// packedTask is a task as it is kept, in about a tenth of what the fields of a [tracking.Task] take:
// they stand one after the other, and zeros at the end are left out. It never changes, so that a
// reader may unpack it after giving back the lock.
type packedTask string

func pack(t *tracking.Task) packedTask {
	p := packing{b: make([]byte, 0, 256), writes: true}
	p.task(t)
	return packedTask(bytes.TrimRight(p.b, "\x00")) // which no text ends with
}

// task unpacks it. Longer texts are parts of it; ids and words, which rows and events that stay
// hold too, are not, else each of these would keep all of a task that has been replaced.
func (p packedTask) task() (t tracking.Task) {
	u := packing{rest: string(p), owns: true}
	u.task(&t)
	return t
}

// look is the task with all its texts parts of it, for who keeps none of them.
func (p packedTask) look() (t tracking.Task) {
	u := packing{rest: string(p)}
	u.task(&t)
	return t
}

// taskHead is what is asked of a task most often; it takes less time than to unpack all of it.
type taskHead struct {
	status  tracking.TaskStatus
	outcome tracking.Outcome
	id      tracking.TaskID
	version int64
}

func (p packedTask) head() (h taskHead) {
	u := packing{rest: string(p)}
	u.head(&h.status, &h.outcome, &h.id, &h.version)
	return h
}

// packing writes fields, or reads them: each of its methods does both, so that what is written and what
// is read cannot come apart.
type packing struct {
	writes bool
	b      []byte
	rest   string
	owns   bool // names that are read are copies
}

func (p *packing) head(
	status *tracking.TaskStatus, outcome *tracking.Outcome, id *tracking.TaskID, version *int64,
) {
	word(p, status)
	word(p, outcome)
	name(p, id)
	integer(p, version)
}

// task ends with what few tasks have: now and then it looks whether there is anything left to read, as
// that takes less time than to read nothing.
func (p *packing) task(t *tracking.Task) {
	p.head(&t.Status, &t.Outcome, &t.ID, &t.Version)
	integer(p, &t.Type)
	integer(p, &t.Seq)
	p.time(&t.CreatedAt)
	p.time(&t.UpdatedAt)
	name(p, &t.OrderID)
	pointer(p, &t.Drop, (*packing).place)
	pointer(p, &t.Pickup, (*packing).place)
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
	if p.over() {
		return
	}
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

func (p *packing) place(v *tracking.Place) {
	pointer(p, &v.LngLat, (*packing).lnglat)
	text(p, &v.Address)
	pointer(p, &v.Customer, (*packing).contact)
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
func (p *packing) over() bool { return !p.writes && p.rest == "" }

// number writes v and returns it, or returns what it reads.
func (p *packing) number(v uint64) uint64 {
	if p.writes {
		p.b = binary.AppendUvarint(p.b, v)
		return v
	}
	v = 0
	for shift := 0; p.rest != ""; shift += 7 {
		c := p.rest[0]
		p.rest = p.rest[1:]
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
	*v, p.rest = S(p.rest[:n]), p.rest[n:]
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
	string(tracking.OutcomeCancelled),
}

// word is a text that is mostly one of the words.
func word[S ~string](p *packing, v *S) {
	n := slices.Index(words[:], string(*v))
	if n < 0 {
		n = len(words)
	}
	if n = int(p.number(uint64(n))); n == len(words) {
		name(p, v)
	} else {
		*v = S(words[n])
	}
}

func integer[I ~int | ~int64](p *packing, v *I) {
	n := p.number(uint64(*v)<<1 ^ uint64(int64(*v)>>63))
	*v = I(int64(n>>1) ^ -int64(n&1))
}

func (p *packing) bool(v *bool) {
	var n uint64
	if *v {
		n = 1
	}
	*v = p.number(n) == 1
}

func (p *packing) float(v *float64) { *v = math.Float64frombits(p.number(math.Float64bits(*v))) }

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
	p.rest = p.rest[copy(v[:], p.rest):]
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
	v.Lng, v.Lat = float64(east)/1e7, float64(north)/1e7
}

func pointer[T any](p *packing, v **T, each func(*packing, *T)) {
	is := *v != nil
	if p.bool(&is); !is {
		return
	}
	if !p.writes {
		*v = new(T)
	}
	each(p, *v)
}

func slice[T any](p *packing, v *[]T, each func(*packing, *T)) {
	n := p.number(uint64(len(*v)))
	if !p.writes && n > 0 {
		*v = make([]T, n)
	}
	for i := range *v {
		each(p, &(*v)[i])
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
