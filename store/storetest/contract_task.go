package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
)

// taskChecks are about lists of tasks, and where else a task is found.
func taskChecks() []check {
	return []check{
		{"Tasks/lists newest first, page by page, by each filter", tasksListNewestFirst},
		{"Tasks/are found by words and by the ends of numbers", tasksAreFoundByWords},
		{"Tasks/are found by each of the other filters", tasksByOtherFilters},
		{"Tasks/are found by three filters together, each of many and of few", tasksByThreeFilters},
		{"Tasks/a mark neither skips nor repeats what stays", markNeitherSkipsNorRepeats},
		{"Tasks/of another application are not found", tasksOfAnotherAppAreNotFound},
		{"Tasks/may be put into memory that has been used, and are the caller's", tasksIntoUsedMemory},
		{"TaskCounts/counts the open, the waiting, the late, and the completed since a time", taskCounts},
		{"TaskCounts/follow a completed task that is changed, reopened, completed anew, or deleted", taskCountsFollow},
		{"Tasks/a changed task is found by its new values only", changedTaskIsFoundByNewValues},
		{"TaskByKey/finds the task of that key", taskByKeyFindsIt},
		{"TaskByLink/finds the task of any application, until the link is revoked", taskByLinkFindsItUntilRevoked},
	}
}

// tasksListNewestFirst compares with a plain filter, by pages of each size.
func tasksListNewestFirst(t testing.TB, s tracking.Store) {
	c, tasks := seedTasks(t, s)
	for _, f := range []tracking.TaskFilter{
		{},
		{DriverID: "d"}, {DriverID: "nobody"},
		{Status: []tracking.TaskStatus{tracking.StatusAssigned}},
		{Status: []tracking.TaskStatus{tracking.StatusInProgress, tracking.StatusCreated}},
		{Status: []tracking.TaskStatus{tracking.StatusCreated, tracking.StatusCreated}},
		{Status: []tracking.TaskStatus{"none"}},
		{Status: []tracking.TaskStatus{}},
		{OrderID: "#1"}, {OrderID: "#3"},
		{CompletedSince: at(89 * time.Minute)},
		{CompletedSince: at(24 * time.Hour)},
		{DriverID: "e", Status: []tracking.TaskStatus{tracking.StatusCompleted, tracking.StatusAssigned}},
		{
			DriverID: "d", Status: []tracking.TaskStatus{tracking.StatusCompleted},
			CompletedSince: at(85 * time.Minute), OrderID: "#2",
		},
		{DriverID: "d", OrderID: "#1"},
	} {
		var want []tracking.TaskID
		for i := len(tasks) - 1; i >= 0; i-- {
			task := tasks[i]
			status := len(f.Status) == 0
			for _, st := range f.Status {
				status = status || task.Status == st
			}
			if status && (f.DriverID == "" || f.DriverID == task.DriverID) &&
				(f.OrderID == "" || f.OrderID == task.OrderID) &&
				(f.CompletedSince.IsZero() || !task.CompletedAt.Before(f.CompletedSince)) {
				want = append(want, task.ID)
			}
		}
		for _, limit := range []int{1, 4, 24, 1000} {
			pages(t, fmt.Sprintf("tasks by %+v", f), want, limit, func(p tracking.Page) ([]tracking.TaskID, bool) {
				f.Page = p
				list, more := c.tasks(f)
				return each(list, taskID), more
			})
		}
	}
}

