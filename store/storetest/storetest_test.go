package storetest

import (
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

func TestReference(t *testing.T) {
	Run(t, func(testing.TB) tracking.Store { return newReference() })
}
