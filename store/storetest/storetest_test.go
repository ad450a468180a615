package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

func TestReference(t *testing.T) {
	t.Setenv("TRACKING_LONG", "0") // it is slow on purpose, and all the others are held to it for long
	Fewer(t, 20)
	Run(t, func(testing.TB) tracking.Store { return newReference() })
}

func TestSharedReference(t *testing.T) {
	RunShared(t, func(testing.TB) (a, b tracking.Store) {
		r, of := newReference(), &between{values: map[string][]byte{}}
		return process{r, of, 0}, process{r, of, 1}
	})
}

// process is one of two that share a reference. It tells the other of what it does, and counts with it.
type process struct {
	*reference
	of *between
	n  int
}

// between is what two processes have between them.
type between struct {
	mu     sync.Mutex
	values map[string][]byte
	tell   [2]func(tracking.AppID, tracking.Subject)
}

func (p process) told(app tracking.AppID, subject tracking.Subject) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if changed := p.of.tell[1-p.n]; changed != nil {
		changed(app, subject)
	}
}

func (p process) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	w, err := p.reference.Commit(ctx, app, cs)
	if err == nil {
		p.told(app, tracking.Subject{})
	}
	return w, err
}

func (p process) RecordFixes(ctx context.Context, app tracking.AppID, b tracking.FixBatch) (tracking.Recorded, error) {
	r, err := p.reference.RecordFixes(ctx, app, b)
	if err == nil && len(b.Fixes) > 0 {
		p.told(app, tracking.Subject{Kind: tracking.KindDriver, ID: string(b.DriverID)})
	}
	return r, err
}

func (p process) Watch(ctx context.Context, changed func(tracking.AppID, tracking.Subject)) error {
	p.of.mu.Lock()
	p.of.tell[p.n] = changed
	p.of.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

func (p process) Limit(_ context.Context, name string, _ time.Duration, count func([]byte) []byte) error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.values[name] = count(p.of.values[name])
	return nil
}

// TestDurableReference opens a directory's store again by handing out the same rows.
func TestDurableReference(t *testing.T) {
	Fewer(t, 10)
	var mu sync.Mutex
	stores := map[string]*reference{}
	RunDurable(t, func(t testing.TB, dir string) tracking.Store {
		mu.Lock()
		defer mu.Unlock()
		if stores[dir] == nil {
			stores[dir] = newReference()
		}
		stores[dir].closed = false
		return stores[dir]
	})
}
