package postgres

import (
	"cmp"
	"slices"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/cover"
)

// tilesAcross is by how many squares of cells a circle is covered at most, in either direction.
// More of them cover less that is not in it, but each is a look into the index.
const tilesAcross = 5

// cellRange are cells from one to another, both included.
type cellRange struct{ from, to int64 }

// cellsAround are ranges of cells that hold every place within r metres of at.
func cellsAround(at tracking.LngLat, r float64) (from, to []int64) {
	return rangeColumns(joined(rangesAround(at, r)))
}

// rangesAround are such ranges before they are joined.
func rangesAround(at tracking.LngLat, r float64) (list []cellRange) {
	boxes, n := cover.Circle(at, r)
	for _, b := range boxes[:n] {
		west, east := cellColumn(b.Min[0]), cellColumn(b.Max[0])
		south, north := cellRow(b.Min[1]), cellRow(b.Max[1])
		shift := 0 // a tile has 2^shift cells on each side
		for east>>shift-west>>shift >= tilesAcross || north>>shift-south>>shift >= tilesAcross {
			shift++
		}
		for x := west >> shift; x <= east>>shift; x++ {
			for y := south >> shift; y <= north>>shift; y++ {
				first := morton(x, y) << (2 * shift)
				list = append(list, cellRange{first, first + 1<<(2*shift) - 1})
			}
		}
	}
	return list
}

// joined are the same cells in order, as few ranges as may be.
func joined(list []cellRange) (few []cellRange) {
	slices.SortFunc(list, func(a, b cellRange) int { return cmp.Compare(a.from, b.from) })
	for _, c := range list {
		if n := len(few); n > 0 && few[n-1].to+1 >= c.from {
			few[n-1].to = max(few[n-1].to, c.to)
			continue
		}
		few = append(few, c)
	}
	return few
}

// rangeColumns are ranges as parameters.
func rangeColumns(list []cellRange) (from, to []int64) {
	for _, c := range list {
		from, to = append(from, c.from), append(to, c.to)
	}
	return from, to
}
