// Package pgtest gives tests a PostgreSQL server, and each a database of its own.
//
// The server is that of TRACKING_POSTGRES, a URL whose user may create databases. Without it one is
// started where initdb is found, and ends with the test binary, however that ends. Where there is
// none the test is skipped by name, and fails with TRACKING_LONG=1.
//
// It is for tests of programs over store/postgres too: a [Template] is a database as they begin with,
// a [Cluster] a server that a test may kill, and [NewBouncer] a pooler in front of one.
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

var server = sync.OnceValues(func() (string, error) {
	if u := os.Getenv("TRACKING_POSTGRES"); u != "" {
		return u, nil
	}
	c, err := start()
	if err != nil {
		return "", err
	}
	shared = c
	return c.URL, nil
})

// shared is the cluster that server has started, if any.
var shared *Cluster

// URL is where the server is.
func URL(t testing.TB) string {
	t.Helper()
	u, err := server()
	if err != nil {
		missing(t, err)
	}
	return u
}

func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("TRACKING_LONG") == "1" {
		t.Fatalf("no PostgreSQL: %v", err)
	}
	t.Skipf("no PostgreSQL: %v", err)
}

// Template is a database that those of the tests are copies of: migrated once.
type Template struct {
	migrate func(ctx context.Context, url string) error
	make    sync.Once
	name    string
	err     error
}

// NewTemplate returns a template, which is made by migrate when it is first asked for.
func NewTemplate(migrate func(ctx context.Context, url string) error) *Template {
	return &Template{migrate: migrate}
}

// Database makes a database of the test's own and returns its URL. It is dropped when the test
// ends, with whoever is still connected.
func (m *Template) Database(t testing.TB) string {
	t.Helper()
	base := URL(t)
	m.make.Do(func() { m.name, m.err = m.build(base) })
	if m.err != nil {
		t.Fatalf("the template of the databases: %v", m.err)
	}
	name := newName()
	if err := run(base, "CREATE DATABASE "+name+" TEMPLATE "+m.name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run(base, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return within(base, name)
}

func (m *Template) build(base string) (string, error) {
	name := newName()
	if err := run(base, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	made.Lock()
	made.names = append(made.names, name)
	made.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return name, m.migrate(ctx, within(base, name))
}

// made are the templates of this process.
var made struct {
	sync.Mutex
	names []string
}

// Main runs the tests of a package, takes away what they have in common, and returns the code to
// exit with.
func Main(m *testing.M) int {
	code := m.Run()
	if shared != nil {
		shared.end()
		return code
	}
	for _, name := range made.names {
		if err := run(os.Getenv("TRACKING_POSTGRES"), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

var databases atomic.Int64

// newName is that of no other database on the server, also where several binaries test at once.
func newName() string {
	return fmt.Sprintf("tracking_%d_%x_%d", os.Getpid(), began.UnixNano(), databases.Add(1))
}

var began = time.Now()

// within is the URL of another database on the same server.
func within(base, database string) string {
	u, err := url.Parse(base)
	if err != nil {
		panic(err) // run has parsed it
	}
	u.Path = "/" + database
	return u.String()
}

// run runs one statement on a connection of its own.
func run(where, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, where)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql)
	return err
}
