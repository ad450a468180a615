package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

const app = tracking.DefaultApp

var start = time.Date(2024, 3, 10, 8, 0, 0, 0, time.UTC)

// spread runs work n times from that many goroutines.
func spread(goroutines, n int, work func(g int)) {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				work(g)
			}
		})
	}
	wg.Wait()
}

// hired makes so many drivers.
func hired(b *testing.B, s tracking.Store, n int) (ids []tracking.DriverID) {
	b.Helper()
	var cs tracking.Changeset
	for g := range n {
		ids = append(ids, tracking.DriverID(fmt.Sprintf("driver-%d", g)))
		cs.Drivers = append(cs.Drivers, tracking.Driver{ID: ids[g], Available: true, CreatedAt: start})
	}
	if _, err := s.Commit(context.Background(), app, &cs); err != nil {
		b.Fatal(err)
	}
	return ids
}

// BenchmarkFixes records fixes by so many callers at once.
func BenchmarkFixes(b *testing.B) {
	for _, goroutines := range []int{1, 64, 1000} {
		b.Run(fmt.Sprintf("%d", goroutines), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "tracking.db"), nil)
			defer s.Close()
			ctx := context.Background()
			drivers := hired(b, s, goroutines)
			sent := make([]int, goroutines)
			b.ResetTimer()
			spread(goroutines, b.N, func(g int) {
				f := drivenFix(g, sent[g])
				sent[g]++
				_, err := s.RecordFixes(ctx, app, tracking.FixBatch{
					DriverID: drivers[g], SeenAt: f.Time, Fixes: []tracking.Fix{f},
				})
				if err != nil {
					b.Error(err)
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "fixes/s")
		})
	}
}

// grouper is what grouped writing costs at least: the same queue, and one write for all that wait.
type grouper struct {
	queue chan chan error
	done  chan struct{}
}

// newGrouper starts what the store is measured by; write is for so many at once.
func newGrouper(write func(n int) error) *grouper {
	a := &grouper{make(chan chan error, 4096), make(chan struct{})}
	go func() {
		defer close(a.done)
		var group []chan error
		for c := range a.queue {
			group = append(group[:0], c)
			for seen := 0; seen < len(group); {
				seen = len(group)
				runtime.Gosched()
				for len(a.queue) > 0 && len(group) < 1024 {
					group = append(group, <-a.queue)
				}
			}
			err := write(len(group))
			for _, c := range group {
				c <- err
			}
		}
	}()
	return a
}

func (a *grouper) one() error {
	c := make(chan error, 1)
	a.queue <- c
	return <-c
}

func (a *grouper) close() {
	close(a.queue)
	<-a.done
}

// newAppender starts what the stores are measured by: a file that many append to, synced once for
// each group.
func newAppender(b *testing.B, size int) *grouper {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	record := make([]byte, size)
	var buf []byte
	return newGrouper(func(n int) error {
		buf = buf[:0]
		for range n {
			buf = append(buf, record...)
		}
		_, err := f.Write(buf)
		if err == nil {
			err = syscall.Fdatasync(int(f.Fd()))
		}
		return err
	})
}

// newRows starts the same with a bare table of SQLite's, by the store's driver and with its settings:
// a row of so many bytes for each, or all of a group in one row.
func newRows(b *testing.B, size int, together bool) *grouper {
	path := filepath.Join(b.TempDir(), "bare.db")
	conn := bareConn(b, path)
	if _, err := conn.ExecContext(context.Background(),
		"CREATE TABLE bare (n INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT"); err != nil {
		b.Fatal(err)
	}
	begin, commit := prepare(b, conn, "BEGIN IMMEDIATE"), prepare(b, conn, "COMMIT")
	insert := prepare(b, conn, "INSERT INTO bare (data) VALUES (?)")
	data := make([]byte, 1024*size)
	return newGrouper(func(n int) error {
		if _, err := begin.Exec(); err != nil {
			return err
		}
		row := data[:size]
		if together {
			row, n = data[:n*size], 1
		}
		for range n {
			if _, err := insert.Exec(row); err != nil {
				return err
			}
		}
		_, err := commit.Exec()
		return err
	})
}

// bareConn opens a file past the store, by its driver and with its settings.
func bareConn(b *testing.B, path string) *sqlx.Conn {
	b.Helper()
	db, err := sqlx.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"+
		"&_pragma=wal_autocheckpoint(2000)&_pragma=secure_delete(1)&_pragma=cache_size(-65536)&_pragma=temp_store(MEMORY)")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	conn, err := db.Connx(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return conn
}

func prepare(b *testing.B, conn *sqlx.Conn, query string) *sqlx.Stmt {
	b.Helper()
	st, err := conn.PreparexContext(context.Background(), query)
	if err != nil {
		b.Fatal(err)
	}
	return st
}

// BenchmarkAppend is what the disk allows, beside BenchmarkFixes, and what SQLite does where a fix is
// one row that nothing is known of, or all fixes of a group are one.
func BenchmarkAppend(b *testing.B) {
	const size = 64 // about what a fix takes
	for _, goroutines := range []int{1, 64, 1000} {
		run := func(name string, start func() *grouper) {
			b.Run(name, func(b *testing.B) {
				a := start()
				b.ResetTimer()
				spread(goroutines, b.N, func(int) {
					if err := a.one(); err != nil {
						b.Error(err)
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "fixes/s")
				b.StopTimer()
				a.close()
			})
		}
		run(fmt.Sprint(goroutines), func() *grouper { return newAppender(b, size) })
		run(fmt.Sprintf("%d rows", goroutines), func() *grouper { return newRows(b, size, false) })
		run(fmt.Sprintf("%d in one row", goroutines), func() *grouper { return newRows(b, size, true) })
	}
}

func BenchmarkAssign(b *testing.B) {
	storetest.BenchmarkAssign(b, func(t testing.TB) tracking.Store {
		return open(t, filepath.Join(t.TempDir(), "tracking.db"), nil)
	})
}

func BenchmarkDue(b *testing.B) {
	storetest.BenchmarkDue(b, func(t testing.TB) tracking.Store {
		return open(t, filepath.Join(t.TempDir(), "tracking.db"), nil)
	})
}

func BenchmarkLate(b *testing.B) {
	storetest.BenchmarkLate(b, func(t testing.TB) tracking.Store {
		return open(t, filepath.Join(t.TempDir(), "tracking.db"), nil)
	})
}
