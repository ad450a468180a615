package postgres_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

// cutter stands between a store and its server, and cuts connections about commits.
type cutter struct {
	network, server string
	listener        net.Listener

	every int

	mu   sync.Mutex
	rand *rand.Rand
	cuts [numCuts]int
	next cut
	off  bool
	gone []int32 // the server's processes behind the connections that were cut
}

type cut int

const (
	cutBefore cut = iota // the server never hears of the commit
	cutDuring            // nobody waits for what becomes of it
	cutAfter             // it was done, and the answer is lost
	numCuts
)

// newCutter returns a cutter, which cuts at one of so many commits, and the URL of what is behind it.
func newCutter(t testing.TB, database string, seed uint64, every int) (*cutter, string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{every: every, rand: rand.New(rand.NewPCG(seed, 0)), network: "tcp", server: u.Host}
	if dir := u.Query().Get("host"); dir != "" {
		c.network, c.server = "unix", filepath.Join(dir, ".s.PGSQL."+cmp.Or(u.Query().Get("port"), "5432"))
	}
	if c.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.listener.Close() })
	go func() {
		for {
			conn, err := c.listener.Accept()
			if err != nil {
				return
			}
			go c.serve(conn)
		}
	}()
	u.Host, u.RawQuery = c.listener.Addr().String(), "sslmode=disable"
	return c, u.String()
}

// decide says whether to cut the connection to a process at this commit, and how.
func (c *cutter) decide(pid int32) (how cut, yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off || c.rand.IntN(c.every) > 0 {
		return 0, false
	}
	how = c.next
	c.next = (c.next + 1) % numCuts
	c.cuts[how]++
	c.gone = append(c.gone, pid)
	return how, true
}

// tally wants some cuts in each way. A store may be at work yet.
func (c *cutter) tally(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Logf("%d cuts before, %d during, %d after a commit", c.cuts[cutBefore], c.cuts[cutDuring], c.cuts[cutAfter])
	for how, n := range c.cuts {
		if n == 0 {
			t.Errorf("no connection was cut in way %d", how)
		}
	}
}

// rest has nothing cut for a while.
func (c *cutter) rest(off bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = off
}

// settle waits until the server has done what it was sent before connections were cut.
func (c *cutter) settle(t testing.TB, beside *pgx.Conn) {
	t.Helper()
	c.mu.Lock()
	gone := c.gone
	c.gone = nil
	c.mu.Unlock()
	const ended = `SELECT NOT EXISTS (SELECT 1 FROM pg_stat_activity, pg_sleep(0.002) WHERE pid = ANY ($1))`
	for done := len(gone) == 0; !done; {
		if err := beside.QueryRow(context.Background(), ended, gone).Scan(&done); err != nil {
			t.Fatal(err)
		}
	}
}

// keyData is how the message begins in which a server tells a client which process of its it talks to.
var keyData = []byte{'K', 0, 0, 0, 12}

