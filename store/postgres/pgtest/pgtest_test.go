package pgtest_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking/store/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

var template = pgtest.NewTemplate(func(ctx context.Context, url string) error {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, "CREATE TABLE t (n int)")
	return err
})

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func get[T any](t testing.TB, url, sql string) (v T) {
	t.Helper()
	c := connect(t, url)
	defer c.Close(t.Context())
	if err := c.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Each test has the template's tables, and none of another's rows.
func TestDatabase(t *testing.T) {
	base := pgtest.URL(t)
	var name string
	t.Run("one", func(t *testing.T) {
		url := template.Database(t)
		name = get[string](t, url, "SELECT current_database()")
		c := connect(t, url) // is left open: the database is dropped all the same
		if _, err := c.Exec(t.Context(), "INSERT INTO t VALUES (1)"); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("other", func(t *testing.T) {
		if n := get[int](t, template.Database(t), "SELECT count(*) FROM t"); n != 0 {
			t.Errorf("a new database has %d rows", n)
		}
	})
	if n := get[int](t, base, "SELECT count(*) FROM pg_database WHERE datname = '"+name+"'"); n != 0 {
		t.Errorf("%s is still there after its test", name)
	}
}

// A server of the tests syncs what it commits, so what it kept it has after it was killed.
func TestCluster(t *testing.T) {
	c := pgtest.NewCluster(t)
	if s := get[string](t, c.URL, "SELECT current_setting('fsync')"); s != "on" {
		t.Errorf("fsync is %s", s)
	}
	conn := connect(t, c.URL)
	if _, err := conn.Exec(t.Context(), "CREATE TABLE t (n int); INSERT INTO t VALUES (7)"); err != nil {
		t.Fatal(err)
	}
	c.Kill(t)
	if conn.Ping(t.Context()) == nil {
		t.Error("the server answers after it was killed")
	}
	c.Start(t)
	if n := get[int](t, c.URL, "SELECT n FROM t"); n != 7 {
		t.Errorf("n is %d after the server was killed, want 7", n)
	}
}

// TestKilled kills a test binary that has started a server: nothing of it is left.
func TestKilled(t *testing.T) {
	if os.Getenv("PGTEST_KILLED") != "" {
		_, dir, _ := strings.Cut(pgtest.NewCluster(t).URL, "host=")
		fmt.Println(dir)
		select {}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "PGTEST_KILLED=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	dir := lines.Text()
	if !filepath.IsAbs(dir) { // it was skipped there, or failed
		_ = cmd.Wait()
		if os.Getenv("TRACKING_LONG") == "1" {
			t.Fatalf("no server was started: %s", dir)
		}
		t.Skip("no PostgreSQL to be started")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for deadline := time.After(20 * time.Second); ; {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s is still there", dir)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func BenchmarkDatabase(b *testing.B) {
	template.Database(b)
	for b.Loop() {
		template.Database(b) // dropped when all are made
	}
}
