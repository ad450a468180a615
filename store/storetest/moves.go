package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-8aba7b13/tracking"
)

// RunMoves exports from one store and imports into another, which then has to be as the first one
// was. Each call of from and to gives a new, empty store.
func RunMoves(t *testing.T, from, to func(t testing.TB) tracking.Store) {
	t.Run("every field", func(t *testing.T) {
		a, b := opened(t, from), opened(t, to)
		restoreAll(t, a, fullRows())
		whole := exported(t, a)
		if again := exported(t, a); !bytes.Equal(again, whole) {
			t.Error("a second export is another one")
		}
		imported(t, b, whole)
		sameStores(t, b, a)
		refused(t, b, whole)
		sameStores(t, b, a)
	})
	t.Run("answers that are lost", func(t *testing.T) {
		a := opened(t, from)
		restoreAll(t, a, fullRows())
		restoreAll(t, a, manyRows(4_500))
		whole := exported(t, a)
		b := opened(t, to)
		lost := 0
		for {
			n, err := moving(t, losesAnswers{b}).Import(t.Context(), bytes.NewReader(whole))
			if err == nil {
				if want := bytes.Count(whole, []byte("\n")) - 2; n != want {
					t.Errorf("Import says that there are %d rows, want %d", n, want)
				}
				break
			}
			if lost++; !errors.Is(err, tracking.ErrUnavailable) || lost > 100 {
				t.Fatalf("after %d answers that were lost: error %v", lost, err)
			}
		}
		if lost < 2 {
			t.Errorf("%d answers were lost; want one of each batch", lost)
		}
		sameStores(t, b, a)
		refused(t, b, whole)
	})
	t.Run("a mark that cannot be removed", func(t *testing.T) {
		a, b := opened(t, from), opened(t, to)
		restoreAll(t, a, fullRows())
		whole := exported(t, a)
		for range 2 {
			imported(t, keepsMarks{b}, whole)
		}
		imported(t, b, whole)
		refused(t, b, whole)
		sameStores(t, b, a)
	})
	t.Run("after a break", func(t *testing.T) {
		a := opened(t, from)
		restoreAll(t, a, fullRows())
		restoreAll(t, a, manyRows(4_500))
		whole := exported(t, a)
		b := opened(t, to)
		for _, part := range []int{10, 50, 90} {
			cut := whole[:len(whole)*part/100]
			if _, err := moving(t, b).Import(t.Context(), bytes.NewReader(cut)); !errors.Is(err, tracking.ErrInvalid) {
				t.Fatalf("of %d %% of an export: error %v", part, err)
			}
		}
		broken := io.MultiReader(bytes.NewReader(whole[:len(whole)*95/100]), brokenReader{})
		if _, err := moving(t, b).Import(t.Context(), broken); !errors.Is(err, tracking.ErrUnavailable) {
			t.Fatalf("of a reader that fails: error %v", err)
		}
		imported(t, b, whole)
		sameStores(t, b, a)
	})
	t.Run("a conflict after the first batch", func(t *testing.T) {
		whole, other := tasksOf("t", 4_500), tasksOf("other", 2)
		met := func(s tracking.Store, export []byte, lines string) {
			t.Helper()
			_, err := moving(t, s).Import(t.Context(), bytes.NewReader(export))
			if !errors.Is(err, tracking.ErrConflict) || !strings.HasPrefix(err.Error(), lines+": ") {
				t.Fatalf("got error %v, want a conflict of %s", err, lines)
			}
		}
		tasks := func(s tracking.Store) (list []tracking.Task) {
			for _, r := range allRows(t, s, tracking.RowQuery{Kinds: []tracking.RowKind{tracking.RowTask}}) {
				list = append(list, r.Value.(tracking.Task))
			}
			return list
		}
		halfway := func(id tracking.TaskID, export []byte, lines string) (tracking.Store, *client) {
			s := opened(t, to)
			c := use(t, s, here)
			c.commit(tracking.Changeset{Tasks: []tracking.Task{newTask(id, t0)}})
			for range 2 {
				met(s, export, lines)
			}
			return s, c
		}
		s, c := halfway("t4400", whole, "lines 4098 to 4501")
		c.commit(tracking.Changeset{DeleteTasks: []tracking.Task{c.task("t4400")}})
		imported(t, s, whole) // it goes on
		same(t, "tasks", len(tasks(s)), 4_500)
		refused(t, s, whole)

		s, _ = halfway("t4400", whole, "lines 4098 to 4501")
		imported(t, s, other) // what was refused is in nobody's way
		met(s, whole, "lines 2 to 4097")

		// Nor is it in the way of an export that begins like it and has fewer rows than are there.
		s, c = halfway("t8500", tasksOf("t", 9_000), "lines 8194 to 9001")
		_, err := moving(t, s).Import(t.Context(), bytes.NewReader(tasksOf("t", 5_000)))
		if !errors.Is(err, tracking.ErrConflict) {
			t.Errorf("got error %v, want a conflict", err)
		}
		c.commit(tracking.Changeset{DeleteTasks: tasks(s)})
		imported(t, s, tasksOf("t", 5_000))
		same(t, "tasks", len(tasks(s)), 5_000)
	})
	t.Run("an answer that is lost at the last moment", func(t *testing.T) {
		s, whole := opened(t, to), tasksOf("t", 2)
		imported(t, s, whole)
		_, err := moving(t, s).Import(t.Context(), bytes.NewReader(whole))
		if err == nil || !strings.Contains(err.Error(), "was through") {
			t.Errorf("got error %v, want one that says that it was through", err)
		}
		_, err = moving(t, s).Import(t.Context(), bytes.NewReader(tasksOf("t", 1)))
		if err == nil || strings.Contains(err.Error(), "was through") {
			t.Errorf("of another export: got error %v, want one that does not say that it was through", err)
		}
	})
	t.Run("history", func(t *testing.T) {
		rapid.Check(t, fewer(4, func(rt *rapid.T) {
			a := from(t)
			defer a.Close()
			w := newWorld(rt, a)
			repeat(rt, 1, w.actions())
			b := to(t)
			defer b.Close()
			imported(t, b, exported(t, a))
			sameStores(t, b, a)
			w.T, w.s = rt, b
			w.now = w.now.Add(2 * time.Minute) // leases stay behind
			// Events come by application: of different ones they are of another age now.
			slices.SortStableFunc(w.ref.log, func(a, b *entry) int { return strings.Compare(string(a.app), string(b.app)) })
			repeat(rt, 1, w.actions())
			w.compareAll()
		}))
	})
}

