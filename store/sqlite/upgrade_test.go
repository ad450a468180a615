package sqlite_test

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// upgraded is what testdata/v1.db held when version 1 wrote it, by application.
//
// In each application d7 was joined, drove a trip and was erased, and the id was used again; there
// are tasks and trips of every state, events delivered, to be tried again and dead, notices, an
// invite that is open and one that is used, and a task with an idempotency key.
type upgraded struct {
	Now     time.Time         `json:"now"`     // when the last of it was written
	Secrets map[string]string `json:"secrets"` // "<application> <kind> <id>": a token
	Secret  []byte            `json:"secret"`
	Default upgradedApp       `json:"default"`
	Shop    upgradedApp       `json:"shop"`
}

type upgradedApp struct {
	Tasks    []tracking.Task
	Trips    []tracking.Trip
	Drivers  []tracking.Driver
	Invites  map[tracking.DriverID]tracking.Invite
	Requests map[tracking.DriverID][]tracking.Request
	Keys     []tracking.Key
	Fixes    map[tracking.DriverID][]tracking.Fix
	Notices  map[tracking.DriverID][]tracking.Notice
	Events   []tracking.Event
	Dead     []tracking.Event // in the outbox named ""
}

// version1 is a copy of a file that version 1 wrote, and what it held.
func version1(t testing.TB) (path string, held upgraded) {
	t.Helper()
	packed, err := os.Open("testdata/v1.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "tracking.db")
	writeFile(t, path, b)
	if b, err = os.ReadFile("testdata/v1.json"); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &held); err != nil {
		t.Fatal(err)
	}
	return path, held
}

// readApp reads all of an application.
func readApp(t testing.TB, s tracking.Store, app tracking.AppID) (out upgradedApp) {
	t.Helper()
	ctx := t.Context()
	page := tracking.Page{Limit: 1000}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	out.Tasks, _, err = s.Tasks(ctx, app, tracking.TaskFilter{Page: page})
	must(err)
	out.Trips, _, err = s.Trips(ctx, app, tracking.TripFilter{Page: page})
	must(err)
	out.Drivers, _, err = s.Drivers(ctx, app, tracking.DriverFilter{Page: page})
	must(err)
	out.Keys, err = s.Keys(ctx, app)
	must(err)
	out.Events, _, err = s.Events(ctx, app, tracking.EventFilter{Limit: 1000})
	must(err)
	out.Dead, _, err = s.Events(ctx, app, tracking.EventFilter{Limit: 1000, Dead: true})
	must(err)
	out.Invites, out.Requests = map[tracking.DriverID]tracking.Invite{}, map[tracking.DriverID][]tracking.Request{}
	out.Fixes, out.Notices = map[tracking.DriverID][]tracking.Fix{}, map[tracking.DriverID][]tracking.Notice{}
	for _, d := range out.Drivers {
		if v, err := s.Invite(ctx, app, d.ID); err == nil {
			out.Invites[d.ID] = v
		}
		requests, err := s.Requests(ctx, app, d.ID)
		must(err)
		if requests != nil {
			out.Requests[d.ID] = requests
		}
		for f, err := range s.Fixes(ctx, app, d.ID, tracking.FixRange{}) {
			must(err)
			out.Fixes[d.ID] = append(out.Fixes[d.ID], f)
		}
		notices, lost, err := s.Notices(ctx, app, d.ID, 0, math.MaxInt32)
		must(err)
		if lost {
			t.Errorf("the feed of %s has lost its beginning", d.ID)
		}
		if notices != nil {
			out.Notices[d.ID] = notices
		}
	}
	return out
}

