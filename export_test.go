package tracking_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// movable is a service over a store in memory.
func movable(t testing.TB) (*tracking.Service, tracking.Store) {
	t.Helper()
	store := memory.New()
	svc, err := tracking.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return svc, store
}

const (
	beginLine  = `{"kind":"export","version":1,"of":"application","secrets":false}` + "\n"
	driverLine = `{"kind":"driver","app":"a","driver_id":"d","version":1,"created_at":"2024-03-10T08:50:00.000Z"}` + "\n"
)

func endLine(rows int) string { return fmt.Sprintf(`{"kind":"end","rows":%d}`, rows) + "\n" }

// What is wrong with an export is said with its line and field, and nothing of it is written.
func TestImportNamesTheLine(t *testing.T) {
	fix := func(rest string) string {
		return driverLine + `{"kind":"fix","app":"a","driver_id":"d",` + rest + "}\n"
	}
	for _, tt := range []struct{ name, text, field, message string }{
		{"nothing", "", "", "line 1"},
		{"no export", driverLine, "kind", "line 1"},
		{"another version", strings.Replace(beginLine, `"version":1`, `"version":2`, 1), "version", "line 1"},
		{"another kind", beginLine + driverLine + `{"kind":"spaceship","app":"a"}` + "\n", "kind", "line 3"},
		{"no JSON", beginLine + driverLine + "oops\n", "the line", "line 3"},
		{"no UTF-8", beginLine + "{\"kind\":\"driver\",\"app\":\"\xff\"}\n", "", "line 2"},
		{"cut", beginLine + driverLine, "", "line 3"},
		{"cut in a line", beginLine + driverLine[:30], "", "line 2"},
		{"too few rows", beginLine + driverLine + endLine(2), "rows", "line 3"},
		{"no app", beginLine + strings.Replace(driverLine, `"app":"a",`, "", 1) + endLine(1), "app", "line 2"},
		{"no version", beginLine + strings.Replace(driverLine, `"version":1`, `"version":0`, 1) + endLine(1), "version", "line 2"},
		{"a type", beginLine + strings.Replace(driverLine, `"version":1`, `"version":"1"`, 1) + endLine(1), "version", "line 2"},
		{"a time", beginLine + strings.Replace(driverLine, "2024-03", "2024-13", 1) + endLine(1), "created_at", "line 2"},
		{"a place", beginLine + fix(`"lnglat":[200,0],"time":"2024-03-10T08:50:00.000Z","mark":"good"`) + endLine(2), "lnglat", "line 3"},
		{"a mark", beginLine + fix(`"lnglat":[20,0],"time":"2024-03-10T08:50:00.000Z","mark":"best"`) + endLine(2), "mark", "line 3"},
		{"a NUL", beginLine + strings.Replace(driverLine, `"d"`, `"\u0000"`, 1) + endLine(1), "the line", "line 2"},
		{"a long line", beginLine + strings.Repeat(" ", 5<<20) + "\n", "", "line 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			svc, store := movable(t)
			_, err := svc.Import(t.Context(), strings.NewReader(tt.text))
			var e *tracking.Error
			if !errors.As(err, &e) || e.Field != tt.field || !strings.HasPrefix(e.Message, tt.message+":") ||
				e.Code != tracking.ErrInvalid && e.Code != tracking.ErrTooLarge {
				t.Errorf("got error %+v, want one of %s, field %q", e, tt.message, tt.field)
			}
			for row, err := range store.Rows(t.Context(), tracking.RowQuery{}) {
				t.Errorf("there is %+v, error %v", row, err)
			}
		})
	}
}

// What looks like an escaped NUL is a backslash and more.
func TestImportKeepsBackslashes(t *testing.T) {
	svc, _ := movable(t)
	text := beginLine + strings.Replace(driverLine, `"version"`, `"name":"\\u0000","version"`, 1) + endLine(1)
	if _, err := svc.Import(t.Context(), strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	d, err := svc.ForApp("a").Driver(t.Context(), "d")
	if err != nil || d.Name != `\u0000` {
		t.Errorf("the name is %q, error %v", d.Name, err)
	}
}

// Where there is something of an application already, its export is refused before anything is written.
func TestImportIntoWhatIsThere(t *testing.T) {
	svc, _ := movable(t)
	if _, err := svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "asha"}); err != nil {
		t.Fatal(err)
	}
	var whole bytes.Buffer
	if err := svc.Export(t.Context(), &whole, tracking.ExportFilter{}); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Import(t.Context(), &whole); !errors.Is(err, tracking.ErrConflict) {
		t.Errorf("got error %v, want a conflict", err)
	}
}

