package memory_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// A driver's row is used again for the next one while others record fixes, list, export and purge: nobody
// is ever told of one what is another's. A person is called after the id, and all that is his after him.
func TestRowsAreUsedAgainAmongReaders(t *testing.T) {
	for _, bits := range []uint64{^uint64(0), 1} { // with as many codes as ids, and with two
		t.Run(fmt.Sprintf("%#x", bits), func(t *testing.T) {
			memory.SetCodeBits(t, bits)
			s := &again{Store: memory.New(), TB: t}
			var over atomic.Bool
			var changers, others sync.WaitGroup
			for i := range 2 {
				changers.Go(func() {
					r := rand.New(rand.NewPCG(1, uint64(i)))
					for range 200 {
						s.change(againID(r))
					}
				})
			}
			for i, do := range []func(*rand.Rand){s.fix, s.fix, s.list, s.export, s.purge} {
				others.Go(func() {
					r := rand.New(rand.NewPCG(2, uint64(i)))
					for !over.Load() {
						do(r)
					}
				})
			}
			changers.Wait()
			over.Store(true)
			others.Wait()
		})
	}
}

// again is a store with few drivers, who come and go.
type again struct {
	*memory.Store
	testing.TB
	seconds atomic.Int64
}

func againID(r *rand.Rand) tracking.DriverID { return tracking.DriverID(fmt.Sprint("d", r.IntN(8))) }

// now is another moment with each call.
func (s *again) now() time.Time { return epoch.Add(time.Duration(s.seconds.Add(1)) * time.Second) }

// fine reports whether a call was served, and accepts that somebody else was faster.
func (s *again) fine(err error) bool {
	var conflict *tracking.ConflictError
	if err != nil && !errors.As(err, &conflict) && !errors.Is(err, tracking.ErrNotFound) {
		s.Error(err)
	}
	return err == nil
}

func (s *again) is(owner, what string) {
	if what != "" && !strings.HasPrefix(what, owner+" ") {
		s.Errorf("%q is said to be of %q", what, owner)
	}
}

func (s *again) isWhole(d tracking.Driver) {
	s.is(string(d.ID), d.Person)
	s.is(d.Person, d.Name)
	s.is(d.Person, d.Properties["person"])
	s.is(d.Person, d.Position.Fix.EventID)
}

// change makes a driver, or deletes the one who is there.
func (s *again) change(id tracking.DriverID) {
	cs := &tracking.Changeset{}
	if d, err := s.Driver(context.Background(), app, id); s.fine(err) {
		s.isWhole(d)
		cs.DeleteDrivers = []tracking.Driver{d}
	} else {
		person := fmt.Sprint(id, " ", s.seconds.Add(1))
		cs.Drivers = []tracking.Driver{{
			ID: id, Person: person, Name: person + " " + strings.Repeat("x", len(person)*9), CreatedAt: s.now(),
			Properties: map[string]string{"person": person + " ", "all": "yes"}, Available: true,
		}}
		cs.Events = []tracking.Event{{
			ID: "e" + person, Type: tracking.EventDriverAvailable, RecordedAt: s.now(), Person: person,
			Subject: tracking.Subject{Kind: tracking.KindDriver, ID: string(id)}, Notices: []tracking.Notice{{DriverID: id}},
		}}
	}
	_, err := s.Commit(context.Background(), app, cs)
	s.fine(err)
}

func (s *again) fix(r *rand.Rand) {
	d, err := s.Driver(context.Background(), app, againID(r))
	if !s.fine(err) {
		return
	}
	rec, err := s.RecordFixes(context.Background(), app, tracking.FixBatch{
		DriverID: d.ID, Person: d.Person, SeenAt: s.now(), Fixes: []tracking.Fix{{
			LngLat: tracking.LngLat{Lng: r.Float64(), Lat: r.Float64()}, Time: s.now(), Trusted: true,
			EventID: fmt.Sprint(d.Person, " ", r.IntN(1e9)),
		}},
	})
	if s.fine(err) && rec.Driver.Person != d.Person {
		s.Errorf("the fix of %s is kept for %s", d.Person, rec.Driver.Person)
	}
	s.isWhole(rec.Driver)
	for f, err := range s.Fixes(context.Background(), app, d.ID, tracking.FixRange{Person: d.Person, Limit: 9}) {
		s.fine(err)
		s.is(d.Person, f.EventID)
	}
	notices, _, err := s.Notices(context.Background(), app, d.ID, 0, 9)
	s.fine(err)
	for _, n := range notices {
		s.is(string(d.ID), n.Person)
		s.is("e"+n.Person, n.EventID+" ")
	}
}

func (s *again) list(r *rand.Rand) {
	here := tracking.LngLat{Lng: r.Float64(), Lat: r.Float64()}
	filter := tracking.DriverFilter{Page: tracking.Page{Limit: 1 + r.IntN(9)}}
	if r.IntN(2) == 0 {
		filter.Near = &here
	}
	if r.IntN(2) == 0 {
		filter.Properties = map[string]string{"all": "yes"}
	}
	found, _, err := s.Drivers(context.Background(), app, filter)
	s.fine(err)
	offered, err := s.Offers(context.Background(), app, tracking.Offer{At: here, MaxOpen: 1, Limit: 3})
	s.fine(err)
	for _, d := range append(found, offered...) {
		s.isWhole(d)
	}
}

func (s *again) export(r *rand.Rand) {
	for row, err := range s.Rows(context.Background(), tracking.RowQuery{}) {
		s.fine(err)
		switch v := row.Value.(type) {
		case tracking.DriverRow:
			s.isWhole(v.Driver)
			s.change(v.ID) // whose row is another one's before the fixes come
			s.purge(r)
			s.change(againID(r))
		case tracking.FixRow:
			s.is(string(v.DriverID), v.EventID)
		case tracking.Notice:
			s.is(string(v.DriverID), v.Person)
		}
	}
}

func (s *again) purge(r *rand.Rand) {
	before := s.now().Add(-time.Duration(r.IntN(300)) * time.Second)
	_, err := s.Purge(context.Background(), tracking.Before{Fixes: before, Events: before, Limit: 1 + r.IntN(20)})
	s.fine(err)
}
