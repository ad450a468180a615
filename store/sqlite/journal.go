package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking"
)

// A fix changes one row of positions, and to write that row is most of what a fix costs SQLite. So a
// transaction writes what its fixes change, of all drivers one behind another, into rows of the table
// recorded, and the rows of positions follow when there are many such changes (late.go).
//
// The journal is a stream of bytes in chunks of one size, each a row that fills a page and is written
// in place. It starts from its beginning again with each generation. What is older stands behind it
// until it is overwritten, or wiped. Each change has a place, and a row of positions says up to which
// place it has what was changed: what stands before is not applied again.
const (
	chunkBytes = 4000
	chunkHead  = 6 // the generation, and how many bytes of the chunk are used
	chunkRoom  = chunkBytes - chunkHead
)

const (
	selectChunks = `SELECT n, packed FROM recorded ORDER BY n`
	insertChunk  = `INSERT INTO recorded (n, packed) VALUES (?, ?)`
	updateChunk  = `UPDATE recorded SET packed = ? WHERE n = ?`
	deleteChunks = `DELETE FROM recorded`
)

// place is where a change in the journal ends: its generation, and how many bytes that has up to there.
type place int64

func placeOf(generation int64, end int) place { return place(generation<<32 | int64(end)) }

// journal is what the writer knows of the file's.
type journal struct {
	generation int64
	end        int    // bytes of this generation
	chunks     int    // rows that there are
	last       []byte // the chunk that end is in
}

// empty reports whether no row has anything, of this generation or an older one.
func (j *journal) empty() bool { return j.end == 0 && j.chunks <= 1 }

// append writes changes behind what there is.
func (j *journal) append(x *tx, changes []byte) error {
	for len(changes) > 0 {
		n, at := j.end/chunkRoom, j.end%chunkRoom
		chunk := make([]byte, chunkBytes) // not in place: the transaction may fail
		if at > 0 {
			copy(chunk, j.last[:chunkHead+at])
		}
		took := copy(chunk[chunkHead+at:], changes)
		changes = changes[took:]
		j.end, j.last = j.end+took, chunk
		if err := j.put(x, n, chunk, at+took); err != nil {
			return err
		}
	}
	return nil
}

// put writes a chunk, of which so many bytes are used.
func (j *journal) put(x *tx, n int, chunk []byte, used int) error {
	binary.BigEndian.PutUint32(chunk, uint32(j.generation))
	binary.BigEndian.PutUint16(chunk[4:], uint16(used))
	if n < j.chunks {
		return x.exec(updateChunk, chunk, n)
	}
	j.chunks = n + 1
	return x.exec(insertChunk, n, chunk)
}

// restart begins a new generation, whose rows have everything of the old one. With wipe nothing of
// what was written is left in the table.
func (j *journal) restart(x *tx, wipe bool) error {
	if wipe {
		if err := x.exec(deleteChunks); err != nil {
			return err
		}
		j.chunks = 0
	}
	j.generation, j.end, j.last = j.generation+1, 0, nil
	return j.put(x, 0, make([]byte, chunkBytes), 0)
}

var errJournal = errors.New("the journal of fixes does not unpack")

// moved is a change in the journal: what a driver's fixes, or his arrivals, have made of his position
// and of the fixes beside it.
type moved struct {
	place    place
	driver   int64
	what     byte
	position tracking.Position // without what stays
	keep     int               // bytes of the open fixes that stay, before those here
	open     []byte
}

// What a change has beside its position's readings and counts.
const (
	movedFix   = 1 << iota // the position has another fix
	movedNoFix             // the position has none any more
	movedTail              // it has another tail
	movedOpen              // there are other open fixes
	movedSeen              // the time of its arrival is known
	movedLeast             // and so are the readings of its clock
	movedRecent
	movedUnknown // none of these bits
)

// appendMoved packs what makes next of a driver.
//
//	uvarint  the driver's number
//	byte     what there is
//	varint   when he was seen, UTC ms
//	8 bytes  each reading of his clock that is known
//	varint   arrivals, unread, rewrites
//	packed   the fix, as one packed by itself
//	uvarint  the length of the tail, and it
//	uvarint  how much of the open fixes stays, the length of those behind, and they
func appendMoved(b []byte, old, next *driverState) []byte {
	was, is := &old.Position, &next.Position
	what := byte(0)
	if is.Fix != was.Fix {
		what |= movedFix
		if is.Fix.Time.IsZero() {
			what ^= movedFix | movedNoFix
		}
	}
	if is.Tail != was.Tail {
		what |= movedTail
	}
	if !bytes.Equal(next.open, old.open) {
		what |= movedOpen
	}
	if !is.SeenAt.IsZero() {
		what |= movedSeen
	}
	if is.Skew.Least.Known {
		what |= movedLeast
	}
	if is.Skew.Recent.Known {
		what |= movedRecent
	}
	b = append(binary.AppendUvarint(b, uint64(next.Seq)), what)
	if what&movedSeen != 0 {
		b = binary.AppendVarint(b, is.SeenAt.UnixMilli())
	}
	if what&movedLeast != 0 {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(is.Skew.Least.Value))
	}
	if what&movedRecent != 0 {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(is.Skew.Recent.Value))
	}
	b = binary.AppendVarint(b, int64(is.Skew.Arrivals))
	b = binary.AppendVarint(b, int64(is.Unread))
	b = binary.AppendVarint(b, int64(is.Rewrites))
	if what&movedFix != 0 {
		var s packState
		b = s.append(b, tracking.KeptFix{Fix: is.Fix, Mark: tracking.MarkGood})
	}
	if what&movedTail != 0 {
		b = append(binary.AppendUvarint(b, uint64(len(is.Tail))), is.Tail...)
	}
	if what&movedOpen != 0 {
		keep := 0
		if bytes.HasPrefix(next.open, old.open) {
			keep = len(old.open)
		}
		b = binary.AppendUvarint(b, uint64(keep))
		b = append(binary.AppendUvarint(b, uint64(len(next.open)-keep)), next.open[keep:]...)
	}
	return b
}