// TestUpgrade opens a file of version 1: all of it is there as it was, its tokens and links work,
// and what was begun can be gone on with.
func TestUpgrade(t *testing.T) {
	path, held := version1(t)
	s := open(t, path, nil)
	for range 2 {
		for app, want := range map[tracking.AppID]upgradedApp{tracking.DefaultApp: held.Default, "shop": held.Shop} {
			got := readApp(t, s, app)
			if d := gocmp.Diff(want, got, sinceVersion1); d != "" {
				t.Errorf("application %s (-version 1 +now):\n%s", app, d)
			}
			checkPersons(t, got)
			checkRoutes(t, got)
		}
		closeStore(t, s) // and once more, now that it is up to date
		s = open(t, path, nil)
	}
	if secret, err := s.Secret(t.Context()); err != nil || !gocmp.Equal(secret, held.Secret) {
		t.Errorf("Secret: another one, error %v", err)
	}

	svc, err := tracking.New(s, &tracking.Options{Now: func() time.Time { return held.Now }})
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range held.Secrets {
		app, rest, _ := strings.Cut(name, " ")
		kind, id, _ := strings.Cut(rest, " ")
		svc := svc.ForApp(tracking.AppID(app))
		again, want := token, error(nil)
		switch kind {
		case "task":
			again, err = svc.TaskLink(t.Context(), tracking.TaskID(id))
		case "trip":
			again, err = svc.TripLink(t.Context(), tracking.TripID(id))
		case "key":
			_, _, err = svc.AuthenticateKey(t.Context(), token)
		case "app":
			if _, _, err = svc.AuthenticateDriver(t.Context(), tracking.TokenApp, token); id == "d7" { // erased
				want = tracking.ErrUnauthorized
			}
		case "ingest":
			if _, _, err = svc.AuthenticateDriver(t.Context(), tracking.TokenIngest, token); id == "erased" ||
				id == "d7" {
				want = tracking.ErrUnauthorized
			} else if err == nil {
				again, err = svc.IngestToken(t.Context(), tracking.DriverID(id))
			}
		case "invite": // a lost answer is asked for again
			var joined tracking.Joined
			joined, err = svc.Join(t.Context(), tracking.JoinRequest{Token: token, Nonce: "nonce of " + id})
			if id == "d7" {
				want = tracking.ErrNotFound
			} else if tokens := []string{held.Secrets[app+" app "+id], held.Secrets[app+" ingest "+id]}; err == nil &&
				!gocmp.Equal(tokens, []string{joined.Token, joined.IngestToken}) {
				t.Errorf("%s: the same invite and nonce give other tokens", name)
			}
		default:
			t.Fatalf("no test of %s", name)
		}
		if want != nil {
			if code, ok := want.(tracking.ErrorCode); !ok || !isCode(err, code) {
				t.Errorf("%s: got error %v, want %v", name, err, want)
			}
		} else if err != nil || again != token {
			t.Errorf("%s: it is another one now, error %v", name, err)
		}
	}
	checkKeyed(t, svc, held)
}

func isCode(err error, code tracking.ErrorCode) bool {
	e, ok := err.(*tracking.Error)
	return ok && e.Code == code
}

// checkKeyed repeats the creation that has an idempotency key.
func checkKeyed(t testing.TB, svc *tracking.Service, held upgraded) {
	t.Helper()
	place := func(lng float64, address string) *tracking.Place {
		return &tracking.Place{
			LngLat: &tracking.LngLat{Lng: lng, Lat: 48}, Address: address,
			Customer: &tracking.Contact{Name: "Priya", Mobile: "+91 1"},
		}
	}
	keyed := tracking.NewTask{
		Type: tracking.TypePickupAndDrop, Pickup: place(11.01, "1 Shop St"), Drop: place(11.02, "2 Home St"),
		Customer: &tracking.Contact{Name: "Noor"}, OrderID: "#1001", Notes: "ring twice",
		Time: time.Date(2024, 3, 10, 9, 0, 0, 0, time.UTC), Key: "key 1",
	}
	made, err := svc.CreateTask(t.Context(), keyed)
	if err != nil {
		t.Fatalf("the same key with the same content: %v", err)
	}
	if i := indexKeyed(held.Default.Tasks); made.ID != held.Default.Tasks[i].ID {
		t.Error("the same key with the same content makes another task")
	}
	keyed.Notes = "do not ring"
	if _, err := svc.CreateTask(t.Context(), keyed); !isCode(err, tracking.ErrConflict) {
		t.Errorf("the same key with other content: got error %v, want ErrConflict", err)
	}
}