// tasksIntoUsedMemory: nothing of what was there shows, and nothing of what the caller makes of it is
// the store's.
func tasksIntoUsedMemory(t testing.TB, s tracking.Store) {
	c, _ := seedTasks(t, s)
	want, _ := c.tasks(tracking.TaskFilter{Page: tracking.Page{Limit: 5}})
	for _, n := range []int{0, 4, 5, 6} { // some of it too short
		used := make([]tracking.Task, n)
		for i := range used {
			used[i] = filled[tracking.Task](i + 1)
		}
		for range 2 {
			got, more := c.tasks(tracking.TaskFilter{Page: tracking.Page{Limit: 5}, Into: used})
			same(t, fmt.Sprintf("a page in memory for %d", n), got, want, cmpopts.EquateEmpty())
			if !more {
				t.Error("there is no further page")
			}
			for i := range got {
				for _, p := range []*tracking.Place{got[i].Drop, got[i].Pickup} {
					if p != nil {
						*p = filled[tracking.Place](i + 1)
					}
				}
				got[i] = filled[tracking.Task](i + 1)
			}
			used = got
		}
	}
	again, _ := c.tasks(tracking.TaskFilter{Page: tracking.Page{Limit: 5}})
	same(t, "the page after all that", again, want, cmpopts.EquateEmpty())
}

// changedTaskIsFoundByNewValues changes every value that a filter goes by.
func changedTaskIsFoundByNewValues(t testing.TB, s tracking.Store) {
	c, _ := seedTasks(t, s)
	task := c.task("4") // of d, created
	task.DriverID, task.Status, task.OrderID, task.CompletedAt = "f", "other", "#9", at(200*time.Minute)
	c.commit(tracking.Changeset{Tasks: []tracking.Task{task}})
	task.Version++
	for _, f := range []tracking.TaskFilter{
		{DriverID: "f"}, {Status: []tracking.TaskStatus{"other"}}, {OrderID: "#9"},
		{CompletedSince: at(200 * time.Minute)},
		{DriverID: "f", Status: []tracking.TaskStatus{"other"}},
	} {
		list, more := c.tasks(f)
		same(t, fmt.Sprintf("tasks by %+v", f), list, []tracking.Task{task})
		same(t, "more", more, false)
	}
	for _, f := range []tracking.TaskFilter{
		{DriverID: "d"}, {Status: []tracking.TaskStatus{tracking.StatusCreated}}, {OrderID: "#01"},
		{DriverID: "d", Status: []tracking.TaskStatus{tracking.StatusCreated}},
		{DriverID: "f", Status: []tracking.TaskStatus{tracking.StatusCreated}},
	} {
		list, _ := c.tasks(f)
		for _, got := range list {
			if got.ID == "4" {
				t.Errorf("tasks by %+v: still found by what it was", f)
			}
		}
	}
}

// findable makes five tasks, each with something of its own to be found by.
func findable(t testing.TB, s tracking.Store, app tracking.AppID) *client {
	c := use(t, s, app)
	person := func(name, mobile string) *tracking.Contact { return &tracking.Contact{Name: name, Mobile: mobile} }
	tasks := []tracking.Task{
		newTask("a", t0), newTask("b", t0), newTask("c", at(time.Minute)), newTask("d", t0), newTask("e", t0),
	}
	tasks[0].OrderID = "#1001"
	tasks[0].Drop = &tracking.Place{
		Address: "Große Straße 12, København", Customer: person("Ævar Müller", "+49 (89) 123-4567"),
	}
	tasks[1].OrderID = "INV/2024/1001"
	tasks[1].Type, tasks[1].Drop = tracking.TypePickup, nil
	tasks[1].Pickup = &tracking.Place{Address: "GROSSE STRASSE 7", Customer: person("Muller", "")}
	tasks[2].Drop = &tracking.Place{
		Address: "Ελλάδα, Ёлкина", Customer: person("e\u0301te\u0301 "+strings.Repeat("x", 40), "0891"),
	}
	tasks[3].OrderID, tasks[3].Drop.Address = "1001-b", "12 grossestrasse"
	tasks[3].Drop.Customer = person("", "٠٣٠ ७७８８") // 030 7788 in three scripts
	tasks[4].Notes, tasks[4].Reason = "straße", "müller"
	tasks[4].Properties = map[string]string{"zone": "north", "muller": "straße 4567"}
	c.commit(tracking.Changeset{Tasks: tasks[:2]})
	c.commit(tracking.Changeset{Tasks: tasks[2:]})
	return c
}

func (c *client) found(query string) []tracking.TaskID {
	c.Helper()
	list, _ := c.tasks(tracking.TaskFilter{Query: query})
	return each(list, taskID)
}

