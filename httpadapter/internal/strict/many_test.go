package strict_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

// A body that is nothing but tiny members, or faults, is refused before they have taken many times
// its size.
func TestMaxMembers(t *testing.T) {
	shape := strict.ShapeOf[struct {
		Tasks strict.Elements[struct{}] `json:"tasks"`
	}]()
	type result struct {
		Err  string
		Much bool // memory was taken
	}
	const largest = 2 << 20
	tooMany := "The body has more than " + strconv.Itoa(strict.MaxMembers) + " members."
	long := func(head, each, tail string) string {
		return head + strings.Repeat(each, (largest-len(head)-len(tail))/len(each)) + tail
	}
	var keys strings.Builder
	for i := range largest / 8 {
		fmt.Fprintf(&keys, `"%x":0,`, i)
	}
	for _, tt := range []struct {
		name, body, want string
		most             uint64 // MiB of memory
	}{
		{"of one object", long(`{"x":{`, `"":0,`, `"y":0}}`), tooMany, 12},
		{"of one object, all different", `{"x":{` + keys.String() + `"y":0}}`, tooMany, 30},
		{"of many objects", long(`{"x":[`, `{"":0},`, `0]}`), tooMany, 12},
		{"of one more", `{"x":[` + strings.Repeat(`{"":0},`, strict.MaxMembers-1) + `{"y":0}]}`, tooMany, 12},
		{"of one less", `{"x":[` + strings.Repeat(`{"":0},`, strict.MaxMembers-1) + `{}]}`, "", 12},
		{"twice in each element", long(`{"tasks":[`, `{"":0,"":0},`, `{}]}`), "The body gives a key twice.", 12},
		{
			"half of a pair in each element", long(`{"tasks":[`, `"\ud800",`, `{}]}`),
			`The body holds half of a surrogate pair (\ud800 to \udfff) in a text.`, 12,
		},
		{"twice in each of some", `{"tasks":[` + strings.Repeat(`{"":0,"":0,"":0},`, 1000) + `{}]}`, "", 12},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := shape.Decode([]byte(tt.body))
		runtime.ReadMemStats(&after)
		got := result{Much: after.TotalAlloc-before.TotalAlloc-uint64(len(tt.body)) > tt.most<<20}
		if err != nil {
			got.Err = err.Error()
		}
		if diff := cmp.Diff(result{Err: tt.want}, got); diff != "" {
			t.Errorf("%s, %d bytes (-want +got):\n%s", tt.name, len(tt.body), diff)
		}
	}
}