func indexKeyed(tasks []tracking.Task) int {
	for i, t := range tasks {
		if t.Key != "" {
			return i
		}
	}
	return -1
}

// TestRestore upgrades a file of version 1, beside a copy, and goes back: by the copy made before, and
// by a backup made after.
func TestRestore(t *testing.T) {
	path, held := version1(t)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, path, nil)
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := s.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(path, nil); !errors.Is(err, sqlite.ErrInUse) {
		t.Errorf("the file is opened beside itself: %v", err)
	}
	add := func(s tracking.Store) {
		t.Helper()
		svc, err := tracking.New(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := svc.CreateKey(t.Context(), "after the copy"); err != nil {
			t.Fatal(err)
		}
	}
	add(s)
	beside := open(t, backup, nil) // the next version is tried on a copy while this one works
	add(beside)
	closeStore(t, beside)
	closeStore(t, s)
	after, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}

	for name, copied := range map[string]struct {
		content []byte
		keys    int
	}{"the copy of the file": {before, 0}, "the backup": {after, 1}} {
		for _, companion := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(path + companion); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		writeFile(t, path, copied.content)
		s := open(t, path, nil)
		got := readApp(t, s, tracking.DefaultApp)
		if n := len(got.Keys) - len(held.Default.Keys); n != copied.keys {
			t.Errorf("%s has %d more keys, want %d", name, n, copied.keys)
		}
		got.Keys = held.Default.Keys
		if d := gocmp.Diff(held.Default, got, sinceVersion1); d != "" {
			t.Errorf("%s, restored (-version 1 +now):\n%s", name, d)
		}
		closeStore(t, s)
	}
}

// A file of version 9 finds tasks by the digits as they were written. It is brought to find them by 0 to
// 9, and what is deleted leaves no trace of either.
func TestUpgradeOfTerms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracking.db")
	find := func(s *sqlite.Store, query string, want int) {
		t.Helper()
		tasks, _, err := s.Tasks(t.Context(), tracking.DefaultApp,
			tracking.TaskFilter{Query: query, Page: tracking.Page{Limit: 10}})
		if err != nil || len(tasks) != want {
			t.Errorf("%s finds %d tasks, want %d; error %v", query, len(tasks), want, err)
		}
	}
	service := func(s *sqlite.Store) *tracking.Service {
		t.Helper()
		svc, err := tracking.New(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		return svc
	}
	s := open(t, path, sqlite.Options{}.WithMigrations(migratedUntil(t, 9)))
	task := tracking.Task{
		ID: "a", Type: tracking.TypeDrop, Status: tracking.StatusCreated, OrderID: "A ١٢٣٤", CreatedAt: start,
		Drop: &tracking.Place{
			LngLat: &tracking.LngLat{Lng: 1, Lat: 2}, Customer: &tracking.Contact{Name: "Noor", Mobile: "٠٣٠ ٧٧٨٨"},
		},
	}
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Tasks: []tracking.Task{task}}); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	db := raw(t, path)
	db.MustExec(`INSERT INTO task_terms (task_terms) VALUES ('delete-all');
		INSERT INTO task_terms (rowid, terms) SELECT place, app || 'wa ' || app || 'w١٢٣٤' FROM tasks`)
	db.Close()

	s = open(t, path, nil)
	for _, query := range []string{"a", "1234", "١٢", "7788", "0307788"} {
		find(s, query, 1)
	}
	svc := service(s)
	if _, err := svc.CancelTask(t.Context(), task.ID, tracking.Reason{}); err != nil {
		t.Fatal(err)
	}
	if err := svc.DeleteTask(t.Context(), task.ID); err != nil {
		t.Fatal(err)
	}
	find(s, "7788", 0)
	closeStore(t, s)

	db = raw(t, path)
	db.SetMaxOpenConns(1) // the list of words is of one connection
	db.MustExec(`CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, task_terms, row)`)
	var kept []string
	if err := db.Select(&kept, "SELECT term FROM words"); err != nil || len(kept) > 0 {
		t.Errorf("the file goes on to find %q, error %v", kept, err)
	}
	var secure int
	err := db.Get(&secure, "SELECT v FROM task_terms_config WHERE k = 'secure-delete'")
	if err != nil || secure != 1 {
		t.Errorf("what is deleted leaves its terms: secure-delete is %d, error %v", secure, err)
	}
}