func tasksAreFoundByWords(t testing.TB, s tracking.Store) {
	c := findable(t, s, here)
	for query, want := range map[string][]tracking.TaskID{
		"strasse": {"b", "a"}, "STRAẞE": {"b", "a"}, "strase": nil, "gr str": {"b", "a"}, "gros": {"d", "b", "a"},
		"grosses": {"d"}, "muller gro": {"b", "a"}, "müller": {"b", "a"}, "mueller": nil, "kobenh": {"a"},
		"købenHAVN": {"a"}, "obenhavn": nil, "aevar": {"a"}, "Ævar 12": {"a"}, "ελλαδ": {"c"}, "елк": {"c"},
		"été": {"c"}, "ete": {"c"}, strings.Repeat("X", 24): {"c"}, strings.Repeat("x", 90): {"c"},
		"1001": {"d", "b", "a"}, "#1001": {"d", "b", "a"}, "001": {"b", "a"}, "2024": {"b"}, "inv 2024": {"b"},
		"4567": {"a"}, "89 123 45 67": {"a"}, "+49 89 1234567": {"a"}, "567": {"a"}, "67": nil, "091": nil, "891": {"c"},
		"12": {"d", "a"}, "12 gro": {"d", "a"}, "??": nil, "-- / .": nil, "north": nil, "a\"b": nil, "gro* OR": nil,
		"0891": {"c"}, "1241001": nil, "20241001": {"b"}, "7788": {"d"}, "３０-٧٧ ८८": {"d"}, "१००１": {"d", "b", "a"},
		"१२": {"d", "a"}, "٤٥٦٧": {"a"}, "۴۵۶۷": {"a"}, "𝟒𝟓𝟔𝟕": {"a"},
	} {
		same(t, "found by "+query, c.found(query), want)
	}
	list, _ := c.tasks(tracking.TaskFilter{Query: "1001", OrderID: "#1001"})
	same(t, "found by a number and the order", each(list, taskID), []tracking.TaskID{"a"})

	// What it was found by is gone, and only that.
	task := c.task("a")
	task.Drop.Address, task.Drop.Customer = "Ringstr. 5", nil
	c.commit(tracking.Changeset{Tasks: []tracking.Task{task}})
	task = c.task("a")
	task.Notes = "again, with the same words"
	c.commit(tracking.Changeset{Tasks: []tracking.Task{task}})
	for query, want := range map[string][]tracking.TaskID{
		"strasse": {"b"}, "muller": {"b"}, "4567": nil, "ringstr 5": {"a"}, "#1001": {"d", "b", "a"},
	} {
		same(t, "found afterwards by "+query, c.found(query), want)
	}
}

func tasksOfAnotherAppAreNotFound(t testing.TB, s tracking.Store) {
	findable(t, s, here)
	c := use(t, s, "other")
	c.commit(tracking.Changeset{Tasks: []tracking.Task{newTask("z", t0)}})
	same(t, "found in the other", c.found("strasse"), []tracking.TaskID(nil))
	list, _ := c.tasks(tracking.TaskFilter{Properties: map[string]string{"zone": "north"}})
	same(t, "found by a property", list, []tracking.Task(nil))
	n, err := s.TaskCounts(c.ctx, "other", tracking.CountQuery{Now: t0})
	c.ok(err)
	same(t, "counts", n, tracking.TaskCounts{Created: 1})
}

