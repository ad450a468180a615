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
	newest fixChunk // the last of the chunks; empty: there is no fix
	rest   *fixRest // nil for drivers with few fixes, all of them plain
}

// fixRest is what the row of a driver has no room for.
type fixRest struct {
	older    []fixChunk         // before the newest, in order of time; none is empty
	whole    *tracking.Position // see packedPosition
	readings [4]float64         // these, too
}

// more returns the rest for writing.
func (l *fixLog) more() *fixRest {
	if l.rest == nil {
		l.rest = new(fixRest)
	}
	return l.rest
}

// older are the chunks before the newest.
func (l *fixLog) older() []fixChunk {
	if l.rest == nil {
		return nil
	}
	return l.rest.older
}

// chunks is how many there are, and chunk the one with a number.
func (l *fixLog) chunks() int {
	if len(l.newest) == 0 {
		return 0
	}
	return len(l.older()) + 1
}

func (l *fixLog) chunk(c int) *fixChunk {
	if older := l.older(); c < len(older) {
		return &older[c]
	}
	return &l.newest
}

// len is the number of fixes.
func (l *fixLog) len() (n int) {
	for c := range l.chunks() {
		n += l.chunk(c).len()
	}
	return n
}

// last is the time (UTC ms) of the newest fix.
func (l *fixLog) last() (t int64, ok bool) {
	if n := l.newest.len(); n > 0 {
		return l.newest.at(n - 1).time(), true
	}
	return 0, false
}

// fixChunk is fixes in order of time in one piece of memory: how many there are; the head of each; and
// their places, readings and event ids, where the heads point to.
type fixChunk []byte

// fixesPerChunk are as many as fill 2688 bytes, a size of which the heap has pieces, when each has one
// reading in tenths.
const fixesPerChunk = 127

// packedFix is the head of a fix: its stamp is its time in UTC ms, shifted left by stampBits to make
// room for its mark and for what is known of it. From the offset on, counted from the end of the heads,
// are longitude and latitude, the known readings in the order of the fields of tracking.Fix, and the
// event id.
type packedFix struct {
	stamp  int64
	offset uint32
}

const headSize = 12 // bytes

const (
	markBits  = 0b111
	trusted   = 1 << 3
	accuracy  = 1 << 4  // and the next three: speed, bearing, battery
	purged    = 1 << 8  // kept only to judge others by
	wide      = 1 << 9  // longitude and latitude take 8 bytes each, as they are in no ten-millionths
	named     = 1 << 10 // there is an event id, with its length before it
	stampBits = 11
)

func (p packedFix) time() int64            { return p.stamp >> stampBits }
func (p packedFix) mark() tracking.FixMark { return tracking.FixMark(p.stamp & markBits) }
func (p packedFix) purged() bool           { return p.stamp&purged != 0 }

// len is the number of fixes.
func (c fixChunk) len() int {
	if len(c) == 0 {
		return 0
	}
	return int(c[0])
}

// headAt is where the head of the i-th fix begins.
func headAt(i int) int { return 1 + i*headSize }

// at is the head of the i-th fix.
func (c fixChunk) at(i int) packedFix {
	h := c[headAt(i):]
	return packedFix{int64(binary.LittleEndian.Uint64(h)), binary.LittleEndian.Uint32(h[8:])}
}

// setStamp changes the stamp of the i-th fix.
func (c fixChunk) setStamp(i int, stamp int64) {
	binary.LittleEndian.PutUint64(c[headAt(i):], uint64(stamp))
}

// insert makes a fix the i-th.
func (c *fixChunk) insert(i int, f tracking.KeptFix) {
	var room [64]byte
	stamp, extra := packFix(room[:0], f)
	b, n := []byte(*c), c.len()
	if n == 0 {
		b = append(slices.Grow(b[:0], headAt(1)+len(extra)), 0)
	}
	end := len(b)
	b = slices.Grow(b, headSize+len(extra))[:end+headSize+len(extra)]
	copy(b[headAt(i+1):], b[headAt(i):end])
	copy(b[end+headSize:], extra)
	b[0] = byte(n + 1)
	binary.LittleEndian.PutUint32(b[headAt(i)+8:], uint32(end-headAt(n)))
	*c = b
	c.setStamp(i, stamp)
}

