package memory

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// fixLog holds a driver's kept fixes in order of time. It is split into chunks so that a late fix
// moves few others, and packed so that a fix takes 20 to 28 bytes plus 1 to 9 for each known reading,
// without a pointer for the garbage collector to follow.
type fixLog struct {
	chunks []fixChunk // none is empty
	n      int
}

type fixChunk struct {
	fixes []packedFix
	extra []byte // places, readings and event ids, where the fixes point to
}

const fixesPerChunk = 128

// packedFix is a kept fix: its stamp is its time in UTC ms, shifted left by stampBits to make room
// for its mark and for what is known of it. At extra[offset:] are longitude and latitude, the known
// readings in the order of the fields of tracking.Fix, and the event id. Halves, as an int64 would
// be rounded up to 16 bytes with the offset.
type packedFix struct{ high, low, offset uint32 }

const (
	markBits  = 0b111
	trusted   = 1 << 3
	accuracy  = 1 << 4  // and the next three: speed, bearing, battery
	purged    = 1 << 8  // kept only to judge others by
	wide      = 1 << 9  // longitude and latitude take 8 bytes each, as they are in no ten-millionths
	named     = 1 << 10 // there is an event id, with its length before it
	stampBits = 11
)

func (p packedFix) stamp() int64           { return int64(p.high)<<32 | int64(p.low) }
func (p packedFix) time() int64            { return p.stamp() >> stampBits }
func (p packedFix) mark() tracking.FixMark { return tracking.FixMark(p.low & markBits) }
func (p packedFix) purged() bool           { return p.low&purged != 0 }

// pack appends a fix to the chunk's extra bytes, and returns what points there.
func (c *fixChunk) pack(f tracking.KeptFix) packedFix {
	stamp, offset := f.Time.UnixMilli()<<stampBits|int64(f.Mark)&markBits, uint32(len(c.extra))
	if f.Trusted {
		stamp |= trusted
	}
	if f.Purged {
		stamp |= purged
	}
	lng, exactly := tenMillionths(f.LngLat.Lng)
	lat, too := tenMillionths(f.LngLat.Lat)
	if exactly && too {
		c.extra = binary.LittleEndian.AppendUint32(c.extra, uint32(lng))
		c.extra = binary.LittleEndian.AppendUint32(c.extra, uint32(lat))
	} else {
		stamp |= wide
		c.extra = binary.LittleEndian.AppendUint64(c.extra, math.Float64bits(f.LngLat.Lng))
		c.extra = binary.LittleEndian.AppendUint64(c.extra, math.Float64bits(f.LngLat.Lat))
	}
	for i, r := range [...]tracking.Reading{f.Accuracy, f.Speed, f.Bearing, f.Battery} {
		if r.Known {
			stamp |= accuracy << i
			c.extra = appendReading(c.extra, r.Value)
		}
	}
	if f.EventID != "" {
		stamp |= named
		c.extra = binary.AppendUvarint(c.extra, uint64(len(f.EventID)))
		c.extra = append(c.extra, f.EventID...)
	}
	return packedFix{uint32(stamp >> 32), uint32(stamp), offset}
}

func (c *fixChunk) unpack(p packedFix) tracking.KeptFix {
	f := tracking.KeptFix{Mark: p.mark(), Purged: p.purged()}
	f.Time = time.UnixMilli(p.time()).UTC()
	f.Trusted = p.low&trusted != 0
	extra := c.extra[p.offset:]
	if p.low&wide == 0 {
		f.LngLat.Lng = float64(int32(binary.LittleEndian.Uint32(extra))) / 1e7
		f.LngLat.Lat = float64(int32(binary.LittleEndian.Uint32(extra[4:]))) / 1e7
		extra = extra[8:]
	} else {
		f.LngLat.Lng = math.Float64frombits(binary.LittleEndian.Uint64(extra))
		f.LngLat.Lat = math.Float64frombits(binary.LittleEndian.Uint64(extra[8:]))
		extra = extra[16:]
	}
	for i, r := range [...]*tracking.Reading{&f.Accuracy, &f.Speed, &f.Bearing, &f.Battery} {
		if p.low&(accuracy<<i) != 0 {
			var v float64
			v, extra = readReading(extra)
			*r = tracking.Known(v)
		}
	}
	if p.low&named != 0 {
		n, size := binary.Uvarint(extra)
		f.EventID = string(extra[size:][:n])
	}
	return f
}