// various makes 40 tasks that differ in all that the other filters go by.
func various(t testing.TB, s tracking.Store) (*client, []tracking.Task) {
	c := use(t, s, here)
	var tasks []tracking.Task
	for i := range 40 {
		task := newTask(tracking.TaskID(fmt.Sprint(i)), at(time.Duration(i/2*7%15)*time.Minute))
		task.Status = []tracking.TaskStatus{
			tracking.StatusCreated, tracking.StatusAssigned, tracking.StatusInProgress, tracking.StatusCompleted,
		}[i%4]
		task.DriverID = []tracking.DriverID{"", "d", "e"}[i%3]
		task.Drop.Address = []string{"Ring 1", "Ring 12", "Markt 1"}[i%3]
		if i%4 == 3 {
			task.CompletedAt = at(time.Duration(60+i) * time.Minute)
			task.Outcome = []tracking.Outcome{tracking.OutcomeSucceeded, tracking.OutcomeFailed}[i/4%2]
		}
		if i%8 == 0 {
			task.Waiting = true
		}
		if i%8 == 4 && i > 8 {
			task.AssignAt = at(time.Hour)
		}
		if i%5 > 0 {
			task.Window.From = at(time.Duration(i%7) * time.Hour)
		}
		if i%5 > 1 {
			task.Window.To = at(time.Duration(i%7+1) * time.Hour)
		}
		if i%6 == 0 {
			task.Promise = at(time.Duration(i%4) * time.Hour)
		}
		if i%9 == 1 {
			task.LateFor = task.Promised()
		}
		task.OrderID = []string{"", "#1", "#2"}[i/3%3]
		task.Properties = map[string]string{"zone": fmt.Sprint(i % 3)}
		if i%4 == 0 {
			task.Properties["vip"] = ""
		}
		tasks = append(tasks, task)
	}
	for i := 0; i < len(tasks); i += 10 {
		c.commit(tracking.Changeset{Tasks: tasks[i : i+10]})
	}
	tasks = tasks[:0]
	for i := range 40 {
		tasks = append(tasks, c.task(tracking.TaskID(fmt.Sprint(i))))
	}
	return c, tasks
}

// otherFilters are filters of each kind, and of some together, in both orders.
func otherFilters() (list []tracking.TaskFilter) {
	one := []tracking.TaskStatus{tracking.StatusAssigned}
	for _, f := range []tracking.TaskFilter{
		{}, {CreatedFrom: at(3 * time.Minute)}, {CreatedTo: at(9 * time.Minute)},
		{CreatedFrom: at(3 * time.Minute), CreatedTo: at(9*time.Minute + time.Microsecond), Status: one},
		{WindowFrom: at(2 * time.Hour)}, {WindowTo: at(4 * time.Hour)},
		{WindowFrom: at(time.Hour), WindowTo: at(4 * time.Hour), Status: append(one, tracking.StatusCreated, "none")},
		{Late: true, Now: t0}, {Late: true, Now: at(3 * time.Hour)}, {Late: true, Now: at(90 * time.Hour), DriverID: "d"},
		{Waiting: true}, {Waiting: true, Late: true, Now: at(9 * time.Hour)}, {Waiting: true, Status: one},
		{Properties: map[string]string{"zone": "1"}}, {Properties: map[string]string{"zone": "1", "vip": ""}},
		{Properties: map[string]string{"zone": "01"}}, {Properties: map[string]string{"vip": "", "Zone": "1"}},
		{Query: "ring 1"}, {Query: "ring 12", Status: one}, {Query: "ma", Properties: map[string]string{"vip": ""}},
		{Query: "ring", CreatedFrom: at(3 * time.Minute), CreatedTo: at(9 * time.Minute), DriverID: "d"},
		{Query: "ring 12", OrderID: "#2"}, {OrderID: "#2", Properties: map[string]string{"zone": "1"}},
		{Query: "ring", Late: true, Now: at(9 * time.Hour)}, {Query: "ring", CompletedSince: at(80 * time.Minute)},
		{DriverID: "d", Waiting: true}, {DriverID: "e", Status: append(one, tracking.StatusCompleted)},
		{CompletedSince: at(70 * time.Minute), WindowFrom: at(2 * time.Hour)},
	} {
		for _, f.Sort = range []tracking.TaskSort{"", tracking.SortWindow} {
			list = append(list, f)
		}
	}
	return list
}

