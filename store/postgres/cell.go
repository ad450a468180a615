package postgres

import (
	"math"

	"github.com/seed-8aba7b13/tracking"
)

// cellBits is how many bits of longitude, and of latitude, make a cell: 610 m × 305 m at the equator,
// so that a driver who moves mostly stays in his.
const cellBits = 16

// cellOf is the cell that a place is in: the bits of longitude and latitude by turns (a Morton code),
// so that near cells mostly have near numbers.
func cellOf(p tracking.LngLat) int64 { return morton(cellColumn(p.Lng), cellRow(p.Lat)) }

func cellColumn(lng float64) uint64 { return cellStep((lng + 180) / 360) }
func cellRow(lat float64) uint64    { return cellStep((lat + 90) / 180) }

// cellStep is which of the equal parts of 0 to 1 a number is in; the last one has its end, too.
func cellStep(part float64) uint64 {
	const parts = 1 << cellBits
	return uint64(min(max(math.Floor(part*parts), 0), parts-1))
}

func morton(column, row uint64) int64 { return int64(spread(column) | spread(row)<<1) }

// spread puts a zero before each of the lower 32 bits.
func spread(v uint64) uint64 {
	v &= 0xffffffff
	v = (v | v<<16) & 0x0000ffff0000ffff
	v = (v | v<<8) & 0x00ff00ff00ff00ff
	v = (v | v<<4) & 0x0f0f0f0f0f0f0f0f
	v = (v | v<<2) & 0x3333333333333333
	v = (v | v<<1) & 0x5555555555555555
	return v
}