func (c *cutter) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial(c.network, c.server)
	if err != nil {
		return
	}
	defer server.Close()
	var mu sync.Mutex
	deaf := false // the next answer goes nowhere, and is the end
	var pid int32
	go func() {
		defer client.Close()
		defer server.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := server.Read(buf)
			mu.Lock()
			lost := deaf
			if at := bytes.Index(buf[:n], keyData); pid == 0 && at >= 0 && at+9 <= n {
				pid = int32(binary.BigEndian.Uint32(buf[at+5:]))
			}
			mu.Unlock()
			if err != nil || lost {
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		how, yes := cut(0), false
		if bytes.Contains(buf[:n], []byte("COMMIT")) {
			mu.Lock()
			who := pid
			mu.Unlock()
			how, yes = c.decide(who)
		}
		if yes && how == cutBefore {
			return
		}
		if yes && how == cutAfter {
			mu.Lock()
			deaf = true
			mu.Unlock()
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
		if yes && how == cutDuring {
			return
		}
		if yes {
			_, _ = io.Copy(io.Discard, client) // until the answer has come
			return
		}
	}
}

// Connections are cut about commits: what was acknowledged is there, nothing is there by half, and
// what became of the rest is said to be unknown.
func TestCutConnections(t *testing.T) {
	t.Parallel()
	direct := template.Database(t)
	s := open(t, direct, nil)
	defer s.Close()
	const callers = 12
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Drivers: someDrivers(callers)}); err != nil {
		t.Fatal(err)
	}
	c, through := newCutter(t, direct, 7, 10)
	behind := cutOff(t, c, through)
	defer behind.Close()

	const n = 40
	var acknowledged [callers][n]bool
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			for k := range n {
				id := fmt.Sprintf("%d-%d", g, k)
				var err error
				if k%2 == 0 {
					_, err = behind.Commit(t.Context(), app, &tracking.Changeset{
						Tasks: []tracking.Task{{
							ID: tracking.TaskID(id), Type: tracking.TypeDrop, Status: tracking.StatusCreated,
							CreatedAt: start,
						}},
						Events: []tracking.Event{{
							ID: id, Type: tracking.EventTaskCreated, RecordedAt: start,
							Subject: tracking.Subject{Kind: tracking.KindTask, ID: id},
						}},
					})
				} else {
					_, err = behind.RecordFixes(t.Context(), app, drive(g, 1, start.AddDate(0, 0, k)))
				}
				if acknowledged[g][k] = err == nil; err != nil && !errors.Is(err, tracking.ErrUnavailable) {
					t.Errorf("%s: %v", id, err)
				}
			}
		})
	}
	wg.Wait()

	events, _, err := s.Events(t.Context(), app, tracking.EventFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, e := range events {
		told[e.ID] = true
	}
	unknown, done := 0, 0
	for g := range callers {
		driver := tracking.DriverID(fmt.Sprintf("driver-%d", g))
		fixes, err := s.KeptFixes(t.Context(), app, driver, tracking.FixRange{Limit: n})
		if err != nil {
			t.Fatal(err)
		}
		kept := map[int]bool{}
		for _, f := range fixes {
			kept[int(f.Time.Sub(start).Hours()/24)] = true
		}
		for k := range n {
			id := fmt.Sprintf("%d-%d", g, k)
			there := kept[k]
			if k%2 == 0 {
				_, err := s.Task(t.Context(), app, tracking.TaskID(id))
				if err != nil && !errors.Is(err, tracking.ErrNotFound) {
					t.Fatal(err)
				}
				if there = err == nil; there != told[id] {
					t.Errorf("task %s is there: %v; its event: %v", id, there, told[id])
				}
			}
			switch {
			case acknowledged[g][k] && !there:
				t.Errorf("%s was acknowledged, and is lost", id)
			case !acknowledged[g][k]:
				if unknown++; there {
					done++
				}
			}
		}
	}
	c.tally(t)
	t.Logf("of %d calls whose outcome was unknown %d were done", unknown, done)
	if done == 0 || done == unknown {
		t.Errorf("of %d unknown calls %d were done; want some of both kinds", unknown, done)
	}
}

// storetest's histories are played while connections are cut.
func TestCutHistories(t *testing.T) {
	t.Parallel()
	next := emptied(t)
	url := next(t)
	direct := onPool(t, url, callersClock)
	c, through := newCutter(t, url, 11, 4)
	beside := connect(t, url)
	storetest.RunCut(t, func(t testing.TB) storetest.Cut {
		next(t)
		return storetest.Cut{
			Through: cutOff(t, c, through), Direct: direct(t), Settle: func() { c.settle(t, beside) },
		}
	})
	c.tally(t)
}

// cutOff opens a store behind a cutter, which reads COMMIT on the way.
func cutOff(t testing.TB, c *cutter, through string) *postgres.Store {
	t.Helper()
	c.rest(true)
	defer c.rest(false)
	return open(t, through+"&default_query_exec_mode=exec", callersClock)
}
