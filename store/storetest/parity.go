package storetest

import (
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
)

// parityChecks look where stores tend to differ.
func parityChecks() []check {
	return slices.Concat(timeChecks(), textChecks(), placeChecks(), valueChecks())
}

// uniqueFor gives cs other unique values, which depend on n, so that it can be committed in several
// applications.
func uniqueFor(cs tracking.Changeset, n byte) tracking.Changeset {
	for i := range cs.Invites {
		cs.Invites[i].CodeHash[7] = n
	}
	for i := range cs.Keys {
		cs.Keys[i].Hash[7] = n
	}
	return cs
}

var (
	// anyHash takes all hashes for equal.
	anyHash = cmp.Comparer(func(a, b tracking.Hash) bool { return true })
	// ignoreDriver leaves "driver" out of a list of ids.
	ignoreDriver = cmp.Transformer("others", func(ids []string) map[int]string {
		m := map[int]string{}
		for _, id := range ids {
			if id != "driver" {
				m[len(m)] = id
			}
		}
		return m
	})
)

// anyVersion takes all versions for equal.
var anyVersion = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Version" }, cmp.Ignore())
