package httpadapter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// Two servers on one store: what one is told to do is told by the streams of
// the other, without any heartbeat.
func TestStreamsOfAnotherServer(t *testing.T) {
	store := memory.New()
	one := newServerOn(t, store)
	other := newServerOn(t, store, func(_ *tracking.Options, ho *httpadapter.Options) { ho.Heartbeat = time.Hour })
	token := one.newDriver("ravi")
	task := one.newTask("")
	v := other.listen(token, "")
	told := func(what, kind string) {
		t.Helper()
		if event, data := v.next(); event != "notice" || !strings.Contains(data, `"kind":"`+kind+`"`) {
			t.Fatalf("%s: %s %s", what, event, data)
		}
	}
	one.data(one.assign(task, "ravi"))
	told("the assignment", "assigned")
	one.data(one.app("POST", "/v1/task/update", `{"task_id":"`+task+`","notes":"n"}`))
	told("the change", "updated")
}
