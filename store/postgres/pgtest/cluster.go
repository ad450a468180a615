package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cluster is a server of its own, in a temporary folder and on a Unix socket in it.
type Cluster struct {
	URL     string
	dir     string
	keeper  *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Scanner
}

// NewCluster starts a server of the test's own, which may be killed.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	c, err := start()
	if err != nil {
		missing(t, err)
	}
	t.Cleanup(c.end)
	return c
}

// The keeper of a server is a process beside the tests. It does what it reads, and ends the server
// when there is nothing more to read: the pipe is closed with the test binary, also when that is
// killed.
const keeper = `
trap '' HUP INT TERM
dir=$1 bin=$2
start() {
	"$bin/postgres" -D "$dir/data" -k "$dir" -c listen_addresses= -c max_connections=200 \
		-c shared_buffers=256MB -c max_wal_size=4GB >>"$dir/log" 2>&1 </dev/null &
	pid=$!
	until "$bin/pg_isready" -q -h "$dir" -d postgres; do
		kill -0 $pid 2>/dev/null || { echo failed; return; }
		sleep 0.05
	done
	echo started
}
stop() {
	kill -QUIT $pid 2>/dev/null
	wait $pid
}
start
while read -r order; do
	case $order in
	kill) stop; echo stopped ;;
	start) start ;;
	esac
done
stop
rm -rf "$dir"
`

// start makes a cluster and starts it.
func start() (_ *Cluster, err error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	if len(dir) > 80 {
		return nil, fmt.Errorf("the temporary folder's name is too long for that of a socket: %s", dir)
	}
	who, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"),
		"-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, who
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	return launch(bin, dir, who)
}

// launch starts the server whose data are in a folder.
func launch(bin, dir string, who *syscall.SysProcAttr) (*Cluster, error) {
	c := &Cluster{URL: "postgres://postgres@/postgres?host=" + dir, dir: dir}
	c.keeper = exec.Command("/bin/sh", "-c", keeper, "pgtest", dir, bin)
	c.keeper.Dir, c.keeper.SysProcAttr = dir, who
	var err error
	if c.orders, err = c.keeper.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.keeper.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.answers = bufio.NewScanner(out)
	if err := c.keeper.Start(); err != nil {
		return nil, err
	}
	if err := c.heard("started"); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// Standby starts a second server that has all that the first one has: from now on that one says that
// something is committed when both have it. It reads only, until it is promoted.
func (c *Cluster) Standby(t testing.TB) *Cluster {
	t.Helper()
	bin, err := programs()
	if err != nil {
		missing(t, err)
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		t.Fatal(err)
	}
	who, err := unprivileged(dir)
	if err != nil {
		t.Fatal(err)
	}
	backup := exec.Command(filepath.Join(bin, "pg_basebackup"), "-h", c.dir, "-U", "postgres",
		"-D", filepath.Join(dir, "data"), "-c", "fast", "-R", "--no-sync")
	backup.Dir, backup.SysProcAttr = dir, who
	if out, err := backup.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v: %s", err, out)
	}
	second, err := launch(bin, dir, who)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.end)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, sql := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	const follows = "SELECT count(*) = 1 FROM pg_stat_replication, pg_sleep(0.02) WHERE sync_state = 'sync'"
	for in := false; !in; {
		if err := conn.QueryRow(ctx, follows).Scan(&in); err != nil {
			t.Fatalf("the standby does not follow: %v", err)
		}
	}
	return second
}

// Promote lets a standby write.
func (c *Cluster) Promote(t testing.TB) {
	t.Helper()
	if err := run(c.URL, "SELECT pg_promote()"); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) heard(want string) error {
	if c.answers.Scan() && c.answers.Text() == want {
		return nil
	}
	log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
	return fmt.Errorf("the server has not %s: %s", want, log)
}

// Kill ends the server at once, as a lost machine would ("immediate mode").
func (c *Cluster) Kill(t testing.TB) {
	t.Helper()
	c.order(t, "kill", "stopped")
}

// Start starts the server again, and returns when it has recovered.
func (c *Cluster) Start(t testing.TB) {
	t.Helper()
	c.order(t, "start", "started")
}

func (c *Cluster) order(t testing.TB, order, done string) {
	t.Helper()
	_, err := fmt.Fprintln(c.orders, order)
	if err == nil {
		err = c.heard(done)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// end ends the server and waits until nothing is left of it.
func (c *Cluster) end() {
	c.orders.Close()
	late := time.AfterFunc(30*time.Second, func() { c.keeper.Process.Kill() })
	defer late.Stop()
	for c.answers.Scan() { // until the keeper has closed its end
	}
	_ = c.keeper.Wait()
}

// programs is the folder of the server's programs: that of initdb.
func programs() (string, error) {
	if p, err := exec.LookPath("initdb"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil {
			return filepath.Dir(p), nil
		}
	}
	list, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(list) == 0 {
		return "", errors.New("TRACKING_POSTGRES is not set, and there is no initdb")
	}
	newest := slices.MaxFunc(list, func(a, b string) int {
		return len(a) - len(b) + strings.Compare(a, b) // 9 is before 15
	})
	return filepath.Dir(newest), nil
}
