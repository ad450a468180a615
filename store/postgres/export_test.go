package postgres

import (
	"fmt"
	"io/fs"
	"math/rand/v2"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Places are those of n drivers, d1, d2 …, spread over a large city, with their cells.
func Places(n int) (ids []string, cells []int64, lng, lat []float64) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		at := tracking.LngLat{Lng: 80 + r.Float64(), Lat: 12.5 + r.Float64()}
		ids, cells = append(ids, fmt.Sprintf("d%d", i+1)), append(cells, cellOf(at))
		lng, lat = append(lng, at.Lng), append(lat, at.Lat)
	}
	return ids, cells, lng, lat
}

// WithMigrations returns options of a program that knows other steps of the schema.
func (o Options) WithMigrations(steps fs.FS) *Options {
	o.migrations = steps
	return &o
}

// Asking returns options of a program that asks the server for something else, in place of SKIP LOCKED.
func (o Options) Asking(statements string) *Options {
	o.trySkip = statements
	return &o
}

// Looking returns options of a program that reads so many drivers of a circle before it has the server
// find the first.
func (o Options) Looking(most int) *Options {
	o.mostLooked = most
	return &o
}

// Terms are what a task is found by, as they stand in its row.
func Terms(t *tracking.Task) string { return *arrayValue(rows.Terms(t, allTerms)) }

// How events are given their places.
const (
	OneStretch  = oneStretch
	PlaceEvents = placeEvents
)

// CellOf is the cell of a place.
func CellOf(p tracking.LngLat) int64 { return cellOf(p) }

// Commits are how many calls of Commit wait in line, for a row that is held, and for their group's
// transaction.
func (s *Store) Commits() (line, held, busy int) {
	g := &s.committer
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.line), len(g.held), len(g.busy)
}

// IsHeld reports whether the call of Commit that carries an event waits for a row that is held, or is
// being tried again.
func (s *Store) IsHeld(event string) bool {
	g := &s.committer
	g.mu.Lock()
	defer g.mu.Unlock()
	for k := range g.heldRows {
		if k.kind == "event" && k.id == event {
			return true
		}
	}
	return false
}

// Recordings are how many calls of RecordFixes wait in line, and how many groups are under way.
func (s *Store) Recordings() (line, groups int) {
	g := &s.recorder
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.line), g.groups
}