// tenMillionths are degrees as a whole number of them; not exactly where that is another number.
func tenMillionths(degrees float64) (n int32, exactly bool) {
	if !(math.Abs(degrees) <= 180) {
		return 0, false
	}
	n = int32(math.Round(degrees * 1e7))
	return n, math.Float64bits(float64(n)/1e7) == math.Float64bits(degrees)
}

// How a reading is kept: as tenths, from inTenths on; else as the float64, or the float32, that
// follows.
const (
	inFloat64 = iota
	inFloat32
	inTenths
)

func appendReading(b []byte, v float64) []byte {
	same := func(w float64) bool { return math.Float64bits(w) == math.Float64bits(v) }
	if v >= 0 && v < 1<<20 {
		if n := uint64(math.Round(v * 10)); same(float64(n) / 10) {
			return binary.AppendUvarint(b, n+inTenths)
		}
	}
	if w := float32(v); same(float64(w)) {
		return binary.LittleEndian.AppendUint32(append(b, inFloat32), math.Float32bits(w))
	}
	return binary.LittleEndian.AppendUint64(append(b, inFloat64), math.Float64bits(v))
}

func readReading(b []byte) (v float64, rest []byte) {
	n, size := binary.Uvarint(b)
	switch b = b[size:]; n {
	case inFloat64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8:]
	case inFloat32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), b[4:]
	}
	return float64(n-inTenths) / 10, b
}

// copyOf returns some of the chunk's fixes as a chunk of their own, with no byte to spare.
func (c *fixChunk) copyOf(fixes []packedFix) fixChunk {
	n := fixChunk{fixes: make([]packedFix, len(fixes)), extra: make([]byte, 0, len(c.extra))}
	for i, p := range fixes {
		n.fixes[i] = n.pack(c.unpack(p))
	}
	if len(n.extra) < cap(n.extra) {
		n.extra = append(make([]byte, 0, len(n.extra)), n.extra...)
	}
	return n
}

// find returns the chunk and the place in it of the first fix at or after t (UTC ms). Past the last
// fix, c is len(l.chunks) and i is 0.
func (l *fixLog) find(t int64) (c, i int) {
	c = sort.Search(len(l.chunks), func(c int) bool { f := l.chunks[c].fixes; return f[len(f)-1].time() >= t })
	if c < len(l.chunks) {
		f := l.chunks[c].fixes
		i = sort.Search(len(f), func(i int) bool { return f[i].time() >= t })
	}
	return c, i
}

// put adds a fix of a time that there is none of.
func (l *fixLog) put(f tracking.KeptFix) {
	t := f.Time.UnixMilli()
	if last := len(l.chunks) - 1; last >= 0 {
		c := &l.chunks[last]
		if n := len(c.fixes); c.fixes[n-1].time() < t { // the usual case: it is the newest
			if n == fixesPerChunk {
				*c = c.copyOf(c.fixes) // the full one will hardly change again
				l.chunks = append(l.chunks, fixChunk{fixes: make([]packedFix, 0, 16)})
				c = &l.chunks[last+1]
			}
			c.fixes = append(c.fixes, c.pack(f))
			l.n++
			return
		}
	} else {
		var c fixChunk
		c.fixes = append(c.fixes, c.pack(f))
		l.chunks, l.n = append(l.chunks, c), 1
		return
	}
	at, i := l.find(t)
	c := &l.chunks[at]
	if n := len(c.fixes); n == fixesPerChunk {
		left, right := c.copyOf(c.fixes[:n/2]), c.copyOf(c.fixes[n/2:])
		l.chunks[at] = left
		l.chunks = slices.Insert(l.chunks, at+1, right)
		if i > n/2 {
			at, i = at+1, i-n/2
		}
		c = &l.chunks[at]
	}
	c.fixes = slices.Insert(c.fixes, i, c.pack(f))
	l.n++
}

// setMark changes the mark of the fix of that time.
func (l *fixLog) setMark(t int64, m tracking.FixMark) {
	if c, i := l.find(t); c < len(l.chunks) {
		if p := &l.chunks[c].fixes[i]; p.time() == t {
			p.low = p.low&^markBits | uint32(m)&markBits
		}
	}
}