// By ForApp nothing of another application can be written, nor what all of them share.
func TestImportOfOneApplication(t *testing.T) {
	other := strings.Replace(driverLine, `"app":"a"`, `"app":"b"`, 1)
	secret := `{"kind":"secret","value":"` + strings.Repeat("ab", 32) + `"}` + "\n"
	memo := `{"kind":"memo","name":"m","value":"AA=="}` + "\n"
	for _, tt := range []struct{ name, row, field string }{
		{"a row of another", other, "app"},
		{"the store's secret", secret, "kind"},
		{"a memo", memo, "kind"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			svc, store := movable(t)
			text := beginLine + driverLine + tt.row + endLine(2)
			_, err := svc.ForApp("a").Import(t.Context(), strings.NewReader(text))
			var e *tracking.Error
			if !errors.As(err, &e) || e.Code != tracking.ErrInvalid || e.Field != tt.field ||
				!strings.HasPrefix(e.Message, "line 3: ") {
				t.Errorf("got error %+v, want ErrInvalid of line 3, field %q", err, tt.field)
			}
			for row, err := range store.Rows(t.Context(), tracking.RowQuery{}) {
				t.Errorf("there is %+v, error %v", row, err)
			}
			if n, err := svc.Import(t.Context(), strings.NewReader(text)); n != 2 || err != nil {
				t.Errorf("without ForApp: %d rows, error %v", n, err)
			}
		})
	}
}

// An application whose import broke off is in nobody's way but its own.
func TestImportsOfTwoApplications(t *testing.T) {
	svc, _ := movable(t)
	var rows strings.Builder
	for i := range 5000 { // more than one batch
		rows.WriteString(strings.Replace(driverLine, `"d"`, fmt.Sprintf(`"d%d"`, i), 1))
	}
	a, b := svc.ForApp("a"), svc.ForApp("b")
	if _, err := a.Import(t.Context(), strings.NewReader(beginLine+rows.String())); !errors.Is(err, tracking.ErrInvalid) {
		t.Fatalf("of an export without its end: error %v", err)
	}
	other := strings.Replace(driverLine, `"app":"a"`, `"app":"b"`, 1)
	if n, err := b.Import(t.Context(), strings.NewReader(beginLine+other+endLine(1))); n != 1 || err != nil {
		t.Errorf("of the other application: %d rows, error %v", n, err)
	}
	n, err := a.Import(t.Context(), strings.NewReader(beginLine+rows.String()+endLine(5000)))
	if n != 5000 || err != nil {
		t.Errorf("of the first one again: %d rows, error %v", n, err)
	}
	var out bytes.Buffer
	err = svc.Export(t.Context(), &out, tracking.ExportFilter{AllApps: true, Secrets: true})
	if err != nil || strings.Contains(out.String(), `"kind":"memo"`) {
		t.Errorf("how far an import has come is exported, error %v", err)
	}
}