// Events of tasks from before version 17 are about a subject that is found by its name, those of tasks made
// since about one that the task says: both are listed, and go on, and are gone with the task.
func TestUpgradeOfSubjects(t *testing.T) {
	path, held := version1(t)
	s := open(t, path, nil)
	defer closeStore(t, s)
	tasks, _, err := s.Tasks(t.Context(), app, tracking.TaskFilter{Page: tracking.Page{Limit: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	made := tracking.Task{ID: "made", CreatedAt: held.Now}
	about := func(id tracking.TaskID, n int) tracking.Event {
		return tracking.Event{
			ID: fmt.Sprint(id, " ", n), Type: tracking.EventTaskUpdated, RecordedAt: held.Now,
			Subject: tracking.Subject{Kind: tracking.KindTask, ID: string(id)},
		}
	}
	commit := func(cs *tracking.Changeset) {
		t.Helper()
		if _, err := s.Commit(t.Context(), app, cs); err != nil {
			t.Fatal(err)
		}
	}
	commit(&tracking.Changeset{Tasks: []tracking.Task{made}, Events: []tracking.Event{about("made", 0)}})
	made.Version = 1
	before := map[tracking.TaskID]int{"made": 1}
	for _, e := range held.Default.Events {
		if e.Subject.Kind == tracking.KindTask {
			before[tracking.TaskID(e.Subject.ID)]++
		}
	}
	for _, task := range append(tasks, made) {
		want := before[task.ID]
		if want == 0 {
			t.Fatalf("task %s had no events", task.ID)
		}
		check := func(n int) {
			t.Helper()
			list, _, err := s.Events(t.Context(), app, tracking.EventFilter{Subject: about(task.ID, 0).Subject, Limit: 100})
			if err != nil || len(list) != n || n > 0 && list[n-1].Seq != int64(n) {
				t.Errorf("task %s has %d events, want %d; error %v", task.ID, len(list), n, err)
			}
		}
		check(want)
		commit(&tracking.Changeset{Events: []tracking.Event{about(task.ID, 1), about(task.ID, 2)}})
		check(want + 2)
		commit(&tracking.Changeset{DeleteTasks: []tracking.Task{task}})
		check(0)
		again := tracking.Task{ID: task.ID, CreatedAt: held.Now}
		commit(&tracking.Changeset{Events: []tracking.Event{about(task.ID, 3)}}) // of a task that is not there yet
		commit(&tracking.Changeset{Tasks: []tracking.Task{again}, Events: []tracking.Event{about(task.ID, 4)}})
		check(2)
	}
}

// A file of version 15 has lists of tasks of its own for each order. It is brought to merge them of fewer:
// all is found in the order in which it was, page by page, with a window or without, of every status, of
// one that there is not too.
func TestUpgradeOfLists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracking.db")
	s := open(t, path, sqlite.Options{}.WithMigrations(migratedUntil(t, 15)))
	all := []tracking.TaskStatus{tracking.StatusCreated, tracking.StatusAssigned, tracking.StatusInProgress,
		tracking.StatusCompleted, "lost", ""}
	put := func(s *sqlite.Store, from, n int) {
		t.Helper()
		cs := &tracking.Changeset{}
		for i := from; i < from+n; i++ {
			at := start.Add(time.Duration(i*7%20) * time.Millisecond) // several in one millisecond, in no order
			task := tracking.Task{
				ID: tracking.TaskID(strconv.Itoa(i)), Type: tracking.TypeDrop, Status: all[i%len(all)], CreatedAt: at,
				DriverID: tracking.DriverID(strconv.Itoa(i % 2)), Drop: &tracking.Place{Address: "a"},
			}
			if i%3 == 0 {
				task.Window.To = start.Add(time.Duration(i%5) * time.Hour)
			}
			cs.Tasks = append(cs.Tasks, task)
		}
		if _, err := s.Commit(t.Context(), app, cs); err != nil {
			t.Fatal(err)
		}
	}
	put(s, 0, 50)
	closeStore(t, s)
	s = open(t, path, nil)
	put(s, 50, 50)
	kept, _, err := s.Tasks(t.Context(), app, tracking.TaskFilter{Page: tracking.Page{Limit: 1000}})
	if err != nil || len(kept) != 100 {
		t.Fatalf("%d tasks of 100, error %v", len(kept), err)
	}

	byAge := func(a, b tracking.Task) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.Seq, a.Seq))
	}
	window := func(t tracking.Task) int64 {
		if t.Window.To.IsZero() {
			return math.MaxInt64
		}
		return t.Window.To.UnixMilli()
	}
	byWindow := func(a, b tracking.Task) int { return cmp.Or(cmp.Compare(window(a), window(b)), -byAge(a, b)) }
	many := slices.Concat(all[1:5], all[2:4]) // more than have a walk each, and some twice
	for i := range 8 {
		many = append(many, tracking.TaskStatus(strconv.Itoa(i)))
	}
	for name, f := range map[string]tracking.TaskFilter{
		"many": {Status: many}, "many, of a driver": {Status: many, DriverID: "1"},
		"many by window": {Status: many, Sort: tracking.SortWindow},
		"all":            {}, "created": {Status: all[:1]}, "lost": {Status: all[4:5]}, "three": {Status: all[1:5]},
		"lost, of a driver": {Status: all[3:5], DriverID: "1"},
		"all by window":     {Sort: tracking.SortWindow},
		"three by window":   {Sort: tracking.SortWindow, Status: all[1:5]},
		"within":            {WindowFrom: start.Add(time.Hour), WindowTo: start.Add(3 * time.Hour)},
		"created within":    {Status: all[:1], WindowFrom: start.Add(time.Hour), WindowTo: start.Add(3 * time.Hour)},
	} {
		order := byAge
		if f.Sort == tracking.SortWindow {
			order = byWindow
		}
		var want []tracking.TaskID
		for _, task := range slices.SortedFunc(slices.Values(kept), order) {
			outside := !f.WindowFrom.IsZero() && (task.Window.To.Before(f.WindowFrom) || !task.Window.To.Before(f.WindowTo))
			if !outside && (f.Status == nil || slices.Contains(f.Status, task.Status)) &&
				(f.DriverID == "" || task.DriverID == f.DriverID) {
				want = append(want, task.ID)
			}
		}
		var byNumber, byMark []tracking.TaskID
		read := func(f tracking.TaskFilter, to *[]tracking.TaskID) (last *tracking.TaskMark) {
			t.Helper()
			list, more, err := s.Tasks(t.Context(), app, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range list {
				*to = append(*to, task.ID)
			}
			if more {
				mark := list[len(list)-1].Mark(f.Sort)
				last = &mark
			}
			return last
		}
		f.Page = tracking.Page{Number: 1, Limit: 3}
		for read(f, &byNumber) != nil {
			f.Page.Number++
		}
		f.Page.Number = 1
		for f.After = read(f, &byMark); f.After != nil; f.After = read(f, &byMark) {
		}
		for by, got := range map[string][]tracking.TaskID{"number": byNumber, "mark": byMark} {
			if d := gocmp.Diff(want, got); d != "" || len(got) == 0 {
				t.Errorf("%s, pages by %s (-want +got):\n%s", name, by, d)
			}
		}
	}
	closeStore(t, s)
}

