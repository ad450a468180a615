package main

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

type refuses struct{}

func (refuses) Notify(context.Context, tracking.Notification) error { return errors.New("down") }

// What could not be delivered is listed, and given back to be delivered anew, by commands.
func TestDeadEvents(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tracking.db")
	store, err := sqlite.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	svc, err := tracking.New(store, &tracking.Options{
		Notifiers: map[string]tracking.Notifier{"webhook": refuses{}}, RetryWaits: []time.Duration{0},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		task, err := svc.CreateTask(t.Context(), tracking.NewTask{
			Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "12 Anna Salai"},
		})
		if err == nil {
			_, err = svc.DeliverEvents(t.Context())
		}
		if err != nil {
			t.Fatal(task, err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	command := func(args ...string) string {
		t.Helper()
		return runCommand(t, append([]string{"dead", args[0], "-store", "sqlite:" + file}, args[1:]...)...)
	}
	rows := regexp.MustCompile(`(?m)^(\S+) +webhook +\S+ +task.created +task \S+$`).FindAllStringSubmatch(command("list"), -1)
	if len(rows) != 3 {
		t.Fatalf("the list of dead events is\n%s", command("list"))
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-outbox", "push"}, "0 "}, {[]string{"none"}, "0 "}, {[]string{rows[1][1]}, "1 "},
		{[]string{rows[1][1]}, "0 "}, {[]string{"-outbox", "webhook"}, "2 "}, {nil, "0 "},
	} {
		if got := command(append([]string{"replay"}, c.args...)...); !strings.HasPrefix(got, c.want) {
			t.Errorf("dead replay %q says %q, want %s…", c.args, got, c.want)
		}
	}
	if list := command("list"); strings.Count(list, "\n") != 1 {
		t.Errorf("after the replay\n%s", list)
	}
}