// packFix appends a fix to extra bytes, but for its stamp.
func packFix(extra []byte, f tracking.KeptFix) (stamp int64, _ []byte) {
	stamp = f.Time.UnixMilli()<<stampBits | int64(f.Mark)&markBits
	if f.Trusted {
		stamp |= trusted
	}
	if f.Purged {
		stamp |= purged
	}
	lng, exactly := tenMillionths(f.LngLat.Lng)
	lat, too := tenMillionths(f.LngLat.Lat)
	if exactly && too {
		extra = binary.LittleEndian.AppendUint32(extra, uint32(lng))
		extra = binary.LittleEndian.AppendUint32(extra, uint32(lat))
	} else {
		stamp |= wide
		extra = binary.LittleEndian.AppendUint64(extra, math.Float64bits(f.LngLat.Lng))
		extra = binary.LittleEndian.AppendUint64(extra, math.Float64bits(f.LngLat.Lat))
	}
	for i, r := range [...]tracking.Reading{f.Accuracy, f.Speed, f.Bearing, f.Battery} {
		if r.Known {
			stamp |= accuracy << i
			extra = appendReading(extra, r.Value)
		}
	}
	if f.EventID != "" {
		stamp |= named
		extra = binary.AppendUvarint(extra, uint64(len(f.EventID)))
		extra = append(extra, f.EventID...)
	}
	return stamp, extra
}