// sinceVersion1 ignores what rows have got since, which version 1 did not know.
var sinceVersion1 = gocmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreFields(tracking.Driver{}, "Person", "Route"), cmpopts.IgnoreFields(tracking.Task{}, "Person"),
	cmpopts.IgnoreFields(tracking.Trip{}, "Person"),
	cmpopts.IgnoreFields(tracking.Event{}, "Person"), cmpopts.IgnoreFields(tracking.Notice{}, "Person"),
	cmpopts.IgnoreFields(tracking.Position{}, "Tail"),
}

// checkRoutes expects that each driver has the stops of what is assigned to him, in the order in
// which it was.
func checkRoutes(t testing.TB, got upgradedApp) {
	t.Helper()
	want := map[tracking.DriverID][]tracking.Stop{}
	slices.SortFunc(got.Tasks, func(a, b tracking.Task) int {
		return cmp.Or(a.AssignedAt.Compare(b.AssignedAt), cmp.Compare(a.Seq, b.Seq))
	})
	for _, task := range got.Tasks {
		if !task.Open() {
			continue
		}
		route := want[task.DriverID]
		if task.Type == tracking.TypePickup || task.Type == tracking.TypePickupAndDrop && task.PickedUpAt.IsZero() {
			route = append(route, tracking.Stop{TaskID: task.ID, Leg: tracking.LegPickup})
		}
		if task.Type != tracking.TypePickup {
			route = append(route, tracking.Stop{TaskID: task.ID, Leg: tracking.LegDrop})
		}
		want[task.DriverID] = route
	}
	if len(want) == 0 {
		t.Error("nobody has an open task")
	}
	for _, d := range got.Drivers {
		if diff := gocmp.Diff(want[d.ID], d.Route); diff != "" {
			t.Errorf("the route of %s (-want +got):\n%s", d.ID, diff)
		}
	}
}