// brokenReader fails.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

// losesAnswers is a store whose answers to Restore are lost.
type losesAnswers struct{ tracking.Store }

func (s losesAnswers) Restore(ctx context.Context, r tracking.Restoring) error {
	return cmp.Or(s.Store.Restore(ctx, r), error(tracking.ErrUnavailable))
}

// keepsMarks is a store that fails before it restores a memo alone.
type keepsMarks struct{ tracking.Store }

func (s keepsMarks) Restore(ctx context.Context, r tracking.Restoring) error {
	if len(r.Rows) == 0 {
		return tracking.ErrUnavailable
	}
	return s.Store.Restore(ctx, r)
}

// tasksOf is an export that has tasks.
func tasksOf(name string, n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"kind":"export","version":1,"of":"application","secrets":false}` + "\n")
	for i := range n {
		fmt.Fprintf(&b, `{"kind":"task","app":%q,"task_id":"%s%d","version":1,"type":2,"status":"created",`+
			`"time":"2024-03-10T08:50:00.000Z","created_at":"2024-03-10T08:50:00.000Z"}`+"\n", here, name, i)
	}
	fmt.Fprintf(&b, `{"kind":"end","rows":%d}`+"\n", n)
	return b.Bytes()
}

// manyRows are tasks of an application.
func manyRows(n int) (rows []tracking.Row) {
	for i := range n {
		task := newTask(tracking.TaskID(fmt.Sprint("many ", i)), at(time.Duration(i)*time.Second))
		task.Version = 1
		rows = append(rows, tracking.Row{App: "many", Value: task})
	}
	return rows
}

func moving(t testing.TB, s tracking.Store) *tracking.Service {
	t.Helper()
	svc, err := tracking.New(s, &tracking.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

func exported(t testing.TB, s tracking.Store) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := moving(t, s).Export(t.Context(), &b, tracking.ExportFilter{AllApps: true, Secrets: true}); err != nil {
		t.Fatalf("Export: %v", err)
	}
	return b.Bytes()
}

func imported(t testing.TB, s tracking.Store, whole []byte) {
	t.Helper()
	n, err := moving(t, s).Import(t.Context(), bytes.NewReader(whole))
	if err != nil {
		t.Fatalf("Import: %v", err)
	}
	if lines := bytes.Count(whole, []byte("\n")); n != lines-2 {
		t.Errorf("Import says that there are %d rows; the export has %d lines", n, lines)
	}
}

// refused imports what is there already.
func refused(t testing.TB, s tracking.Store, whole []byte) {
	t.Helper()
	_, err := moving(t, s).Import(t.Context(), bytes.NewReader(whole))
	if !errors.Is(err, tracking.ErrConflict) || !strings.HasPrefix(err.Error(), "line") {
		t.Errorf("an import of what is there: got error %v, want a conflict that names a line", err)
	}
}

// sameStores compares all rows. A store that was never asked for its secret has none to give away.
func sameStores(t testing.TB, got, want tracking.Store) {
	t.Helper()
	list := func(s tracking.Store) []tracking.Row {
		return slices.DeleteFunc(allRows(t, s, tracking.RowQuery{}), func(r tracking.Row) bool {
			m, memo := r.Value.(tracking.Memo)
			return memo && m.Name == "import"
		})
	}
	gotRows, wantRows := list(got), list(want)
	if len(wantRows) == 0 || wantRows[0].Kind() != tracking.RowSecret {
		gotRows = slices.DeleteFunc(gotRows, func(r tracking.Row) bool { return r.Kind() == tracking.RowSecret })
	}
	sameRows(t, "rows after the import", gotRows, wantRows)
}