// An import that was through is none any more: what was deleted since comes back by another one.
func TestImportAgain(t *testing.T) {
	svc, _ := movable(t)
	svc = svc.ForApp("a")
	text := beginLine + driverLine + endLine(1)
	if n, err := svc.Import(t.Context(), strings.NewReader(text)); n != 1 || err != nil {
		t.Fatalf("%d rows, error %v", n, err)
	}
	_, err := svc.Import(t.Context(), strings.NewReader(text))
	if !errors.Is(err, tracking.ErrConflict) || !strings.HasPrefix(err.Error(), "lines 2 to 2: ") {
		t.Errorf("with the driver there: error %v, want a conflict of line 2", err)
	}
	if err := svc.DeleteDriver(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	if n, err := svc.Import(t.Context(), strings.NewReader(text)); n != 1 || err != nil {
		t.Errorf("after the driver was deleted: %d rows, error %v", n, err)
	}
	if _, err := svc.Driver(t.Context(), "d"); err != nil {
		t.Errorf("the driver: error %v", err)
	}
}

// The export of a contact names nobody else, and holds nothing that gives access.
func TestExportOfAContact(t *testing.T) {
	svc, _ := movable(t)
	for _, mobile := range []string{"+49 89 1", "+49 89 2"} {
		if _, err := svc.CreateTask(t.Context(), tracking.NewTask{
			Type:   tracking.TypePickupAndDrop,
			Pickup: &tracking.Place{Address: "Marienplatz 1", Customer: &tracking.Contact{Name: "Other", Mobile: "+49 89 3"}},
			Drop:   &tracking.Place{Address: "Marienplatz 2", Customer: &tracking.Contact{Name: "Mine " + mobile, Mobile: mobile}},
			Proof:  []tracking.ProofKind{tracking.ProofPIN},
		}); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := svc.Export(t.Context(), &b, tracking.ExportFilter{Contact: "(49) 891"}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if strings.Count(text, "\n{\"kind\":\"task\"") != 1 || !strings.Contains(text, "Mine +49 89 1") ||
		strings.Count(text, "\n{\"kind\":\"event\"") != 1 {
		t.Errorf("the export is\n%s", text)
	}
	for _, word := range []string{"Other", "Mine +49 89 2", `"pin":"`, "hash"} {
		if strings.Contains(text, word) {
			t.Errorf("the export of a contact has %s", word)
		}
	}
	for _, f := range []tracking.ExportFilter{
		{Contact: "nobody"}, {Contact: "1", Secrets: true}, {Contact: "1", Driver: "d"}, {Contact: "1", AllApps: true},
	} {
		if err := svc.Export(t.Context(), io.Discard, f); !errors.Is(err, tracking.ErrInvalid) {
			t.Errorf("%+v: got error %v, want ErrInvalid", f, err)
		}
	}
}

// peak notes how much memory is in use now and then while something is written.
type peak struct{ n, most uint64 }

func (p *peak) Write(b []byte) (int, error) {
	if p.n++; p.n%64 == 0 {
		p.most = max(p.most, inUse())
	}
	return len(b), nil
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// fillStore keeps tasks, and ten fixes for each.
func fillStore(t testing.TB, store tracking.Store, n int) {
	t.Helper()
	at := time.Date(2024, 3, 10, 8, 50, 0, 0, time.UTC)
	for begin := 0; begin < n; begin += 1000 {
		var r tracking.Restoring
		driver := tracking.DriverRow{}
		driver.ID, driver.Version, driver.CreatedAt = tracking.DriverID(fmt.Sprint("d", begin)), 1, at
		r.Rows = append(r.Rows, tracking.Row{App: "default", Value: driver})
		for i := range min(1000, n-begin) {
			created := at.Add(time.Duration(begin+i) * time.Second)
			r.Rows = append(r.Rows, tracking.Row{App: "default", Value: tracking.Task{
				ID: tracking.TaskID(fmt.Sprint("t", begin+i)), Version: 1, Type: tracking.TypeDrop,
				Status: tracking.StatusCompleted, Outcome: tracking.OutcomeSucceeded, DriverID: driver.ID,
				Drop:      &tracking.Place{Address: "Marienplatz 1", LngLat: &tracking.LngLat{Lng: 11.5, Lat: 48.1}},
				CreatedAt: created, CompletedAt: created.Add(time.Hour), UpdatedAt: created.Add(time.Hour),
			}})
		}
		for i := range 10 * min(1000, n-begin) {
			r.Rows = append(r.Rows, tracking.Row{App: "default", Value: tracking.FixRow{
				DriverID: driver.ID, KeptFix: tracking.KeptFix{Mark: tracking.MarkGood, Fix: tracking.Fix{
					LngLat: tracking.LngLat{Lng: 11.5 + float64(i)/1e6, Lat: 48.1}, Time: at.Add(time.Duration(i) * time.Second),
					Accuracy: tracking.Known(5),
				}},
			}})
		}
		if err := store.Restore(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// However much there is, an export takes little memory, and so does an import but for what it keeps.
func TestExportTakesLittleMemory(t *testing.T) {
	svc, store := movable(t)
	fillStore(t, store, 5_000)
	before, p := inUse(), &peak{}
	if err := svc.Export(t.Context(), p, tracking.ExportFilter{}); err != nil {
		t.Fatal(err)
	}
	if more := int64(p.most) - int64(before); p.most == 0 || more > 2<<20 {
		t.Errorf("the export of 55,000 rows takes %d bytes more, in %d writes", more, p.n)
	}
	runtime.KeepAlive(store)
}

// FuzzImport reads anything. What it has not read to the end it has not written, as it is less than a
// batch.
func FuzzImport(f *testing.F) {
	svc, store := movable(f)
	fillStore(f, store, 2)
	var whole bytes.Buffer
	if err := svc.Export(f.Context(), &whole, tracking.ExportFilter{AllApps: true, Secrets: true}); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Add([]byte(beginLine + driverLine + endLine(1)))
	f.Fuzz(func(t *testing.T, text []byte) {
		svc, store := movable(t)
		n, err := svc.Import(t.Context(), bytes.NewReader(text))
		rows := 0
		for row, err := range store.Rows(t.Context(), tracking.RowQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			if row.Kind() != tracking.RowApplication && row.Kind() != tracking.RowSecret && row.Kind() != tracking.RowMemo {
				rows++
			}
		}
		var e *tracking.Error
		switch {
		case err != nil && !errors.As(err, &e):
			t.Errorf("got an error of another type: %v", err)
		case err != nil && rows > 0 && n < 4096:
			t.Errorf("of an import that failed with %v there are %d rows", err, rows)
		}
	})
}

// A PIN does not come along without secrets: then no driver's is right, and the dispatcher can complete
// the task.
func TestPINOfAnImport(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	id := must(w.CreateTask(w.ctx, tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: east(10)}, Proof: []tracking.ProofKind{tracking.ProofPIN},
	}))(t).ID
	must(w.AssignTask(w.ctx, id, "own"))(t)
	var b bytes.Buffer
	if err := w.Export(w.ctx, &b, tracking.ExportFilter{}); err != nil {
		t.Fatal(err)
	}
	there := newWorld(t)
	must(there.Import(there.ctx, &b))(t)
	if _, _, err := there.StartTask(there.ctx, "own", id, tracking.Step{}); err != nil {
		t.Fatal(err)
	}
	how := tracking.Completion{PIN: "0000"}
	if _, err := there.FinishTask(there.ctx, "own", id, how, tracking.Step{}); !errors.Is(err, tracking.ErrConflict) {
		t.Errorf("with a PIN made up: %v, want a conflict", err)
	}
	if got := must(there.CompleteTask(there.ctx, id, tracking.Completion{}))(t); got.Outcome != tracking.OutcomeSucceeded {
		t.Errorf("by the dispatcher it %s", got.Outcome)
	}
}

// A server that has run once, and has nothing yet, takes what another one exports.
func TestImportIntoWhatHasRun(t *testing.T) {
	var stores [2]*memory.Store
	var services [2]*tracking.Service
	for i := range services {
		now := time.Date(2026, 3, 1, 12, i, 0, 0, time.UTC)
		stores[i] = memory.New()
		services[i] = must(tracking.New(stores[i], &tracking.Options{Now: func() time.Time { return now }}))(t)
		must(services[i].MarkSilent(t.Context()))(t)
	}
	from, to := services[0], services[1]
	must(from.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "x"}))(t)
	before := must(stores[1].Memo(t.Context(), "hearing"))(t)
	var out bytes.Buffer
	if err := from.Export(t.Context(), &out, tracking.ExportFilter{AllApps: true, Secrets: true}); err != nil {
		t.Fatal(err)
	}
	must(to.Import(t.Context(), &out))(t)
	must(to.Driver(t.Context(), "x"))(t)
	if after := must(stores[1].Memo(t.Context(), "hearing"))(t); len(before) == 0 || !bytes.Equal(before, after) {
		t.Errorf("since when drivers could be heard was %s, and is %s", before, after)
	}
}
