package postgres_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking/store/postgres"
	"github.com/seed-8aba7b13/tracking/store/postgres/pgtest"
)

var crew = [...]string{"a", "b", "c"}

// crew are three processes at work.
func (f *fleet) crew(s *postgres.Store) (workers []*worker) {
	f.hire(s, crew[:]...)
	for _, name := range crew {
		workers = append(workers, f.start(name))
	}
	return workers
}

// One of three processes is killed again and again, and another started: nothing that any of them
// was told is done is lost, and nothing is done by half.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	if isWorker(t) {
		return
	}
	f := newFleet(t, template.Database(t))
	s := open(t, f.url, nil)
	defer s.Close()
	workers := f.crew(s)
	kills := endured(5, 200)
	r := rand.New(rand.NewPCG(1, 2))
	for range kills {
		i := r.IntN(len(workers))
		f.await(1+r.IntN(20), workers[i])
		workers[i].kill()
		workers[i] = f.start(crew[i])
	}
	f.await(1, workers...)
	f.finish(workers...)
	f.check(s)
	t.Logf("%d kills", kills)
}

// The server ends at once under load, as a lost machine would, and comes back: the processes go on by
// themselves, and nothing that they were told is done is lost.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	if isWorker(t) {
		return
	}
	cluster := pgtest.NewCluster(t)
	f := newFleet(t, cluster.URL)
	s := open(t, f.url, nil)
	defer s.Close()
	workers := f.crew(s)
	kills := endured(2, 20)
	r := rand.New(rand.NewPCG(3, 4))
	for range kills {
		f.await(1+r.IntN(40), workers...)
		cluster.Kill(t)
		cluster.Start(t)
	}
	f.await(20, workers...)
	f.finish(workers...)
	f.check(s)
	if f.unknown == 0 {
		t.Error("no call was under way when the server was killed")
	}
	t.Logf("%d kills of the server", kills)
}

// A server is lost under load and the one that stood by takes over: the URL names both, and which of
// them writes is found out by those who connect.
func TestPromotedStandby(t *testing.T) {
	t.Parallel()
	if isWorker(t) {
		return
	}
	first := pgtest.NewCluster(t)
	second := first.Standby(t)
	_, other, _ := strings.Cut(second.URL, "host=")
	f := newFleet(t, first.URL+","+other+"&target_session_attrs=read-write")
	s := open(t, f.url, nil)
	defer s.Close()
	workers := f.crew(s)
	f.await(endured(20, 500), workers...)
	first.Kill(t)
	second.Promote(t)
	f.await(20, workers...)
	f.finish(workers...)
	f.check(s)
	if f.unknown == 0 {
		t.Error("no call was under way when the server was lost")
	}
}
