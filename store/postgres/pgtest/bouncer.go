package pgtest

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// bouncerKeeper runs a pooler until there is nothing more to read, as keeper does a server.
const bouncerKeeper = `
trap '' HUP INT TERM
"$2" -q "$1/pgbouncer.ini" >>"$1/log" 2>&1 </dev/null &
pid=$!
cat
kill -KILL $pid # it has nothing to lose
wait $pid
rm -rf "$1"
`

// NewBouncer starts a PgBouncer in transaction mode before the server that a URL of Database names,
// and returns the URL to use instead. It ends with the test.
func NewBouncer(t testing.TB, database string) string {
	t.Helper()
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		bin = "/usr/sbin/pgbouncer"
		if _, err := os.Stat(bin); err != nil {
			missing(t, fmt.Errorf("there is no pgbouncer"))
		}
	}
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	host, port, user := u.Query().Get("host"), u.Query().Get("port"), u.User.Username()
	if host == "" {
		host, port = u.Hostname(), u.Port()
	}
	if port == "" {
		port = "5432"
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		t.Fatal(err)
	}
	who, err := unprivileged(dir)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`[databases]
* = host=%s port=%s user=%s
[pgbouncer]
listen_port = 6432
unix_socket_dir = %s
pool_mode = transaction
auth_type = any
default_pool_size = 10
max_client_conn = 200
`, host, port, user, dir)
	if err := os.WriteFile(filepath.Join(dir, "pgbouncer.ini"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	keeper := exec.Command("/bin/sh", "-c", bouncerKeeper, "pgtest", dir, bin)
	keeper.Dir, keeper.SysProcAttr = dir, who
	end, err := keeper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end.Close()
		_ = keeper.Wait()
	})
	through := fmt.Sprintf("postgres://%s@%s?host=%s&port=6432", user, u.EscapedPath(), dir)
	for deadline := time.Now().Add(20 * time.Second); ; {
		if err = run(through+"&default_query_exec_mode=exec", "SELECT 1"); err == nil {
			return through
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("pgbouncer does not answer: %v: %s", err, log)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