// sifted are the tasks that a filter holds, in its order.
func sifted(tasks []tracking.Task, f tracking.TaskFilter) (want []tracking.TaskID) {
	var held []tracking.Task
	for _, task := range tasks {
		if f.Holds(task) {
			held = append(held, task)
		}
	}
	slices.SortFunc(held, func(a, b tracking.Task) int { return a.Mark(f.Sort).Compare(b.Mark(f.Sort)) })
	return each(held, taskID)
}

func tasksByOtherFilters(t testing.TB, s tracking.Store) {
	c, tasks := various(t, s)
	some := 0
	for _, f := range otherFilters() {
		want := sifted(tasks, f)
		if some += len(want); len(want) == len(tasks) && f.CreatedFrom != (time.Time{}) {
			t.Errorf("the filter %+v leaves nothing out", f)
		}
		for _, limit := range []int{1, 4, 1000} {
			pages(t, fmt.Sprintf("tasks by %+v", f), want, limit, func(p tracking.Page) ([]tracking.TaskID, bool) {
				f.Page = p
				list, more := c.tasks(f)
				return each(list, taskID), more
			})
		}
	}
	if some < 300 {
		t.Errorf("the filters find %d tasks: too few to tell", some)
	}
}

// tasksByThreeFilters sets each three parts of a filter, that many hold or few: whichever a store
// looks for first, it must not forget the others.
func tasksByThreeFilters(t testing.TB, s tracking.Store) {
	c, tasks := various(t, s)
	for i := range 4 {
		rare := tasks[i*7]
		rare.DriverID, rare.OrderID, rare.Drop.Address = "rare", "#rare", "Seltenweg 1"
		rare.Properties = map[string]string{"zone": "rare"}
		switch i {
		case 1:
			rare.DriverID = "d"
		case 2:
			rare.OrderID, rare.Drop.Address = "#1", "Ring 1"
		case 3:
			rare.Properties["zone"] = "1"
		}
		c.commit(tracking.Changeset{Tasks: []tracking.Task{rare}})
		tasks[i*7] = c.task(rare.ID)
	}
	parts := []func(*tracking.TaskFilter){
		func(f *tracking.TaskFilter) {},
		func(f *tracking.TaskFilter) { f.DriverID = "d" },
		func(f *tracking.TaskFilter) { f.DriverID = "rare" },
		func(f *tracking.TaskFilter) { f.OrderID = "#1" },
		func(f *tracking.TaskFilter) { f.OrderID = "#rare" },
		func(f *tracking.TaskFilter) { f.Query = "ring" },
		func(f *tracking.TaskFilter) { f.Query = "seltenweg" },
		func(f *tracking.TaskFilter) { f.Properties = map[string]string{"zone": "1"} },
		func(f *tracking.TaskFilter) { f.Properties = map[string]string{"zone": "rare"} },
		func(f *tracking.TaskFilter) {
			f.Status = []tracking.TaskStatus{tracking.StatusAssigned, tracking.StatusCreated}
		},
		func(f *tracking.TaskFilter) { f.Status = []tracking.TaskStatus{tracking.StatusCompleted} },
		func(f *tracking.TaskFilter) { f.CompletedSince = at(70 * time.Minute) },
		func(f *tracking.TaskFilter) { f.CreatedFrom = at(5 * time.Minute) },
		func(f *tracking.TaskFilter) { f.WindowTo = at(5 * time.Hour) },
		func(f *tracking.TaskFilter) { f.Late, f.Now = true, at(9*time.Hour) },
		func(f *tracking.TaskFilter) { f.Waiting = true },
	}
	for i := range parts {
		for j := range i {
			for k := range j {
				f := tracking.TaskFilter{Page: tracking.Page{Limit: 1000}}
				parts[i](&f)
				parts[j](&f)
				parts[k](&f)
				f.Sort = []tracking.TaskSort{"", tracking.SortWindow}[(i+j+k)%2]
				list, _ := c.tasks(f)
				same(t, fmt.Sprintf("tasks by %+v", f), each(list, taskID), sifted(tasks, f))
			}
		}
	}
}

