package postgres

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// elements are the array of a parameter some of which may be missing: NULL where all are. They
// are of pgtype, and handed out by pointers, so that none needs memory of its own to be sent.
type elements[T any] struct {
	list  []T
	there int // how many are
	room  int // for so many bytes, when it is encoded: of it and of those that come after it
	size  [1]pgtype.ArrayDimension
}

type (
	ints   struct{ elements[pgtype.Int8] }
	floats struct{ elements[pgtype.Float8] }
	bools  struct{ elements[pgtype.Bool] }
	strs   struct{ elements[pgtype.Text] }
)

func (c *ints) add(v int64, there bool)     { c.put(pgtype.Int8{Int64: v, Valid: there}, there) }
func (c *floats) add(v float64, there bool) { c.put(pgtype.Float8{Float64: v, Valid: there}, there) }
func (c *bools) add(v, there bool)          { c.put(pgtype.Bool{Bool: v, Valid: there}, there) }
func (c *strs) add(v string, there bool)    { c.put(pgtype.Text{String: v, Valid: there}, there) }

func (c *elements[T]) put(v T, there bool) {
	if c.list = append(c.list, v); there {
		c.there++
	}
}

// reset empties the column for others of about as many elements.
func (c *elements[T]) reset() {
	clear(c.list)
	c.list, c.there = c.list[:0], 0
}

// Dimensions implements [pgtype.ArrayGetter].
func (c *elements[T]) Dimensions() []pgtype.ArrayDimension {
	if c.there == 0 {
		return nil
	}
	c.size[0] = pgtype.ArrayDimension{Length: int32(len(c.list)), LowerBound: 1}
	return c.size[:]
}

// Index implements [pgtype.ArrayGetter].
func (c *elements[T]) Index(i int) any { return &c.list[i] }

// IndexType implements [pgtype.ArrayGetter].
func (c *elements[T]) IndexType() any { return new(T) }

// array is a column.
type array interface {
	pgtype.ArrayGetter
	plain() any
	reset()
	appendTo(b []byte, w shortWay) []byte
}

// encode appends the column as the server reads it: an array of one dimension, which begins at 1. value
// appends an element, or returns nil for one that is missing.
func (c *elements[T]) encode(b []byte, element uint32, value func(b []byte, v *T) []byte) []byte {
	b = slices.Grow(b, c.room)
	for _, v := range [...]int{1, min(len(c.list)-c.there, 1), int(element), len(c.list), 1} {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	for i := range c.list {
		at := len(b)
		b = binary.BigEndian.AppendUint32(b, math.MaxUint32) // the length of NULL
		if next := value(b, &c.list[i]); next != nil {
			b = next
			binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
		}
	}
	return b
}

func (c *ints) appendTo(b []byte, w shortWay) []byte {
	return c.encode(b, w.element, func(b []byte, v *pgtype.Int8) []byte {
		switch {
		case !v.Valid:
			return nil
		case w.width == 2:
			return binary.BigEndian.AppendUint16(b, uint16(v.Int64))
		case w.width == 4:
			return binary.BigEndian.AppendUint32(b, uint32(v.Int64))
		}
		return binary.BigEndian.AppendUint64(b, uint64(v.Int64))
	})
}

func (c *floats) appendTo(b []byte, w shortWay) []byte {
	return c.encode(b, w.element, func(b []byte, v *pgtype.Float8) []byte {
		if !v.Valid {
			return nil
		}
		return binary.BigEndian.AppendUint64(b, math.Float64bits(v.Float64))
	})
}

func (c *bools) appendTo(b []byte, w shortWay) []byte {
	return c.encode(b, w.element, func(b []byte, v *pgtype.Bool) []byte {
		switch {
		case !v.Valid:
			return nil
		case v.Bool:
			return append(b, 1)
		}
		return append(b, 0)
	})
}

func (c *strs) appendTo(b []byte, w shortWay) []byte {
	return c.encode(b, w.element, func(b []byte, v *pgtype.Text) []byte {
		if !v.Valid {
			return nil
		}
		return append(b, v.String...)
	})
}

// shortWay is the codec of an array type on connections of the store's own: it encodes a column in one
// go, where pgx asks for each element, and how to encode it.
type shortWay struct {
	pgtype.Codec
	element uint32
	width   int // of a whole number
}

// shortWays are the arrays that columns are sent as.
var shortWays = map[uint32]shortWay{
	pgtype.Int2ArrayOID:   {element: pgtype.Int2OID, width: 2},
	pgtype.Int4ArrayOID:   {element: pgtype.Int4OID, width: 4},
	pgtype.Int8ArrayOID:   {element: pgtype.Int8OID, width: 8},
	pgtype.Float8ArrayOID: {element: pgtype.Float8OID},
	pgtype.BoolArrayOID:   {element: pgtype.BoolOID},
	pgtype.TextArrayOID:   {element: pgtype.TextOID},
}

// takeShortWays is for a new connection.
func takeShortWays(m *pgtype.Map) {
	for oid, w := range shortWays {
		t, _ := m.TypeForOID(oid)
		w.Codec = t.Codec
		m.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: w})
	}
}

// PlanEncode implements [pgtype.Codec].
func (w shortWay) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(array); ok && format == pgtype.BinaryFormatCode {
		return w
	}
	return w.Codec.PlanEncode(m, oid, format, value)
}

// Encode implements [pgtype.EncodePlan].
func (w shortWay) Encode(value any, b []byte) ([]byte, error) {
	a := value.(array)
	if a.Dimensions() == nil {
		return nil, nil
	}
	return a.appendTo(b, w), nil
}

func (c *ints) plain() any {
	return plain(len(c.list), func(i int) *int64 { return given(&c.list[i].Int64, c.list[i].Valid) })
}

func (c *floats) plain() any {
	return plain(len(c.list), func(i int) *float64 { return given(&c.list[i].Float64, c.list[i].Valid) })
}

func (c *bools) plain() any {
	return plain(len(c.list), func(i int) *bool { return given(&c.list[i].Bool, c.list[i].Valid) })
}

func (c *strs) plain() any {
	return plain(len(c.list), func(i int) *string { return given(&c.list[i].String, c.list[i].Valid) })
}

// given is v, or nil where it is not there.
func given[T any](v *T, there bool) *T {
	if !there {
		return nil
	}
	return v
}

// plain are n elements as an array that can be sent by any means; nil stands for one that is missing,
// and NULL for all of them. As all are there mostly, or none is, it spares to send pointers, which are
// slow to encode.
func plain[T any](n int, at func(i int) *T) any {
	missing := 0
	for i := range n {
		if at(i) == nil {
			missing++
		}
	}
	switch missing {
	case n:
		return []T(nil)
	case 0:
		list := make([]T, n)
		for i := range list {
			list[i] = *at(i)
		}
		return list
	}
	list := make([]*T, n)
	for i := range list {
		list[i] = at(i)
	}
	return list
}

// plainValues are columns that can be sent by any means.
func plainValues(list []array) []any {
	values := make([]any, len(list))
	for i, c := range list {
		values[i] = c.plain()
	}
	return values
}
