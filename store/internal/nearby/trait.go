package nearby

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/seed-8aba7b13/tracking"
)

// property is one that a driver has, or a task requires.
type property struct{ key, value string }

// trait is a property, and who of those on duty and heard of have it.
type trait struct {
	property
	holders []*Entry // in no order; those that have a position
	known   int      // drivers who have it, on duty or not
}

// held is a driver's place among the holders of a trait.
type held struct {
	*trait
	at int
}

// setTraits notes the properties of a driver, and reports whether they are others than before.
func (x *Index) setTraits(e *Entry, properties map[string]string) bool {
	r := e.rare
	if len(r.traits) == len(properties) && !slices.ContainsFunc(r.traits, func(h held) bool {
		v, ok := properties[h.key]
		return !ok || v != h.value
	}) {
		return false
	}
	x.unlist(e)
	for _, h := range r.traits {
		if h.known--; h.known == 0 {
			delete(x.traits, h.property)
		}
	}
	r.traits = make([]held, 0, len(properties))
	for k, v := range properties {
		p := property{k, v}
		t := x.traits[p]
		if t == nil {
			p = property{strings.Clone(k), strings.Clone(v)} // which may be parts of a longer text
			if x.traits == nil {
				x.traits = map[property]*trait{}
			}
			t = &trait{property: p}
			x.traits[p] = t
		}
		t.known++
		r.traits = append(r.traits, held{trait: t})
	}
	return true
}

// list puts a driver among the holders of his traits, or takes him from there, as he is now.
func (x *Index) list(e *Entry) {
	if e.rare == nil {
		return
	}
	if !e.located() || e.tree < full {
		x.unlist(e)
		return
	}
	if e.rare.listed {
		return
	}
	for i := range e.rare.traits {
		h := &e.rare.traits[i]
		h.at, h.holders = len(h.holders), append(h.holders, e)
	}
	e.rare.listed = true
}

func (x *Index) unlist(e *Entry) {
	if !e.rare.listed {
		return
	}
	for _, h := range e.rare.traits {
		last := len(h.holders) - 1
		moved := h.holders[last]
		h.holders[h.at], h.holders[last] = moved, nil
		h.holders = h.holders[:last]
		i := slices.IndexFunc(moved.rare.traits, func(o held) bool { return o.trait == h.trait })
		moved.rare.traits[i].at = h.at
	}
	e.rare.listed = false
}

// has reports whether a driver has these properties.
func (e *Entry) has(properties []property) bool {
	for _, p := range properties {
		if e.rare == nil || !slices.ContainsFunc(e.rare.traits, func(h held) bool { return h.property == p }) {
			return false
		}
	}
	return true
}

// fewHolders is how many drivers with a property are simply all looked at.
const fewHolders = 4096

// among lists the holders of the rarest of these properties, if they are few; none is true when
// there is nobody who has all of them.
func (x *Index) among(properties []property) (holders []*Entry, none bool) {
	for i, p := range properties {
		t := x.traits[p]
		if t == nil || len(t.holders) == 0 {
			return nil, true
		}
		if i == 0 || len(t.holders) < len(holders) {
			holders = t.holders
		}
	}
	if len(holders) > fewHolders {
		return nil, false
	}
	return holders, false
}

// propertiesOf lists properties in order.
func propertiesOf(m map[string]string) (list []property) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, property{k, m[k]})
	}
	return list
}

// keyOf is a text that only the same properties have.
func keyOf(list []property) string {
	var b []byte
	for _, p := range list {
		b = binary.AppendUvarint(b, uint64(len(p.key)))
		b = append(b, p.key...)
		b = binary.AppendUvarint(b, uint64(len(p.value)))
		b = append(b, p.value...)
	}
	return string(b)
}

// meets returns a test for having what a task requires, for the driver of a filter.
func meets(f tracking.WaitingFilter) func([]property) bool {
	return func(required []property) bool {
		for _, p := range required {
			if v, ok := f.Properties[p.key]; !ok || v != p.value {
				return false
			}
		}
		return true
	}
}
