package postgres

import (
	"bytes"
	"math"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

// A column is the same to the server whether pgx encodes it, element by element or as a plain list, or
// the short way does.
func TestShortWays(t *testing.T) {
	whole := []int64{0, 1, -1, math.MaxInt16, math.MinInt16}
	for _, c := range []struct {
		oids []uint32
		of   array
	}{
		{[]uint32{pgtype.Int2ArrayOID, pgtype.Int4ArrayOID, pgtype.Int8ArrayOID}, &ints{}},
		{[]uint32{pgtype.Float8ArrayOID}, &floats{}},
		{[]uint32{pgtype.BoolArrayOID}, &bools{}},
		{[]uint32{pgtype.TextArrayOID}, &strs{}},
	} {
		for missing := range 1 << len(whole) {
			c.of.reset()
			for i, v := range whole {
				there := missing>>i&1 == 0
				switch of := c.of.(type) {
				case *ints:
					of.add(v, there)
				case *floats:
					of.add(float64(v)/3, there)
				case *bools:
					of.add(v > 0, there)
				case *strs:
					of.add([]string{"", "a", `{"\`, "NULL", "ümläut"}[i], there)
				}
			}
			for _, oid := range c.oids {
				pgx, short := pgtype.NewMap(), pgtype.NewMap()
				takeShortWays(short)
				want, err := pgx.Encode(oid, pgtype.BinaryFormatCode, c.of.plain(), nil)
				if err != nil {
					t.Fatal(err)
				}
				for how, m := range map[string]*pgtype.Map{"by element": pgx, "the short way": short} {
					got, err := m.Encode(oid, pgtype.BinaryFormatCode, c.of, []byte("before"))
					if err != nil {
						t.Fatal(err)
					}
					if got = bytes.TrimPrefix(got, []byte("before")); !bytes.Equal(got, want) || (got == nil) != (want == nil) {
						t.Errorf("%T as %d, missing %b, %s: % x, want % x", c.of, oid, missing, how, got, want)
					}
				}
			}
		}
	}
}
