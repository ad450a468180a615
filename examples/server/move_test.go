package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// program is a command in a process of its own, which is not started yet.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"="+strings.Join(args, "\n"))
	cmd.Stderr = os.Stderr
	return cmd
}

// A store is piped from a file into a database by two processes, one of which is killed in the middle,
// and again. What phones and customers have from before goes on.
func TestMoveAStore(t *testing.T) {
	from, to := "sqlite:"+filepath.Join(t.TempDir(), "tracking.db"), blank.Database(t)
	link, token, key := furnish(t, from)

	var whole bytes.Buffer
	out := program(t, "export", "-store", from, "-secrets")
	out.Stdout = &whole
	if err := out.Run(); err != nil {
		t.Fatal(err)
	}
	first := program(t, "import", "-store", to)
	in, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	// It has written some rows by the time that it takes the last of these.
	if _, err := in.Write(whole.Bytes()[:whole.Len()*9/10]); err != nil {
		t.Fatal(err)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it will say that it was killed
	some := tasksIn(t, to)
	if some == 0 || some == manyTasks {
		t.Fatalf("when it was killed there were %d tasks", some)
	}

	out, second := program(t, "export", "-store", from, "-secrets"), program(t, "import", "-store", to)
	var said strings.Builder
	second.Stdout = &said
	if second.Stdin, err = out.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	if err := out.Run(); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Fatal(err)
	}
	rows := bytes.Count(whole.Bytes(), []byte("\n")) - 2
	if want := fmt.Sprintf("%d rows are in the store\n", rows); said.String() != want {
		t.Errorf("it says %q, want %q", &said, want)
	}

	s := start(t, "-store", to)
	if s.key != "" {
		t.Error("the server makes a key, although one was imported")
	}
	if got := s.status(key); got != http.StatusOK {
		t.Errorf("the key is answered %d", got)
	}
	for path, bearer := range map[string]string{"/v1/driver/tasks": token, "/track/" + link + "/state": ""} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if bearer != "" {
			req.Header.Set("Authorization", "Bearer "+bearer)
		}
		if got, _ := do(t, req); got != http.StatusOK {
			t.Errorf("%s is answered %d", strings.Replace(path, link, "LINK", 1), got)
		}
	}
}

// manyTasks are enough to be written in several batches.
const manyTasks = 9_000

// furnish has a driver join and makes tasks, of which he has one.
func furnish(t *testing.T, spec string) (link, token, key string) {
	t.Helper()
	withStore(t, spec, func(ctx context.Context, store tracking.Store, svc *tracking.Service) {
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		_, secret, err := svc.CreateKey(ctx, "till")
		must(err)
		invitation, err := svc.InviteDriver(ctx, tracking.NewInvite{DriverID: "asha"})
		must(err)
		joined, err := svc.Join(ctx, tracking.JoinRequest{Token: invitation.Token})
		must(err)
		task, err := svc.CreateTask(ctx, tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "Marienplatz 1"}})
		must(err)
		_, err = svc.AssignTask(ctx, task.ID, "asha")
		must(err)
		link, err = svc.TaskLink(ctx, task.ID)
		must(err)
		var cs tracking.Changeset
		for i := range manyTasks - 1 {
			at := time.Date(2024, 3, 10, 8, 50, 0, 0, time.UTC).Add(time.Duration(i) * time.Second)
			cs.Tasks = append(cs.Tasks, tracking.Task{
				ID: tracking.TaskID(fmt.Sprint("many ", i)), Type: tracking.TypeDrop, Status: tracking.StatusCompleted,
				Outcome: tracking.OutcomeSucceeded, Drop: &tracking.Place{Address: "Marienplatz 1"},
				CreatedAt: at, CompletedAt: at,
			})
		}
		_, err = store.Commit(ctx, tracking.DefaultApp, &cs)
		must(err)
		token, key = joined.Token, secret
	})
	return link, token, key
}

func tasksIn(t *testing.T, spec string) (n int) {
	t.Helper()
	withStore(t, spec, func(ctx context.Context, store tracking.Store, _ *tracking.Service) {
		for _, err := range store.Rows(ctx, tracking.RowQuery{Kinds: []tracking.RowKind{tracking.RowTask}}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
	})
	return n
}

func withStore(t *testing.T, spec string, do func(context.Context, tracking.Store, *tracking.Service)) {
	t.Helper()
	tool := newTool("test", "", "", quiet)
	if err := tool.parse([]string{"-store", spec}, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := tool.with(t.Context(), func(store tracking.Store, svc *tracking.Service) error {
		do(t.Context(), store, svc)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// One person's data is written without anything that gives access.
func TestExportOfOne(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "tracking.db")
	furnish(t, store)
	text := runCommand(t, "export", "-store", store, "-driver", "asha")
	if n := strings.Count(text, "\n{\"kind\":\"task\""); n != 1 {
		t.Errorf("the export of a driver has %d tasks, want the one", n)
	}
	for _, word := range []string{`"app_token"`, `"hash"`, `"kind":"key"`, `"kind":"secret"`} {
		if strings.Contains(text, word) {
			t.Errorf("the export of a driver has %s", word)
		}
	}
	var out, log strings.Builder
	if err := run(t.Context(), []string{"export", "-store", store, "-driver", "nobody"},
		streams{out: &out, log: &log, env: noEnv}); err == nil {
		t.Error("the export of nobody succeeds")
	}
}
