package sqlite

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/seed-8aba7b13/tracking"
)

// Packed fixes stand one after another in order of time, each as how it differs from the one before;
// the first from one of zeros. A fix is
//
//	uvarint  its shape, XOR that of the one before
//	varint   the milliseconds since the one before, less those that were between that and its own
//	varint   longitude and latitude, and then the readings that the shape says are known: each in its
//	         unit, less the last one there was; where the shape says so, a second varint follows: how far
//	         the number is, in steps of its own precision, from the one that has those units
//	         exactly
//	uvarint  the length of the event id, and it, where the shape says that there is one
//
// So every number comes back bit by bit, and those with few decimals, as phones send them, are short.
type packState struct {
	begun    bool // it has come to a fix
	shape    uint32
	at, step int64
	units    [packedNumbers]int64
}

// The shape of a fix: its mark in the lowest bits, and
const (
	packedMark    = 0b111
	packedInexact = 1 << 3 // the number 0, longitude, does not have its units exactly
	packedTrusted = 1 << 5
	packedPurged  = 1 << 6
	packedKnown   = 1 << 7 // the reading of number 2, accuracy
	packedEvent   = 1 << 11
	packedMore    = 1 << 12 // as packedInexact, from number 2 on

	packedNumbers = 6 // longitude, latitude, accuracy, speed, bearing, battery
	packedPlaces  = 2 // of these, longitude and latitude
	packedLimit   = 1 << 16
)

var errPacked = errors.New("packed fixes do not unpack")

// unit is how many units of a number make 1.
func unit(number int) float64 {
	if number < packedPlaces {
		return 1e7 // a centimetre
	}
	return 1e3
}

// inexact is the bit of a number in the shape.
func inexact(number int) uint32 {
	if number < packedPlaces {
		return packedInexact << number
	}
	return packedMore << (number - packedPlaces)
}

// split is a number as units, and the steps from the number that has these exactly.
func split(v, unit float64) (units, steps int64) {
	if u := math.Round(v * unit); math.Abs(u) < 1<<53 { // else, or for what is no number, 0 does as well
		units = int64(u)
	}
	return units, int64(math.Float64bits(v) - math.Float64bits(float64(units)/unit))
}

// join is the number that split was given.
func join(units, steps int64, unit float64) float64 {
	return math.Float64frombits(math.Float64bits(float64(units)/unit) + uint64(steps))
}

// numbers are what packedNumbers counts.
func numbers(f *tracking.Fix) [packedNumbers]*float64 {
	return [...]*float64{
		&f.LngLat.Lng, &f.LngLat.Lat, &f.Accuracy.Value, &f.Speed.Value, &f.Bearing.Value, &f.Battery.Value,
	}
}

func readings(f *tracking.Fix) [packedNumbers - packedPlaces]*tracking.Reading {
	return [...]*tracking.Reading{&f.Accuracy, &f.Speed, &f.Bearing, &f.Battery}
}

// append packs the next fix.
func (s *packState) append(b []byte, f tracking.KeptFix) []byte {
	shape := uint32(f.Mark) & packedMark
	if f.Trusted {
		shape |= packedTrusted
	}
	if f.Purged {
		shape |= packedPurged
	}
	if f.EventID != "" {
		shape |= packedEvent
	}
	for i, r := range readings(&f.Fix) {
		if r.Known {
			shape |= packedKnown << i
		}
	}
	var steps, differ [packedNumbers]int64
	for i, v := range numbers(&f.Fix) {
		if !has(shape, i) {
			continue
		}
		var units int64
		if units, steps[i] = split(*v, unit(i)); steps[i] != 0 {
			shape |= inexact(i)
		}
		differ[i], s.units[i] = units-s.units[i], units
	}
	at := f.Time.UnixMilli()
	b = binary.AppendUvarint(b, uint64(shape^s.shape))
	b = binary.AppendVarint(b, at-s.at-s.step)
	for i := range differ {
		if has(shape, i) {
			b = binary.AppendVarint(b, differ[i])
		}
		if shape&inexact(i) != 0 {
			b = binary.AppendVarint(b, steps[i])
		}
	}
	if f.EventID != "" {
		b = binary.AppendUvarint(b, uint64(len(f.EventID)))
		b = append(b, f.EventID...)
	}
	s.shape, s.at, s.step = shape, at, at-s.at
	return b
}