// markNeitherSkipsNorRepeats walks each list by marks, while tasks come, change and begin to wait.
func markNeitherSkipsNorRepeats(t testing.TB, s tracking.Store) {
	c, tasks := various(t, s)
	for n, f := range otherFilters() {
		before := sifted(tasks, f)
		met := map[tracking.TaskID]int{}
		f.Page.Limit = 3
		for page := 0; ; page++ {
			list, more := c.tasks(f)
			for _, task := range list {
				met[task.ID]++
			}
			if page == 1 { // one that is among the newest, and among the first and the last windows
				fresh := newTask(tracking.TaskID(fmt.Sprint("new ", n)), at(time.Hour))
				fresh.Window.From = t0
				c.commit(tracking.Changeset{Tasks: []tracking.Task{fresh}})
			}
			if !more {
				break
			}
			mark := list[len(list)-1].Mark(f.Sort)
			read, ok := tracking.ParseTaskMark(mark.String())
			same(t, "the mark is read", ok, true)
			same(t, "a mark as a text", read, mark)
			f.After = &read
		}
		for _, id := range before {
			if met[id] != 1 {
				t.Errorf("by %+v the task %s is met %d times", f, id, met[id])
			}
		}
	}
}

func taskCounts(t testing.TB, s tracking.Store) {
	c, tasks := various(t, s)
	for _, q := range []tracking.CountQuery{
		{Now: t0, CompletedSince: at(80 * time.Minute)}, {Now: at(3 * time.Hour), CompletedSince: at(99 * time.Minute)},
		{Now: at(99 * time.Hour), CompletedSince: at(200 * time.Minute)}, {Now: at(time.Hour)},
	} {
		var want tracking.TaskCounts
		done := map[tracking.Outcome]int{}
		for _, task := range tasks {
			switch task.Status {
			case tracking.StatusCreated:
				want.Created++
			case tracking.StatusAssigned:
				want.Assigned++
			case tracking.StatusInProgress:
				want.InProgress++
			case tracking.StatusCompleted:
				if !task.CompletedAt.Before(q.CompletedSince) {
					done[task.Outcome]++
				}
			}
			if task.Seeks() {
				want.Waiting++
			}
			if task.Late(q.Now) {
				want.Late++
			}
		}
		if len(done) > 0 {
			want.Completed = done
		}
		n, err := s.TaskCounts(c.ctx, here, q)
		c.ok(err)
		same(t, fmt.Sprintf("counts by %+v", q), n, want)
	}
	n, err := s.TaskCounts(c.ctx, "nobody's", tracking.CountQuery{Now: t0})
	c.ok(err)
	same(t, "counts of an application without tasks", n, tracking.TaskCounts{})
}

func taskByKeyFindsIt(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	task := newTask("a", t0)
	task.Key, task.KeySum = "k", hash(1)
	c.commit(tracking.Changeset{Tasks: []tracking.Task{task, newTask("b", t0)}})
	got, err := s.TaskByKey(c.ctx, here, "k")
	c.ok(err)
	same(t, "task", got, c.task("a"))
	for _, key := range []string{"", "K", "k "} {
		_, err := s.TaskByKey(c.ctx, here, key)
		missing(t, fmt.Sprintf("TaskByKey(%q)", key), err)
	}
}

func taskByLinkFindsItUntilRevoked(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	task := newTask("a", t0)
	task.Link = tracking.Link{Generation: 1, Hash: hash(1), MadeAt: t0}
	c.commit(tracking.Changeset{Tasks: []tracking.Task{task, newTask("no link", t0)}})
	app, got, err := s.TaskByLink(c.ctx, hash(1))
	c.ok(err)
	same(t, "application", app, here)
	same(t, "task", got, c.task("a"))
	_, _, err = s.TaskByLink(c.ctx, hash(2))
	missing(t, "TaskByLink of an unknown hash", err)
	_, _, err = s.TaskByLink(c.ctx, tracking.Hash{})
	missing(t, "TaskByLink of the zero hash", err)
	_, _, err = s.TripByLink(c.ctx, hash(1))
	missing(t, "TripByLink of a task's hash", err)
	got.Link = tracking.Link{Generation: 2}
	c.commit(tracking.Changeset{Tasks: []tracking.Task{got}})
	_, _, err = s.TaskByLink(c.ctx, hash(1))
	missing(t, "TaskByLink of a revoked link", err)
	_, _, err = s.TaskByLink(c.ctx, tracking.Hash{})
	missing(t, "TaskByLink of the zero hash", err)
}

