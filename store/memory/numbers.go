package memory

import (
	"math/bits"
	"math/rand/v2"
)

// numbers is a map from codes to numbers, for the few things that every commit looks up dozens of times.
// A look into a map of Go's reads from three places, and to find that a key is new and then put it in
// takes two looks; here it is one, mostly at one place. Like those it grows part by part, so that nobody
// waits for all of it to be moved.
type numbers struct {
	parts []*numbersPart // by the upper bits of what codes are spread by; one may stand there several times
	bits  int            // so many
	n     int
}

// numbersPart has the codes whose spread begins with the same bits.
type numbersPart struct {
	bits  int
	n     int
	slots []numbersSlot // a power of two; a code stands at its slot or behind it, with none free between
}

type numbersSlot struct {
	code   uint64
	number uint32
	taken  bool
}

const (
	fewSlots  = 8
	manySlots = 1024 // with more a part is split
	mostBits  = 20   // with more a part grows instead: those codes cannot be told apart
)

// spreadSeed keeps those who choose texts from choosing where they come to stand.
var spreadSeed = rand.Uint64()

func spread(code uint64) uint64 {
	hi, lo := bits.Mul64(code^spreadSeed, 0x9e3779b97f4a7c15)
	return hi ^ lo
}

func (x *numbers) part(spread uint64) *numbersPart { return x.parts[spread>>(64-x.bits)] }

// find is the slot of a code, or the free one where it belongs.
func (p *numbersPart) find(code, spread uint64) int {
	mask := len(p.slots) - 1
	i := int(spread) & mask
	for p.slots[i].taken && p.slots[i].code != code {
		i = (i + 1) & mask
	}
	return i
}

// touch reads from where a code stands or would, for who is about to look for several: so they come from
// memory all at once.
func (x *numbers) touch(code uint64) uint32 {
	if x.n == 0 {
		return 0
	}
	s := spread(code)
	p := x.part(s)
	return p.slots[int(s)&(len(p.slots)-1)].number
}

// of is a code's number, if it has one.
func (x *numbers) of(code uint64) (n uint32, ok bool) {
	if x.n == 0 {
		return 0, false
	}
	s := spread(code)
	p := x.part(s)
	slot := &p.slots[p.find(code, s)]
	return slot.number, slot.taken
}

// at is where a code's number stands, until the next change; fresh says that it had none, and has 0 now.
func (x *numbers) at(code uint64) (n *uint32, fresh bool) {
	if x.parts == nil {
		x.parts = []*numbersPart{{slots: make([]numbersSlot, fewSlots)}}
	}
	s := spread(code)
	p := x.part(s)
	i := p.find(code, s)
	if p.slots[i].taken {
		return &p.slots[i].number, false
	}
	for p.n >= len(p.slots)/4*3 {
		x.grow(p, s)
		p = x.part(s)
		i = p.find(code, s)
	}
	x.n++
	p.n++
	p.slots[i] = numbersSlot{code: code, taken: true}
	return &p.slots[i].number, true
}

// grow makes room in the part of a spread.
func (x *numbers) grow(p *numbersPart, spread uint64) {
	if len(p.slots) < manySlots || p.bits == mostBits {
		p.double()
		return
	}
	if p.bits == x.bits {
		twice := make([]*numbersPart, 2*len(x.parts))
		for i := range twice {
			twice[i] = x.parts[i/2]
		}
		x.parts, x.bits = twice, x.bits+1
	}
	var halves [2]*numbersPart
	each := len(x.parts) >> p.bits // so many places have this part
	first := int(spread>>(64-x.bits)) / each * each
	for half := range halves {
		halves[half] = &numbersPart{bits: p.bits + 1, slots: make([]numbersSlot, manySlots)}
		for i := range each / 2 {
			x.parts[first+half*each/2+i] = halves[half]
		}
	}
	for _, slot := range p.slots {
		if slot.taken {
			halves[spreadBit(slot.code, p.bits)].put(slot)
		}
	}
}

func spreadBit(code uint64, bit int) int { return int(spread(code)>>(63-bit)) & 1 }

// double makes room for twice as many.
func (p *numbersPart) double() {
	slots := p.slots
	p.slots, p.n = make([]numbersSlot, 2*len(slots)), 0
	for _, slot := range slots {
		if slot.taken {
			p.put(slot)
		}
	}
}

// put puts in a slot, whose code is not there.
func (p *numbersPart) put(slot numbersSlot) {
	p.slots[p.find(slot.code, spread(slot.code))] = slot
	p.n++
}

// drop lets go of a code.
func (x *numbers) drop(code uint64) {
	if x.n == 0 {
		return
	}
	s := spread(code)
	p := x.part(s)
	mask := len(p.slots) - 1
	i := p.find(code, s)
	if !p.slots[i].taken {
		return
	}
	x.n--
	p.n--
	// Those behind it move up, unless that would take them before their own slot.
	for j := (i + 1) & mask; p.slots[j].taken; j = (j + 1) & mask {
		if own := int(spread(p.slots[j].code)) & mask; (j-own)&mask >= (j-i)&mask {
			p.slots[i], i = p.slots[j], j
		}
	}
	p.slots[i] = numbersSlot{}
}
