package httpadapter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking/store/memory"
)

// Two servers on one store: what one is told to do is told by the streams of
// the other, long before the next heartbeat.
func TestStreamsOfAnotherServer(t *testing.T) {
	store := memory.New()
	one, other := newServerOn(t, store), newServerOn(t, store)
	token := one.newDriver("ravi")
	task := one.newTask("")
	v := other.listen(token, "")
	soon := func(what, kind string) {
		t.Helper()
		began := time.Now()
		if event, data := v.next(); event != "notice" || !strings.Contains(data, `"kind":"`+kind+`"`) {
			t.Fatalf("%s: %s %s", what, event, data)
		}
		if took := time.Since(began); took > 5*time.Second { // seconds for a machine that is busy
			t.Errorf("%s was told after %v", what, took)
		}
	}
	one.data(one.assign(task, "ravi"))
	soon("the assignment", "assigned")
	one.data(one.app("POST", "/v1/task/update", `{"task_id":"`+task+`","notes":"n"}`))
	soon("the change", "updated")
}