// seedTasks makes 24 tasks: two drivers and none, four states, three orders; every fourth has the
// CreatedAt of the one before.
func seedTasks(t testing.TB, s tracking.Store) (*client, []tracking.Task) {
	c := use(t, s, here)
	var tasks []tracking.Task
	for i := range 24 {
		task := newTask(tracking.TaskID(fmt.Sprint(i)), at(time.Duration(i-i%4/3)*time.Minute))
		task.DriverID = []tracking.DriverID{"", "d", "e"}[i%3]
		task.Status = []tracking.TaskStatus{
			tracking.StatusCreated, tracking.StatusAssigned, tracking.StatusInProgress, tracking.StatusCompleted,
		}[i%4]
		task.OrderID = []string{"", "#1", "#1 ", "#2", "#01"}[i%5]
		if task.Status == tracking.StatusCompleted {
			task.CompletedAt = at(time.Duration(100-i) * time.Minute)
		}
		tasks = append(tasks, task)
	}
	for i := 0; i < len(tasks); i += 6 { // in four changesets
		c.commit(tracking.Changeset{Tasks: tasks[i : i+6]})
	}
	return c, tasks
}

func taskCountsFollow(t testing.TB, s tracking.Store) {
	c, tasks := various(t, s)
	count := func(what string) {
		t.Helper()
		for m := time.Duration(0); m < 300; m += 10 {
			since, done := at((m+1)*time.Minute), map[tracking.Outcome]int{}
			if m == 0 {
				since = time.Time{}
			}
			for _, task := range tasks {
				if task.Status == tracking.StatusCompleted && !task.CompletedAt.Before(since) {
					done[task.Outcome]++
				}
			}
			n, err := s.TaskCounts(c.ctx, here, tracking.CountQuery{Now: t0, CompletedSince: since})
			c.ok(err)
			if len(n.Completed) != 0 || len(done) != 0 {
				same(t, fmt.Sprintf("%s, completed since %v", what, since), n.Completed, done)
			}
		}
	}
	change := func(do func(i int, task *tracking.Task)) {
		for i := range tasks {
			if tasks[i].Status == tracking.StatusCompleted {
				do(i, &tasks[i])
			}
		}
		c.commit(tracking.Changeset{Tasks: tasks})
		for i := range tasks {
			tasks[i] = c.task(tasks[i].ID)
		}
	}
	count("as made")
	change(func(i int, task *tracking.Task) { task.Notes = "the same otherwise" })
	count("changed elsewhere")
	change(func(i int, task *tracking.Task) {
		task.CompletedAt = task.CompletedAt.Add(time.Duration(i) * time.Minute)
		task.Outcome = []tracking.Outcome{tracking.OutcomeSucceeded, tracking.OutcomeCancelled}[i/4%2]
	})
	count("completed at another time, with another outcome")
	var again []int
	change(func(i int, task *tracking.Task) {
		if i%8 == 3 {
			task.Status, task.Outcome, task.CompletedAt = tracking.StatusAssigned, "", time.Time{}
			again = append(again, i)
		}
	})
	count("half of them reopened")
	for _, i := range again {
		tasks[i].Status, tasks[i].Outcome, tasks[i].CompletedAt = tracking.StatusCompleted, tracking.OutcomeFailed, at(4*time.Hour)
	}
	change(func(int, *tracking.Task) {})
	count("completed anew")
	c.commit(tracking.Changeset{DeleteTasks: tasks[:20]})
	tasks = tasks[20:]
	count("half of all deleted")
	c.commit(tracking.Changeset{DeleteTasks: tasks})
	tasks = nil
	count("all deleted")
}