// movedReader reads the changes of a generation.
type movedReader struct {
	left []byte
	bad  bool
}

func (r *movedReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.left)
	r.skip(n)
	return v
}

func (r *movedReader) varint() int64 {
	v, n := binary.Varint(r.left)
	r.skip(n)
	return v
}

// skip passes n bytes; none: there was no number.
func (r *movedReader) skip(n int) {
	if n <= 0 || n > len(r.left) {
		r.bad, r.left = true, nil
		return
	}
	r.left = r.left[n:]
}

func (r *movedReader) bytes(n uint64) (b []byte) {
	if n > uint64(len(r.left)) {
		r.bad, r.left = true, nil
		return nil
	}
	b, r.left = r.left[:n], r.left[n:]
	return b
}

func (r *movedReader) reading() tracking.Reading {
	b := r.bytes(8)
	if r.bad {
		return tracking.Reading{}
	}
	return tracking.Known(math.Float64frombits(binary.BigEndian.Uint64(b)))
}

// next reads a change. Its bytes are those that the reader was given.
func (r *movedReader) next() (m moved, err error) {
	m.driver = int64(r.uvarint())
	if what := r.bytes(1); !r.bad {
		m.what = what[0]
	}
	p := &m.position
	if m.what&movedSeen != 0 {
		p.SeenAt = fromMillis(r.varint())
	}
	if m.what&movedLeast != 0 {
		p.Skew.Least = r.reading()
	}
	if m.what&movedRecent != 0 {
		p.Skew.Recent = r.reading()
	}
	p.Skew.Arrivals, p.Unread, p.Rewrites = int(r.varint()), int(r.varint()), int(r.varint())
	if m.what&movedFix != 0 && !r.bad {
		var s packState
		rest, steps, event, err := s.next(r.left)
		if err != nil {
			return m, errJournal
		}
		r.left, p.Fix = rest, s.fix(steps, event).Fix
	}
	if m.what&movedTail != 0 {
		p.Tail = string(r.bytes(r.uvarint()))
	}
	if m.what&movedOpen != 0 {
		keep := r.uvarint()
		m.open = r.bytes(r.uvarint())
		if m.keep = int(keep); keep > math.MaxInt32 {
			r.bad = true
		}
	}
	if r.bad || m.what&movedUnknown != 0 {
		return m, errJournal
	}
	return m, nil
}

// apply makes the change to what a driver's row has.
func (m *moved) apply(p *tracking.Position, open []byte) ([]byte, error) {
	was := *p
	*p = m.position
	if m.what&(movedFix|movedNoFix) == 0 {
		p.Fix = was.Fix
	}
	if m.what&movedTail == 0 {
		p.Tail = was.Tail
	}
	if m.what&movedOpen == 0 {
		return open, nil
	}
	if m.keep > len(open) {
		return nil, errJournal
	}
	return append(open[:m.keep:m.keep], m.open...), nil
}

// readJournal reads what is in the file: the writer's view of it, and the changes of its generation by
// driver, in order.
func readJournal(ctx context.Context, q sqlx.QueryerContext) (j journal, changes map[int64][]moved, err error) {
	j.generation = 1
	var list []struct {
		N      int
		Packed []byte
	}
	if err := sqlx.SelectContext(ctx, q, &list, selectChunks); err != nil {
		return j, nil, err
	}
	var stream []byte
	ended := false
	for i, c := range list {
		if c.N != i || len(c.Packed) != chunkBytes {
			return j, nil, errJournal
		}
		generation, used := int64(binary.BigEndian.Uint32(c.Packed)), int(binary.BigEndian.Uint16(c.Packed[4:]))
		if i == 0 {
			j.generation = generation
		}
		older := generation < j.generation
		switch {
		case used > chunkRoom, generation < 1, generation > j.generation, generation > math.MaxInt32,
			ended && !older:
			return j, nil, errJournal
		case older:
			ended = true
			continue
		}
		stream, j.last = append(stream, c.Packed[chunkHead:chunkHead+used]...), c.Packed
		ended = used < chunkRoom
	}
	j.end, j.chunks = len(stream), len(list)
	changes = map[int64][]moved{}
	for r := (movedReader{left: stream}); len(r.left) > 0; {
		m, err := r.next()
		if err != nil {
			return j, nil, err
		}
		m.place = placeOf(j.generation, len(stream)-len(r.left))
		changes[m.driver] = append(changes[m.driver], m)
	}
	return j, changes, nil
}

// applyMoved makes of a row what it is with the changes that it does not have.
func applyMoved(changes []moved, has place, p *tracking.Position, open []byte) (place, []byte, error) {
	for i := range changes {
		m := &changes[i]
		if m.place <= has {
			continue
		}
		var err error
		if open, err = m.apply(p, open); err != nil {
			return has, nil, err
		}
		has = m.place
	}
	return has, open, nil
}