// fix is the i-th.
func (c fixChunk) fix(i int) tracking.KeptFix {
	p := c.at(i)
	f := tracking.KeptFix{Mark: p.mark(), Purged: p.purged()}
	f.Time = time.UnixMilli(p.time()).UTC()
	f.Trusted = p.stamp&trusted != 0
	extra := []byte(c[headAt(c.len())+int(p.offset):])
	if p.stamp&wide == 0 {
		f.LngLat.Lng = float64(int32(binary.LittleEndian.Uint32(extra))) / 1e7
		f.LngLat.Lat = float64(int32(binary.LittleEndian.Uint32(extra[4:]))) / 1e7
		extra = extra[8:]
	} else {
		f.LngLat.Lng = math.Float64frombits(binary.LittleEndian.Uint64(extra))
		f.LngLat.Lat = math.Float64frombits(binary.LittleEndian.Uint64(extra[8:]))
		extra = extra[16:]
	}
	for i, r := range [...]*tracking.Reading{&f.Accuracy, &f.Speed, &f.Bearing, &f.Battery} {
		if p.stamp&(accuracy<<i) != 0 {
			var v float64
			v, extra = readReading(extra)
			*r = tracking.Known(v)
		}
	}
	if p.stamp&named != 0 {
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

// part is the fixes from one on to before another as a chunk of their own, with no byte to spare.
func (c fixChunk) part(from, to int) (p fixChunk) {
	if from == 0 && to == c.len() {
		return append(make(fixChunk, 0, len(c)), c...)
	}
	for i := range to - from {
		p.insert(i, c.fix(from+i))
	}
	return append(make(fixChunk, 0, len(p)), p...)
}

// first is the first fix at or after t (UTC ms); behind the last one if there is none.
func (c fixChunk) first(t int64) int {
	return sort.Search(c.len(), func(i int) bool { return c.at(i).time() >= t })
}

// find returns the chunk and the place in it of the first fix at or after t (UTC ms). Past the last
// fix, c is the number of chunks and i is 0.
func (l *fixLog) find(t int64) (c, i int) {
	c = sort.Search(l.chunks(), func(c int) bool { k := l.chunk(c); return k.at(k.len()-1).time() >= t })
	if c < l.chunks() {
		i = l.chunk(c).first(t)
	}
	return c, i
}

// put adds a fix of a time that there is none of.
func (l *fixLog) put(f tracking.KeptFix) {
	t := f.Time.UnixMilli()
	n := l.newest.len()
	if n == 0 || l.newest.at(n-1).time() < t { // the usual case: it is the newest
		if n == fixesPerChunk {
			r := l.more()
			r.older = append(r.older, l.newest.part(0, n)) // it will hardly change again
			l.newest, n = make(fixChunk, 0, 384), 0
		}
		l.newest.insert(n, f)
		return
	}
	at, i := l.find(t)
	c := l.chunk(at)
	if n := c.len(); n == fixesPerChunk {
		left, right := c.part(0, n/2), c.part(n/2, n)
		*c = right
		r := l.more()
		r.older = slices.Insert(r.older, at, left)
		if i > n/2 {
			at, i = at+1, i-n/2
		}
		c = l.chunk(at)
	}
	c.insert(i, f)
}

// setMark changes the mark of the fix of that time.
func (l *fixLog) setMark(t int64, m tracking.FixMark) {
	if c, i := l.find(t); c < l.chunks() {
		if p := l.chunk(c).at(i); p.time() == t {
			l.chunk(c).setStamp(i, p.stamp&^markBits|int64(m)&markBits)
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
			i = l.chunk(c).len()
		}
		i--
		list = append(list, l.chunk(c).fix(i))
	}
	return list
}

// from lists the oldest n fixes at or after t, oldest first.
func (l *fixLog) from(t int64, n int) (list []tracking.KeptFix) {
	for c, i := l.find(t); c < l.chunks(); c, i = c+1, 0 {
		for chunk := *l.chunk(c); i < chunk.len(); i++ {
			if len(list) == n {
				return list
			}
			list = append(list, chunk.fix(i))
		}
	}
	return list
}

// oldest is the time (UTC ms) of the oldest fix that a purge can remove; never: there is none.
func (l *fixLog) oldest() int64 {
	for c := range l.chunks() {
		chunk := *l.chunk(c)
		for i := range chunk.len() {
			if p := chunk.at(i); !p.purged() {
				return p.time()
			}
		}
	}
	return never
}

// purge removes the fixes before t, at most limit, and returns how many. The fixes that remain must
// be judged as before when a late one comes among them; so those from the last on that others are
// judged by are not dropped but marked as purged, and nobody gets to see them.
func (l *fixLog) purge(t int64, limit int) (n int) {
	rank, cut, good := 0, 0, 0 // good: the rank of the good fix before
search:
	for c := range l.chunks() {
		chunk := *l.chunk(c)
		for i := range chunk.len() {
			p := chunk.at(i)
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
				chunk.setStamp(i, p.stamp|purged)
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
	if c == l.chunks() {
		return
	}
	l.cut(0, c, l.chunk(c).part(0, i))
}

// drop removes the n oldest fixes.
func (l *fixLog) drop(n int) {
	for c := range l.chunks() {
		k := l.chunk(c).len()
		if n < k {
			if n > 0 {
				*l.chunk(c) = l.chunk(c).part(n, k)
			}
			l.cut(c, l.chunks(), nil)
			return
		}
		n -= k
	}
	l.cut(0, 0, nil)
}

// cut leaves the chunks from one on to before another, and behind them a last one unless it is empty.
func (l *fixLog) cut(from, to int, last fixChunk) {
	older := l.older()
	if len(last) == 0 {
		if to--; to >= from {
			last = *l.chunk(to)
		}
	}
	l.newest = last
	if l.rest == nil {
		return
	}
	to = max(to, from)
	clear(older[to:])
	l.rest.older = slices.Delete(older[:to], 0, from)
}

// read appends to buf the good fixes from from to to (UTC ms, both included), ascending, or
// descending with newest, until buf is full, and reports whether it may have left some out.
func (l *fixLog) read(buf []tracking.Fix, from, to int64, newest bool) (_ []tracking.Fix, full bool) {
	add := func(c fixChunk, i int) {
		if p := c.at(i); !p.purged() && p.mark().Good() {
			buf = append(buf, c.fix(i).Fix)
		}
	}
	if newest {
		c, i := l.find(to + 1)
		for ; len(buf) < cap(buf); i-- {
			for ; i == 0; i = l.chunk(c).len() {
				if c == 0 {
					return buf, false
				}
				c--
			}
			if l.chunk(c).at(i-1).time() < from {
				return buf, false
			}
			add(*l.chunk(c), i-1)
		}
		return buf, true
	}
	for c, i := l.find(from); c < l.chunks(); c, i = c+1, 0 {
		for chunk := *l.chunk(c); i < chunk.len(); i++ {
			if chunk.at(i).time() > to {
				return buf, false
			}
			if len(buf) == cap(buf) {
				return buf, true
			}
			add(chunk, i)
		}
	}
	return buf, false
}