// has reports whether a fix of this shape has the number.
func has(shape uint32, number int) bool {
	return number < packedPlaces || shape&(packedKnown<<(number-packedPlaces)) != 0
}

// next moves on to the fix that b begins with, and returns what follows it, how far its numbers are
// from their units, and its event id.
func (s *packState) next(b []byte) (rest []byte, steps [packedNumbers]int64, event []byte, err error) {
	bad := false
	number := func() int64 {
		v, n := binary.Varint(b)
		if n <= 0 {
			bad, n = true, 0
		}
		b = b[n:]
		return v
	}
	differs, n := binary.Uvarint(b)
	if n <= 0 || differs >= packedLimit {
		return nil, steps, nil, errPacked
	}
	b = b[n:]
	s.shape ^= uint32(differs)
	before := s.at
	s.step += number()
	if s.at += s.step; s.begun && s.at <= before {
		bad = true
	}
	s.begun = true
	if mark := tracking.FixMark(s.shape & packedMark); mark == 0 || mark > tracking.MarkForgotten {
		bad = true
	}
	for i := range s.units {
		if has(s.shape, i) {
			s.units[i] += number()
			if s.shape&inexact(i) != 0 {
				steps[i] = number()
			}
		}
	}
	if s.shape&packedEvent != 0 {
		length, n := binary.Uvarint(b)
		if n <= 0 || length > uint64(len(b)-n) {
			return nil, steps, nil, errPacked
		}
		event, b = b[n:n+int(length)], b[n+int(length):]
	}
	if bad {
		return nil, steps, nil, errPacked
	}
	return b, steps, event, nil
}

// fix is the one that s has moved on to.
func (s *packState) fix(steps [packedNumbers]int64, event []byte) tracking.KeptFix {
	f := tracking.KeptFix{Mark: tracking.FixMark(s.shape & packedMark), Purged: s.shape&packedPurged != 0}
	f.Time, f.EventID, f.Trusted = fromMillis(s.at), string(event), s.shape&packedTrusted != 0
	for i, r := range readings(&f.Fix) {
		r.Known = s.shape&(packedKnown<<i) != 0
	}
	for i, v := range numbers(&f.Fix) {
		if has(s.shape, i) {
			*v = join(s.units[i], steps[i], unit(i))
		}
	}
	return f
}

// unpack lists packed fixes.
func unpack(b []byte) (list []tracking.KeptFix, err error) {
	list = make([]tracking.KeptFix, 0, len(b)/12+1)
	err = eachPacked(b, func(f tracking.KeptFix) bool {
		list = append(list, f)
		return true
	})
	return list, err
}

// eachPacked calls do with packed fixes until it returns false.
func eachPacked(b []byte, do func(tracking.KeptFix) bool) error {
	var s packState
	for len(b) > 0 {
		rest, steps, event, err := s.next(b)
		if err != nil {
			return err
		}
		if !do(s.fix(steps, event)) {
			return nil
		}
		b = rest
	}
	return nil
}

// firstPacked is when the first of packed fixes was, in UTC ms.
func firstPacked(b []byte) (int64, error) {
	var s packState
	_, _, _, err := s.next(b)
	return s.at, err
}

// packer packs fixes behind those that it has.
type packer struct {
	packState
	packed []byte
}

// packBehind is a packer that has these, with room for n more. It does not change them.
func packBehind(b []byte, n int) (p packer, err error) {
	for left := b; len(left) > 0; {
		if left, _, _, err = p.next(left); err != nil {
			return p, err
		}
	}
	p.packed = append(make([]byte, 0, len(b)+16*n+32), b...)
	return p, nil
}

// has reports whether what it has packed is b itself.
func (p *packer) has(b []byte) bool {
	return len(b) > 0 && len(b) == len(p.packed) && &b[0] == &p.packed[0]
}

func (p *packer) add(f tracking.KeptFix) { p.packed = p.append(p.packed, f) }

// packUpTo packs fixes that lie in order of time as long as there is room in limit bytes, but one at
// least, and returns those that have found none.
func packUpTo(list []tracking.KeptFix, limit int) (packed []byte, rest []tracking.KeptFix) {
	var p packer
	for i, f := range list {
		full := p.packed
		if p.add(f); i > 0 && len(p.packed) > limit {
			return full, list[i:]
		}
	}
	return p.packed, nil
}

// pack packs fixes that lie in order of time.
func pack(list []tracking.KeptFix) []byte {
	b, _ := packUpTo(list, math.MaxInt)
	return b
}
