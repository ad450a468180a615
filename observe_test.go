package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// notObserved are the methods with a context that are no operation: they go on for as long as
// somebody wants, or end what does.
var notObserved = []string{"Run", "Follow", "Close"}

// Whoever adds an operation to Service has to let Options.Observe see it, by its own name and before
// anything else.
func TestEveryOperationIsObserved(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	begins := map[string]string{} // a method's name → its first statement, as text
	for _, f := range files {
		if name := f.Name(); slices.Contains([]string{
			"tracking.go", "task.go", "trip.go", "driver.go", "invite.go",
		}, name) {
			firstStatements(t, name, begins)
		}
	}
	service := reflect.TypeFor[*tracking.Service]()
	ctx := reflect.TypeFor[context.Context]()
	n := 0
	for i := range service.NumMethod() {
		m := service.Method(i)
		if m.Type.NumIn() < 2 || m.Type.In(1) != ctx {
			continue
		}
		want := fmt.Sprintf("defer s.observe(&ctx, %q).end(&err)", m.Name)
		switch got := begins[m.Name]; {
		case slices.Contains(notObserved, m.Name):
			if got == want {
				t.Errorf("Service.%s is listed as not observed, and is", m.Name)
			}
		case got != want:
			t.Errorf("Service.%s begins with\n\t%s\nwant\n\t%s", m.Name, got, want)
		default:
			n++
		}
	}
	if n < 70 {
		t.Errorf("only %d operations were looked at", n)
	}
}

func firstStatements(t *testing.T, file string, begins map[string]string) {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || len(fn.Body.List) == 0 {
			continue
		}
		if of, ok := fn.Recv.List[0].Type.(*ast.StarExpr); !ok || of.X.(*ast.Ident).Name != "Service" {
			continue
		}
		first := fn.Body.List[0]
		begins[fn.Name.Name] = string(src[set.Position(first.Pos()).Offset:set.Position(first.End()).Offset])
	}
}

// observer notes the operations, as "name: code" at their ends.
type observer struct {
	mu    sync.Mutex
	ended []string
}

type opKey struct{}

func (o *observer) observe(ctx context.Context, op string) (context.Context, func(tracking.ErrorCode)) {
	if outer, ok := ctx.Value(opKey{}).(string); ok {
		op = outer + "/" + op
	}
	return context.WithValue(ctx, opKey{}, op), func(code tracking.ErrorCode) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.ended = append(o.ended, op+": "+string(code))
	}
}

// witness is a store that notes in which operation it is read, and panics or fails when told to.
type witness struct {
	tracking.Store
	within string
	fault  func() error
}

func (w *witness) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	w.within, _ = ctx.Value(opKey{}).(string)
	if w.fault != nil {
		if err := w.fault(); err != nil {
			return tracking.Task{}, err
		}
	}
	return w.Store.Task(ctx, app, id)
}

func TestObserve(t *testing.T) {
	var o observer
	w := &witness{Store: memory.New()}
	svc := must(tracking.New(w, &tracking.Options{Observe: o.observe}))(t)
	ctx := t.Context()
	task := must(svc.CreateTask(ctx, newDrop()))(t)
	must(svc.Task(ctx, task.ID))(t)
	if w.within != "Task" {
		t.Errorf("the store was read within %q", w.within)
	}
	if _, err := svc.CreateTask(ctx, tracking.NewTask{}); !errors.Is(err, tracking.ErrInvalid) {
		t.Error(err)
	}
	if _, err := svc.Task(ctx, "none"); !errors.Is(err, tracking.ErrNotFound) {
		t.Error(err)
	}
	must(svc.CreateTasks(ctx, []tracking.NewTask{newDrop()}))(t)
	must(svc.ForApp("other").As("user:1").Keys(ctx))(t)
	w.fault = func() error { return errors.New("a fault of the store's") }
	if _, err := svc.Task(ctx, task.ID); !errors.Is(err, tracking.ErrInternal) {
		t.Error(err)
	}
	w.fault = func() error { panic("oops") }
	func() {
		defer func() {
			if p := recover(); p != "oops" {
				t.Errorf("the panic came as %v", p)
			}
		}()
		svc.Task(ctx, task.ID)
	}()
	ended, stop := context.WithCancel(ctx)
	stop()
	if _, err := svc.Keys(ended); !errors.Is(err, tracking.ErrUnavailable) {
		t.Error(err)
	}
	want := []string{
		"CreateTask: ", "Task: ", "CreateTask: invalid", "Task: not_found", "CreateTasks/CreateTask: ", "CreateTasks: ",
		"Keys: ", "Task: internal", "Task: internal", "Keys: unavailable",
	}
	if !slices.Equal(o.ended, want) {
		t.Errorf("observed\n\t%q\nwant\n\t%q", o.ended, want)
	}
}

// BenchmarkObserve shows that an operation costs the same without an observer as before there were any,
// and what one that does nothing costs.
func BenchmarkObserve(b *testing.B) {
	nothing := func(ctx context.Context, _ string) (context.Context, func(tracking.ErrorCode)) {
		return ctx, func(tracking.ErrorCode) {}
	}
	for name, opts := range map[string]*tracking.Options{"none": nil, "nothing": {Observe: nothing}} {
		b.Run(name, func(b *testing.B) {
			svc, err := tracking.New(memory.New(), opts)
			if err != nil {
				b.Fatal(err)
			}
			task, err := svc.CreateTask(b.Context(), newDrop())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := svc.Task(b.Context(), task.ID); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
