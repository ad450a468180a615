package storetest

import (
	"testing"
	"testing/synctest"
)

// Many histories take no time by a clock that does not wait.
func TestOnlookers(t *testing.T) {
	histories := uint64(20)
	if long() {
		histories = 400
	}
	for seed := range histories {
		synctest.Test(t, func(t *testing.T) {
			r := newReference()
			runOnlookers(t, r, r, seed, 40)
		})
	}
}
