package storetest

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

// storeChecks are about what holds for every call.
func storeChecks() []check {
	return []check{
		{"Store/reads of one row that is not there are ErrNotFound, lists are nil", missingRowsAreNotFound},
		{"Store/calls with a context that has ended return its error", endedContextEndsEveryCall},
		{"Store/calls after Close return ErrUnavailable", closedStoreIsUnavailable},
		{"Secret/has 32 bytes and stays the same", secretStaysTheSame},
	}
}

func missingRowsAreNotFound(t testing.TB, s tracking.Store) {
	for _, call := range calls() {
		got, err := call.do(t.Context(), s, here)
		if err != nil && !errors.Is(err, tracking.ErrNotFound) && !errors.Is(err, tracking.ErrConflict) {
			t.Errorf("%s on an empty store: %v", call.name, err)
		}
		if call.found == nothing && err != nil {
			t.Errorf("%s on an empty store: got error %v, want none", call.name, err)
		}
		if call.found == notFound {
			missing(t, call.name+" on an empty store", err)
		}
		if call.found == nothing && !empty(got) {
			t.Errorf("%s on an empty store: got %+v, want nothing", call.name, got)
		}
	}
}

func endedContextEndsEveryCall(t testing.TB, s tracking.Store) {
	use(t, s, here).commit(seed())
	before := snap(t, s, here)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, call := range calls() {
		if _, err := call.do(ctx, s, here); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v, want %v", call.name, err, context.Canceled)
		}
	}
	same(t, "rows", snap(t, s, here), before)
}

func closedStoreIsUnavailable(t testing.TB, s tracking.Store) {
	use(t, s, here).commit(seed())
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	for _, call := range calls() {
		if _, err := call.do(t.Context(), s, here); !errors.Is(err, tracking.ErrUnavailable) {
			t.Errorf("%s: got error %v, want ErrUnavailable", call.name, err)
		}
	}
}

func secretStaysTheSame(t testing.TB, s tracking.Store) {
	first, err := s.Secret(t.Context())
	if err != nil || len(first) != 32 || bytes.Equal(first, make([]byte, 32)) {
		t.Fatalf("Secret: got %d bytes, error %v; want 32 random ones", len(first), err)
	}
	was := bytes.Clone(first)
	clear(first)
	again, err := s.Secret(t.Context())
	if err != nil || !bytes.Equal(again, was) {
		t.Errorf("Secret: got another one the second time (error %v)", err)
	}
}

// memoChecks are about what the service remembers of itself.
func memoChecks() []check {
	return []check{
		{"Memo/is what was last kept under its name", memoIsWhatWasLastKept},
	}
}

func memoIsWhatWasLastKept(t testing.TB, s tracking.Store) {
	get := func(name string, want []byte) {
		t.Helper()
		got, err := s.Memo(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "memo "+name, got, want)
	}
	get("a", nil)
	for _, v := range []string{"first", "second"} {
		value := []byte(v)
		if err := s.SetMemo(t.Context(), "a", value); err != nil {
			t.Fatal(err)
		}
		value[0] = '!' // it is the caller's again
		get("a", []byte(v))
	}
	get("A", nil)
}
