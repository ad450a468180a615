package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking/store/postgres"
	"github.com/seed-8aba7b13/tracking/store/postgres/pgtest"
)

// blank are databases without anything in them.
var blank = pgtest.NewTemplate(func(context.Context, string) error { return nil })

// Two servers on one database serve one company: what came to the one the other has at once, and who
// follows a link at the other sees it within a second.
func TestTwoServers(t *testing.T) {
	store := blank.Database(t)
	if err := run(t.Context(), []string{"-store", store, "-migrate=false"}, quiet); err == nil ||
		!strings.Contains(err.Error(), postgres.ErrOlder.Error()) {
		t.Errorf("without -migrate, on an empty database, it ends with %v; want %v", err, postgres.ErrOlder)
	}
	one := start(t, "-store", store, "-key", "k")
	other := start(t, "-store", store, "-key", "k", "-migrate=false")

	id := one.call("", "/v1/task/create", `{"type":2,"drop":{"address":"45 First Avenue"}}`).text(t, "task.task_id")
	if got := other.call("", "/v1/task?task_id="+id, "").text(t, "task.task_id"); got != id {
		t.Errorf("the other has the task %s, want %s", got, id)
	}
	link := other.call("", "/v1/task/trackingurl/"+id, "").text(t, "webUrl")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	state := func(word string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "data:") && strings.Contains(lines.Text(), word) {
				return
			}
		}
		t.Fatalf("the stream has ended without %s: %v", word, lines.Err())
	}
	state(`"created"`)
	took := time.Hour
	for n := 1; n <= 5 && took > time.Second; n++ { // a busy machine lets one of them be
		street := fmt.Sprint(n, " Second Avenue")
		one.call("", "/v1/task/update", `{"task_id":"`+id+`","drop":{"address":"`+street+`"}}`)
		began := time.Now()
		state(street)
		took = min(took, time.Since(began))
	}
	if took > time.Second {
		t.Errorf("the other's link shows a change after %v, want within a second", took)
	}
	one.call("", "/v1/task/cancel", `{"task_id":"`+id+`"}`)
	state(`"cancelled"`)
}

func TestPlaceOfPostgresHasNoPassword(t *testing.T) {
	for spec, want := range map[string]string{
		"postgres://u:secret@h/d?sslmode=disable":  "postgres://h/d",
		"postgres://u@h/d?password=secret":         "postgres://h/d",
		"postgres://u:12#secret@h/d":               "postgres://h/d",
		"postgres://u@h/d?x=a;b&password=secret;c": "postgres://h/d",
		"sqlite:a.db": "sqlite:a.db",
	} {
		if got := placeOf(spec); got != want {
			t.Errorf("%s is shown as %s, want %s", spec, got, want)
		}
	}
}
