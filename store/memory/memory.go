// Package memory keeps a tracking service's rows in the memory of the process. It is made for
// tests, for demonstrations, and for programs that can do without their past after a restart; it
// does all that a [tracking.Store] promises, durability excepted.
//
//	svc, err := tracking.New(memory.New(), nil)
//
// # Concurrency
//
// Each application has a lock of its own. Commits of one application follow each other, those of
// different ones do not; its reads run side by side, and so do the fixes of its different drivers.
// Iterating over fixes holds no lock while the loop's body runs.
//
// # Cost
//
// A look-up by id or secret costs a map access, a near page of a list its length, a commit the
// number of its rows times the logarithm of what is there. A kept fix takes 20 to 28 bytes,
// and 1 to 9 more for each known reading; a task in its lists about 450, and its texts; a driver with a
// position about 400, and his.
package memory

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/claims"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Store is a [tracking.Store] in memory. Make one with [New].
type Store struct {
	closed atomic.Bool

	mu     sync.RWMutex
	apps   map[tracking.AppID]*application
	secret []byte // nil until asked for
	memos  map[string][]byte

	secrets  secrets
	boxes    outboxes
	rowLocks rowLocks

	due     claims.Claims[claimedDue]
	matches claims.Claims[claimedTask]

	// One sequence of each over all applications, so that a cursor over the tasks of all of them is
	// never ambiguous.
	taskSeq, tripSeq, driverSeq, eventSeq, noticeSeq atomic.Int64
}

var _ tracking.Store = (*Store)(nil)

// New returns an empty Store.
func New() *Store {
	return &Store{apps: make(map[tracking.AppID]*application)}
}

// application holds the rows of one application.
//
// Locks are taken in this order: an application's mu, a driver's row's, those of the store's secrets,
// an outbox's, that of one of its boxes; the index's and the fix queue's own.
type application struct {
	id tracking.AppID

	mu      sync.RWMutex
	tasks   tasks
	trips   trips
	drivers drivers
	invites invites
	keys    map[string]*tracking.Key
	events  events
	notices list[*noticeRow] // of all drivers, by time
	files   files

	boxes []*box // what is undelivered, one for each outbox that something has gone to

	nearby nearby.Index
	aging  agingQueue

	// Marks of rows that are gone: new ones go on from there.
	lastVersion int64 // none had a greater version
	lastNotice  int64 // no driver's notice had a greater id

	rowLocks *rowLocks // the store's
	first    uint32    // the lock of the first row: small applications share others

	erased  []*driverRow // of deleted drivers, what purges have still to take away
	commits uint         // that were tried

	committing atomic.Int32 // so many are at it, those included who let others go first
}

func newApplication(id tracking.AppID, locks *rowLocks) *application {
	return &application{
		id:       id,
		rowLocks: locks,
		first:    uint32(codeOf(string(id))),

		tasks:   newTasks(),
		trips:   newTrips(),
		drivers: newDrivers(),
		keys:    make(map[string]*tracking.Key),
		events:  newEvents(),
	}
}

// ready returns the reason why a call cannot be served.
func (s *Store) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.closed.Load() {
		return rows.ErrClosed
	}
	return nil
}

// read returns an application locked for reading, or nil when nothing was ever written for it:
// asking for what is not there keeps nothing. The caller unlocks.
func (s *Store) read(ctx context.Context, id tracking.AppID) (*application, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	s.mu.RLock()
	a := s.apps[id]
	s.mu.RUnlock()
	if a != nil {
		a.mu.RLock()
	}
	return a, nil
}

// application returns an application, making it when it is new.
func (s *Store) application(id tracking.AppID) *application {
	s.mu.RLock()
	a := s.apps[id]
	s.mu.RUnlock()
	if a != nil {
		return a
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a = s.apps[id]; a == nil {
		a = newApplication(id, &s.rowLocks)
		s.apps[id] = a
	}
	return a
}

// applications appends them all to room, or the one with that id unless it is "".
func (s *Store) applications(id tracking.AppID, room []*application) []*application {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if id != "" {
		if a := s.apps[id]; a != nil {
			room = append(room, a)
		}
		return room
	}
	room = slices.Grow(room, len(s.apps))
	for _, a := range s.apps {
		room = append(room, a)
	}
	return room
}

// Secret implements [tracking.Store].
func (s *Store) Secret(ctx context.Context) ([]byte, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secret == nil {
		s.secret = make([]byte, 32)
		rand.Read(s.secret) // never fails
	}
	return append([]byte(nil), s.secret...), nil
}

// Memo implements [tracking.Store].
func (s *Store) Memo(ctx context.Context, name string) ([]byte, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return append([]byte(nil), s.memos[name]...), nil
}

// SetMemo implements [tracking.Store].
func (s *Store) SetMemo(ctx context.Context, name string, value []byte) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := rows.Texts(name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memos == nil {
		s.memos = make(map[string][]byte)
	}
	s.memos[name] = append([]byte(nil), value...)
	return nil
}

// Close implements [tracking.Store]. What the store held is gone.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return s.ready(context.Background())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.apps)
	return nil
}

// place is where a row stands in lists by creation.
type place struct {
	created int64 // UTC ms
	seq     int64
}

func (p place) compare(q place) int {
	switch {
	case p.created != q.created:
		if p.created < q.created {
			return -1
		}
		return 1
	case p.seq < q.seq:
		return -1
	case p.seq > q.seq:
		return 1
	}
	return 0
}