// checkPersons expects that d7 has what he did himself, and nothing of the one who had the id
// before and was erased.
func checkPersons(t testing.TB, got upgradedApp) {
	t.Helper()
	persons, made := map[tracking.DriverID]string{}, map[string]time.Time{}
	for _, d := range got.Drivers {
		if d.Person == "" {
			t.Errorf("driver %s has no person", d.ID)
		}
		persons[d.ID], made[d.Person] = d.Person, d.CreatedAt
	}
	for _, trip := range got.Trips {
		if his := trip.Person == persons[trip.DriverID]; his == (trip.TrackingID == "old parcel") {
			t.Errorf("trip %s of %s, %s: the driver's own: %v", trip.ID, trip.DriverID, trip.TrackingID, his)
		}
	}
	told := map[string]bool{}
	for _, notices := range got.Notices {
		for _, n := range notices {
			told[n.EventID] = true
			if n.Person != persons[n.DriverID] {
				t.Errorf("notice %d of %s is not the driver's own", n.ID, n.DriverID)
			}
		}
	}
	for _, e := range got.Events {
		d := tracking.DriverID(e.Data["driver_id"])
		if e.Subject.Kind == tracking.KindDriver {
			d = tracking.DriverID(e.Subject.ID)
		}
		want := persons[d]
		if e.RecordedAt.Before(made[want]) {
			want = "-"
		}
		if e.Person != want {
			t.Errorf("%s %s of %q tells of %q, want %q", e.Type, e.ID, d, e.Person, want)
		}
		for _, n := range e.Notices {
			if n.Person != "" && (n.Person != persons[n.DriverID] || !told[e.ID]) {
				t.Errorf("%s told %s, who was not there", e.Type, n.DriverID)
			}
		}
	}
	for _, task := range got.Tasks {
		if task.Person != persons[task.DriverID] {
			t.Errorf("task %s of %s is not the driver's own", task.ID, task.DriverID)
		}
	}
}