// before lists the newest n fixes before t, newest first.
func (l *fixLog) before(t int64, n int) (list []tracking.KeptFix) {
	c, i := l.find(t)
	for len(list) < n {
		for i == 0 {
			if c == 0 {
				return list
			}
			c--
			i = len(l.chunks[c].fixes)
		}
		i--
		list = append(list, l.chunks[c].unpack(l.chunks[c].fixes[i]))
	}
	return list
}

// from lists the oldest n fixes at or after t, oldest first.
func (l *fixLog) from(t int64, n int) (list []tracking.KeptFix) {
	for c, i := l.find(t); c < len(l.chunks); c, i = c+1, 0 {
		for _, p := range l.chunks[c].fixes[i:] {
			if len(list) == n {
				return list
			}
			list = append(list, l.chunks[c].unpack(p))
		}
	}
	return list
}

// oldest is the time (UTC ms) of the oldest fix that a purge can remove.
func (l *fixLog) oldest() (t int64, ok bool) {
	for _, c := range l.chunks {
		for _, p := range c.fixes {
			if !p.purged() {
				return p.time(), true
			}
		}
	}
	return 0, false
}

// purge removes the fixes before t, at most limit, and returns how many. The fixes that remain must
// be judged as before when a late one comes among them; so those from the last on that others are
// judged by are not dropped but marked as purged, and nobody gets to see them.
func (l *fixLog) purge(t int64, limit int) (n int) {
	rank, cut, good := 0, 0, 0 // good: the rank of the good fix before
search:
	for c := range l.chunks {
		for i := range l.chunks[c].fixes {
			p := &l.chunks[c].fixes[i]
			switch p.mark() {
			case tracking.MarkGood: // judged by together with the good one before it
				cut, good = good, rank
			case tracking.MarkOpen:
				good = rank
			case tracking.MarkLost, tracking.MarkForgotten:
				cut, good = rank, rank
			}
			if n >= limit || p.time() >= t {
				break search
			}
			if !p.purged() {
				p.low |= purged
				n++
			}
			rank++
		}
	}
	l.drop(cut)
	return n
}

// forget removes the fixes after t (UTC ms).
func (l *fixLog) forget(t int64) {
	c, i := l.find(t + 1)
	if c == len(l.chunks) {
		return
	}
	for _, chunk := range l.chunks[c:] {
		l.n -= len(chunk.fixes)
	}
	l.n += i
	l.chunks[c].fixes = l.chunks[c].fixes[:i]
	if i > 0 {
		c++
	}
	l.chunks = slices.Delete(l.chunks, c, len(l.chunks))
}

// drop removes the n oldest fixes.
func (l *fixLog) drop(n int) {
	l.n -= n
	rest := n
	whole := 0
	for whole < len(l.chunks) && rest >= len(l.chunks[whole].fixes) {
		rest -= len(l.chunks[whole].fixes)
		whole++
	}
	l.chunks = slices.Delete(l.chunks, 0, whole)
	if rest > 0 {
		c := &l.chunks[0]
		*c = c.copyOf(c.fixes[rest:])
	}
}

// read appends to buf the good fixes from from to to (UTC ms, both included), ascending, or
// descending with newest, until buf is full, and reports whether it may have left some out.
func (l *fixLog) read(buf []tracking.Fix, from, to int64, newest bool) (_ []tracking.Fix, full bool) {
	add := func(c, i int) {
		if p := l.chunks[c].fixes[i]; !p.purged() && p.mark().Good() {
			buf = append(buf, l.chunks[c].unpack(p).Fix)
		}
	}
	if newest {
		c, i := l.find(to + 1)
		for ; len(buf) < cap(buf); i-- {
			for ; i == 0; i = len(l.chunks[c].fixes) {
				if c == 0 {
					return buf, false
				}
				c--
			}
			if l.chunks[c].fixes[i-1].time() < from {
				return buf, false
			}
			add(c, i-1)
		}
		return buf, true
	}
	for c, i := l.find(from); c < len(l.chunks); c, i = c+1, 0 {
		for ; i < len(l.chunks[c].fixes); i++ {
			if l.chunks[c].fixes[i].time() > to {
				return buf, false
			}
			if len(buf) == cap(buf) {
				return buf, true
			}
			add(c, i)
		}
	}
	return buf, false
}
