package memory

import (
	"cmp"
	"context"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/claims"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// taskNo is the number of a task's row, by which lists have it.
type taskNo = uint32

// taskRow is a task's place in the lists, with what they go by.
type taskRow struct {
	place
	kept packedTask
	no   taskNo

	completed, due int64 // UTC ms of CompletedAt and DueAt
	window, late   int64 // UTC ms of Window.At and LateFrom; never for none
}

// never is later than all moments.
const never = math.MaxInt64

func msOrNever(t time.Time) int64 {
	if t.IsZero() {
		return never
	}
	return t.UnixMilli()
}

// put makes t the row's task, whose keys these are.
func (r *taskRow) put(t *tracking.Task, k *taskKeys) {
	r.kept = pack(t)
	r.completed, r.due = k.completed.UnixMilli(), k.due.UnixMilli()
	r.window, r.late = msOrNever(k.window), msOrNever(k.late)
}

// task is the row's task, of which nothing may be kept.
func (r *taskRow) task() tracking.Task { return r.kept.look() }

// mark is [tracking.Task.Mark] of the row's task.
func (r *taskRow) mark(sort tracking.TaskSort) tracking.TaskMark {
	t := tracking.Task{CreatedAt: time.UnixMilli(r.created).UTC(), Seq: r.seq}
	if r.window != never {
		t.Window.From = time.UnixMilli(r.window).UTC()
	}
	return t.Mark(sort)
}

// version is 0 of a row that is not there.
func (r *taskRow) version() int64 {
	if r == nil {
		return 0
	}
	return r.kept.head().version
}

// taskRows are an application's rows of tasks, with the orders of their lists.
type taskRows struct {
	slab[taskRow]

	byAge, byCompletion, byGeocode, byDue func(a, b taskNo) int

	// byWindow is the order of windows. Its lists are read forwards, others from the end, so that in
	// either a new task, which mostly has no window, comes last.
	byWindow func(a, b taskNo) int
}

func newTaskRows() *taskRows {
	x := new(taskRows)
	age := func(a, b *taskRow) int { return a.place.compare(b.place) }
	by := func(compare func(a, b *taskRow) int) func(a, b taskNo) int {
		return func(a, b taskNo) int {
			r, o := x.at(a), x.at(b)
			return cmp.Or(compare(r, o), age(r, o))
		}
	}
	x.byAge = func(a, b taskNo) int { return age(x.at(a), x.at(b)) }
	x.byCompletion = by(func(a, b *taskRow) int { return cmp.Compare(a.completed, b.completed) })
	x.byDue = by(func(a, b *taskRow) int { return cmp.Compare(a.due, b.due) })
	x.byWindow = by(func(a, b *taskRow) int { return cmp.Compare(a.window, b.window) })
	x.byGeocode = by(func(a, b *taskRow) int { // for few
		return a.task().GeocodeAt.Compare(b.task().GeocodeAt)
	})
	return x
}

// kept are the tasks of rows.
func (x *taskRows) kept(found []taskNo) []packedTask {
	return copies(found, func(n taskNo) packedTask { return x.at(n).kept })
}

// tasks holds an application's tasks, and the lists that serve its filters.
type tasks struct {
	rows     *taskRows
	byID     lists // by codeOf the id
	byKey    lists // by codeOf the key
	all      taskSet
	byDriver map[tracking.DriverID]*taskSet
	byOrder  lists        // by codeOf the order
	byTerm   lists        // by [rows.Codes]
	byWindow statusLists  // in the order of byWindow
	owed     list[taskNo] // those that are late or may become so
	seeking  list[taskNo] // those that Seek
	geocode  list[taskNo] // by GeocodeAt
	due      list[taskNo] // by DueAt
	personal list[taskNo] // the completed ones that are Personal, by completion
}

// taskSet is the tasks of the application, or of one driver.
type taskSet struct {
	all       list[taskNo]
	byStatus  statusLists
	completed list[taskNo] // those with a CompletedAt, by it
}

// statusLists are lists by status: so few that to look at each takes less than a map. None is empty.
type statusLists []*statusList

type statusList struct {
	status tracking.TaskStatus
	list[taskNo]
}

// of is the list of a status; nil: it has no elements.
func (x statusLists) of(st tracking.TaskStatus) *list[taskNo] {
	for _, l := range x {
		if l.status == st {
			return &l.list
		}
	}
	return nil
}

func (x *statusLists) insert(st tracking.TaskStatus, n taskNo, compare func(a, b taskNo) int) {
	l := x.of(st)
	if l == nil {
		next := &statusList{status: tracking.TaskStatus(strings.Clone(string(st)))}
		*x, l = append(*x, next), &next.list
	}
	l.insert(n, compare)
}

func (x *statusLists) remove(st tracking.TaskStatus, n taskNo, compare func(a, b taskNo) int) {
	if l := x.of(st); l != nil && l.remove(n, compare) && l.len() == 0 {
		*x = slices.DeleteFunc(*x, func(l *statusList) bool { return l.status == st })
	}
}

func newTasks() tasks {
	return tasks{
		rows:     newTaskRows(),
		byDriver: make(map[tracking.DriverID]*taskSet),
	}
}

// taskKeys is what decides in which lists a task is.
type taskKeys struct {
	status                  tracking.TaskStatus
	driver                  tracking.DriverID
	order                   string
	completed, geocode, due time.Time
	window, late            time.Time
	seeks, personal         bool
}

func keysOfTask(t *tracking.Task) taskKeys {
	k := taskKeys{
		status: t.Status, driver: t.DriverID, order: t.OrderID, completed: t.CompletedAt, geocode: t.GeocodeAt,
		due: t.DueAt, window: t.Window.At(), seeks: t.Waiting || !t.AssignAt.IsZero(),
	}
	// The task's own methods take a copy of it, a kilobyte, to answer mostly no.
	if !t.Promise.IsZero() || !t.Window.To.IsZero() {
		k.late = t.LateFrom()
	}
	k.personal = !t.CompletedAt.IsZero() && t.Personal()
	return k
}

func (k *taskKeys) owed() bool { return !k.late.IsZero() }

// row is a task's, nil if there is none.
func (x *tasks) row(id tracking.TaskID) *taskRow {
	return find(&x.byID, codeOf(string(id)), func(no taskNo) *taskRow {
		if r := x.rows.at(no); r.kept.head().id == id {
			return r
		}
		return nil
	})
}

// withKey is the row of the task that has a key, nil if there is none.
func (x *tasks) withKey(key string) *taskRow {
	return find(&x.byKey, codeOf(key), func(no taskNo) *taskRow {
		if r := x.rows.at(no); r.task().Key == key {
			return r
		}
		return nil
	})
}

// find is the row that is meant among those of a code, of which row returns that one alone.
func find[R any](in *lists, code uint64, row func(no uint32) *R) *R {
	one, some, ok := in.get(code)
	switch {
	case !ok:
		return nil
	case some == nil:
		return row(one)
	}
	for no := range walk(some) {
		if r := row(no); r != nil {
			return r
		}
	}
	return nil
}

// insert adds a new task, whose [rows.Codes] are these. Its CreatedAt and Seq are set.
func (x *tasks) insert(t *tracking.Task, codes []uint64) {
	no := x.rows.put(taskRow{place: place{t.CreatedAt.UnixMilli(), t.Seq}})
	r, keys := x.rows.at(no), keysOfTask(t)
	r.no = no
	r.put(t, &keys)
	x.all.all.insert(no, x.rows.byAge)
	x.enter(no, &keys, &taskKeys{})
	x.name(no, codes)
	x.byID.insert(codeOf(string(t.ID)), no, x.rows.byAge)
	if t.Key != "" {
		x.byKey.insert(codeOf(t.Key), no, x.rows.byAge)
	}
}

// replace puts t in the place of r's task, which was another way.
func (x *tasks) replace(r *taskRow, t, old *tracking.Task) {
	other := !rows.SameTerms(old, t)
	if other {
		x.unname(r.no, rows.Codes(nil, old))
	}
	if was, next := keysOfTask(old), keysOfTask(t); was != next {
		x.leave(r.no, &was, &next)
		r.put(t, &next)
		x.enter(r.no, &next, &was)
	} else {
		r.put(t, &next)
	}
	if other {
		x.name(r.no, rows.Codes(nil, t))
	}
	if old.Key != t.Key {
		if old.Key != "" {
			x.byKey.remove(codeOf(old.Key), r.no, x.rows.byAge)
		}
		if t.Key != "" {
			x.byKey.insert(codeOf(t.Key), r.no, x.rows.byAge)
		}
	}
}

// name puts n into the lists of its task's terms, and unname takes it out.
func (x *tasks) name(n taskNo, codes []uint64) {
	for _, code := range codes {
		x.byTerm.insert(code, n, x.rows.byAge)
	}
}

func (x *tasks) unname(n taskNo, codes []uint64) {
	for _, code := range codes {
		x.byTerm.remove(code, n, x.rows.byAge)
	}
}

// enter puts n into the lists of its keys, other than those where it has been under its former keys.
func (x *tasks) enter(n taskNo, now, was *taskKeys) {
	x.all.enter(x.rows, n, now, was, false)
	if now.driver != "" {
		set := x.byDriver[now.driver]
		if set == nil {
			set = new(taskSet)
			x.byDriver[tracking.DriverID(strings.Clone(string(now.driver)))] = set
		}
		if moved := now.driver != was.driver; moved {
			set.all.insert(n, x.rows.byAge)
			set.enter(x.rows, n, now, was, true)
		} else {
			set.enter(x.rows, n, now, was, false)
		}
	}
	if now.order != "" && now.order != was.order {
		x.byOrder.insert(codeOf(now.order), n, x.rows.byAge)
	}
	if now.status != was.status || now.window != was.window {
		x.byWindow.insert(now.status, n, x.rows.byWindow)
	}
	if now.owed() && !was.owed() {
		x.owed.insert(n, x.rows.byAge)
	}
	if now.seeks && !was.seeks {
		x.seeking.insert(n, x.rows.byAge)
	}
	if !now.geocode.IsZero() && now.geocode != was.geocode {
		x.geocode.insert(n, x.rows.byGeocode)
	}
	if !now.due.IsZero() && now.due != was.due {
		x.due.insert(n, x.rows.byDue)
	}
	if now.personal && !(was.personal && now.completed == was.completed) {
		x.personal.insert(n, x.rows.byCompletion)
	}
}

// leave takes n, which has still its former keys, out of the lists that it will not be in under its
// next ones.
func (x *tasks) leave(n taskNo, was, next *taskKeys) {
	x.all.leave(x.rows, n, was, next, false)
	if set := x.byDriver[was.driver]; was.driver != "" {
		moved := next.driver != was.driver
		set.leave(x.rows, n, was, next, moved)
		if moved {
			set.all.remove(n, x.rows.byAge)
			if set.all.len() == 0 {
				delete(x.byDriver, was.driver)
			}
		}
	}
	if was.order != "" && was.order != next.order {
		x.byOrder.remove(codeOf(was.order), n, x.rows.byAge)
	}
	if was.status != next.status || was.window != next.window {
		x.byWindow.remove(was.status, n, x.rows.byWindow)
	}
	if was.owed() && !next.owed() {
		x.owed.remove(n, x.rows.byAge)
	}
	if was.seeks && !next.seeks {
		x.seeking.remove(n, x.rows.byAge)
	}
	if !was.geocode.IsZero() && was.geocode != next.geocode {
		x.geocode.remove(n, x.rows.byGeocode)
	}
	if !was.due.IsZero() && was.due != next.due {
		x.due.remove(n, x.rows.byDue)
	}
	if was.personal && !(next.personal && was.completed == next.completed) {
		x.personal.remove(n, x.rows.byCompletion)
	}
}

// enter and leave treat the lists by status and by completion alike; moved says that n comes from,
// or goes to, another set.
func (s *taskSet) enter(by *taskRows, n taskNo, now, was *taskKeys, moved bool) {
	if moved || now.status != was.status {
		s.byStatus.insert(now.status, n, by.byAge)
	}
	if !now.completed.IsZero() && (moved || now.completed != was.completed) {
		s.completed.insert(n, by.byCompletion)
	}
}

func (s *taskSet) leave(by *taskRows, n taskNo, was, next *taskKeys, moved bool) {
	if moved || was.status != next.status {
		s.byStatus.remove(was.status, n, by.byAge)
	}
	if !was.completed.IsZero() && (moved || was.completed != next.completed) {
		s.completed.remove(n, by.byCompletion)
	}
}

var (
	codeSeed = maphash.MakeSeed()
	codeBits = ^uint64(0) // that codes have; few in a test
)

// codeOf is what a text is found by, with others that may have the same.
func codeOf(text string) uint64 { return maphash.String(codeSeed, text) & codeBits }

// insertInto adds v to the list of a key, and removeFrom takes it out; a key without elements has
// no list.
func insertInto[K comparable, T any](m map[K]*list[T], key K, v T, compare func(a, b T) int) {
	l := m[key]
	if l == nil {
		l = new(list[T])
		m[key] = l
	}
	l.insert(v, compare)
}

func removeFrom[K comparable, T any](m map[K]*list[T], key K, v T, compare func(a, b T) int) {
	l := m[key]
	if l == nil {
		return
	}
	if l.remove(v, compare); l.len() == 0 {
		delete(m, key)
	}
}

// Task implements [tracking.TaskReader].
func (s *Store) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (t tracking.Task, err error) {
	a, err := s.read(ctx, app)
	if err != nil {
		return t, err
	}
	if a == nil {
		return t, tracking.ErrNotFound
	}
	err = a.unlockTask(a.tasks.row(id), &t)
	return t, err
}

// unlockTask gives back the lock and reads r's task; r may be nil.
func (a *application) unlockTask(r *taskRow, t *tracking.Task) error {
	if r == nil {
		a.mu.RUnlock()
		return tracking.ErrNotFound
	}
	kept := r.kept
	a.mu.RUnlock()
	kept.read(t)
	return nil
}

// TaskByKey implements [tracking.TaskReader].
func (s *Store) TaskByKey(ctx context.Context, app tracking.AppID, key string) (t tracking.Task, err error) {
	a, err := s.read(ctx, app)
	if err != nil {
		return t, err
	}
	if a == nil {
		return t, tracking.ErrNotFound
	}
	err = a.unlockTask(a.tasks.withKey(key), &t)
	return t, err
}

// TaskByLink implements [tracking.TaskReader].
func (s *Store) TaskByLink(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Task, error) {
	a, row, err := findSecret(ctx, s, &s.secrets.taskLinks, hash, func(a *application, id tracking.TaskID) *taskRow {
		if r := a.tasks.row(id); r != nil && r.task().Link.Hash == hash {
			return r
		}
		return nil
	})
	if err != nil {
		return "", tracking.Task{}, err
	}
	var t tracking.Task
	err = a.unlockTask(row, &t)
	return a.id, t, err
}

// Tasks implements [tracking.TaskReader].
func (s *Store) Tasks(ctx context.Context, app tracking.AppID, f tracking.TaskFilter) ([]tracking.Task, bool, error) {
	a, err := s.read(ctx, app)
	if a == nil || err != nil {
		return nil, false, err
	}
	found, more := a.tasks.page(f)
	a.mu.RUnlock()
	return unpacked(found, f.Into), more, nil
}

// page finds the tasks of a page.
func (x *tasks) page(f tracking.TaskFilter) (page []packedTask, more bool) {
	sources, whole := x.sources(f)
	if sources == nil {
		return nil, false
	}
	plain := whole && f.Person == "" && f.CompletedSince.IsZero() && f.CreatedFrom.IsZero() && f.CreatedTo.IsZero() &&
		f.WindowFrom.IsZero() && f.WindowTo.IsZero() && f.After == nil && f.Sort != tracking.SortWindow
	if plain {
		found, more := newest(sources, f.Page, x.rows.byAge, nil)
		return x.rows.kept(found), more
	}
	compare, forwards := x.rows.byAge, f.Sort == tracking.SortWindow
	if forwards {
		compare = x.rows.byWindow
	}
	walk := until(merge(sources, compare, x.rows.begins(f), forwards), x.rows.ends(f))
	found, more := take(walk, f.Offset(), f.Limit, func(n taskNo) bool { return f.Holds(x.rows.at(n).task()) })
	return x.rows.kept(found), more
}

// sources are lists that hold all that the filter lets pass, in its order; whole, if that is all of
// them. Nil: there is nothing.
func (x *tasks) sources(f tracking.TaskFilter) (sources []*list[taskNo], whole bool) {
	set := &x.all
	if f.DriverID != "" {
		if set = x.byDriver[f.DriverID]; set == nil {
			return nil, false
		}
	}
	other := f.OrderID != "" || f.Late || f.Waiting || f.Query != "" || len(f.Properties) > 0
	switch order := x.byOrder.of(codeOf(f.OrderID)); {
	case f.OrderID != "" && order == nil:
		return nil, false
	case f.OrderID != "" && order.len() <= set.all.len():
		sources = []*list[taskNo]{order}
	case f.Query != "" || len(f.Properties) > 0:
		sources = x.named(f)
	case f.Late:
		sources = []*list[taskNo]{&x.owed}
	case f.Waiting:
		sources = []*list[taskNo]{&x.seeking}
	case f.Sort == tracking.SortWindow && f.DriverID == "":
		for _, l := range x.byWindow {
			if len(f.Status) == 0 || slices.Contains(f.Status, l.status) {
				sources = append(sources, &l.list)
			}
		}
		return sources, true
	case len(f.Status) > 0:
		for i, st := range f.Status {
			if l := set.byStatus.of(st); l != nil && !slices.Contains(f.Status[:i], st) {
				sources = append(sources, l)
			}
		}
		whole = !other
	default:
		sources, whole = []*list[taskNo]{&set.all}, !other
	}
	if l, ok := set.completedSince(x.rows, f, sources); ok && f.Sort != tracking.SortWindow {
		sources, whole = []*list[taskNo]{l}, false
	}
	if f.Sort == tracking.SortWindow && sources != nil {
		sources, whole = []*list[taskNo]{ordered(merge(sources, x.rows.byAge, nil, false), x.rows.byWindow)}, false
	}
	return sources, whole
}

// named are the lists of those who have the rarest term that the filter asks for.
func (x *tasks) named(f tracking.TaskFilter) (sources []*list[taskNo]) {
	for _, codes := range rows.WantedCodes(f) {
		var rarest *list[taskNo]
		for i, code := range codes {
			l := x.byTerm.of(code)
			if i == 0 || l == nil || rarest != nil && l.len() < rarest.len() {
				rarest = l
			}
			if l == nil {
				break
			}
		}
		if rarest != nil {
			sources = append(sources, rarest)
		}
	}
	return sources
}

// begins says of which tasks, that would come first, the filter's mark and times leave out all; nil: of
// none.
func (x *taskRows) begins(f tracking.TaskFilter) func(taskNo) bool {
	window := f.Sort == tracking.SortWindow
	if f.After == nil && (window && f.WindowFrom.IsZero() || !window && f.CreatedTo.IsZero()) {
		return nil
	}
	return func(n taskNo) bool {
		r := x.at(n)
		switch {
		case f.After != nil && r.mark(f.Sort).Compare(*f.After) <= 0:
			return true
		case window:
			return !f.WindowFrom.IsZero() && r.window != never && r.window < rows.Ceil(f.WindowFrom)
		default:
			return !f.CreatedTo.IsZero() && r.created >= rows.Ceil(f.CreatedTo)
		}
	}
}

// ends says from which task on the filter leaves all out; nil: from none.
func (x *taskRows) ends(f tracking.TaskFilter) func(taskNo) bool {
	switch {
	case f.Sort == tracking.SortWindow && !f.WindowTo.IsZero():
		return func(n taskNo) bool { at := x.at(n).window; return at == never || at >= rows.Ceil(f.WindowTo) }
	case f.Sort != tracking.SortWindow && !f.CreatedFrom.IsZero():
		return func(n taskNo) bool { return x.at(n).created < rows.Ceil(f.CreatedFrom) }
	}
	return nil
}

// completedSince returns the tasks completed since then, in order of creation, if sorting them is
// less work than leaving the others out.
func (s *taskSet) completedSince(by *taskRows, f tracking.TaskFilter, sources []*list[taskNo]) (*list[taskNo], bool) {
	if f.CompletedSince.IsZero() {
		return nil, false
	}
	walk := 0
	for _, l := range sources {
		walk += l.len()
	}
	since := rows.Ceil(f.CompletedSince)
	recent := s.completed.len() - s.completed.count(func(n taskNo) bool { return by.at(n).completed >= since })
	// Where they are spread evenly, a walk meets walk/recent tasks for each one that it keeps.
	if recent > 0 && (walk <= recent || f.Offset() < recent && walk/recent*(f.Offset()+f.Limit+1) < recent) {
		return nil, false
	}
	if recent == 0 {
		return new(list[taskNo]), true
	}
	c := s.completed.end(0)
	found, _ := take(c.prev, 0, recent, nil)
	slices.SortFunc(found, by.byAge)
	return &list[taskNo]{chunks: [][]taskNo{found}, n: len(found)}, true
}

// TaskCounts implements [tracking.TaskReader].
func (s *Store) TaskCounts(
	ctx context.Context, app tracking.AppID, q tracking.CountQuery,
) (n tracking.TaskCounts, err error) {
	a, err := s.read(ctx, app)
	if a == nil || err != nil {
		return n, err
	}
	defer a.mu.RUnlock()
	x := &a.tasks
	n = tracking.TaskCounts{
		Created: x.in(tracking.StatusCreated), Waiting: x.seeking.len(), Assigned: x.in(tracking.StatusAssigned),
		InProgress: x.in(tracking.StatusInProgress), Late: x.late(q.Now),
	}
	completed, since := x.all.completed.end(0), rows.Ceil(q.CompletedSince)
	for no, ok := completed.prev(); ok; no, ok = completed.prev() {
		r := x.rows.at(no)
		if r.completed < since {
			break
		}
		if h := r.kept.head(); h.status == tracking.StatusCompleted {
			if n.Completed == nil {
				n.Completed = map[tracking.Outcome]int{}
			}
			n.Completed[h.outcome]++
		}
	}
	return n, nil
}

// Stats implements [tracking.Store].
func (s *Store) Stats(ctx context.Context, now time.Time) (n tracking.Stats, err error) {
	if err := s.ready(ctx); err != nil {
		return n, err
	}
	var events []rows.Stat
	for _, a := range s.applications("", nil) {
		a.mu.RLock()
		a.count(&n, now)
		for _, b := range a.boxes {
			events = append(events, b.count()...)
		}
		a.mu.RUnlock()
	}
	n.Outboxes = rows.Stats(events).Outboxes
	return n, nil
}

// count adds the application's tasks and drivers.
func (a *application) count(n *tracking.Stats, now time.Time) {
	x := &a.tasks
	n.Created += x.in(tracking.StatusCreated)
	n.Assigned += x.in(tracking.StatusAssigned)
	n.InProgress += x.in(tracking.StatusInProgress)
	seeking := x.seeking.start(0)
	for no, ok := seeking.next(); ok; no, ok = seeking.next() {
		if t := x.rows.at(no).task(); t.Waiting {
			n.Waiting++
			since := t.WaitsSince
			if since.IsZero() {
				since = t.CreatedAt
			}
			n.OldestWaiting = rows.Earlier(n.OldestWaiting, since)
		}
	}
	n.Late += x.late(now)
	if on := a.drivers.available[true]; on != nil {
		n.OnDuty += on.len()
		c := on.start(0)
		for no, ok := c.next(); ok; no, ok = c.next() {
			if a.drivers.rows.at(no).kept.head().silent {
				n.Silent++
			}
		}
	}
}

// in is how many tasks are in a state.
func (x *tasks) in(st tracking.TaskStatus) int {
	if l := x.all.byStatus.of(st); l != nil {
		return l.len()
	}
	return 0
}

// late is how many tasks are late.
func (x *tasks) late(now time.Time) (n int) {
	owed := x.owed.end(0)
	for no, ok := owed.prev(); ok; no, ok = owed.prev() {
		if x.rows.at(no).late <= now.UnixMilli() {
			n++
		}
	}
	return n
}

// WaitingApps implements [tracking.Store].
func (s *Store) WaitingApps(ctx context.Context) ([]tracking.AppID, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	var list []tracking.AppID
	for _, a := range s.applications("", nil) {
		if a.nearby.Tasks() > 0 {
			list = append(list, a.id)
		}
	}
	slices.Sort(list)
	return list, nil
}

// Waiting implements [tracking.Store].
func (s *Store) Waiting(ctx context.Context, app tracking.AppID, f tracking.WaitingFilter) ([]tracking.Task, error) {
	a, err := s.read(ctx, app)
	if a == nil || err != nil {
		return nil, err
	}
	found := a.waiting(a.nearby.Waiting(f))
	a.mu.RUnlock()
	return unpacked(found, nil), nil
}

// Matches implements [tracking.Store]. It looks without a lock on the application, as there may be
// much to look at, and so looks again when the tasks that it found have all gone meanwhile.
func (s *Store) Matches(ctx context.Context, app tracking.AppID, q tracking.MatchQuery) ([]tracking.Task, error) {
	by := q.Claim
	q.Claim = tracking.Claim{}
	key := func(t tracking.Task) claimedTask { return claimedTask{app, t.ID} }
	return claims.Take(&s.matches, by, q.Limit, key, func(limit int) ([]tracking.Task, error) {
		q.Limit = limit
		return s.listMatches(ctx, app, q)
	})
}

// claimedTask names a task that was handed out.
type claimedTask struct {
	app tracking.AppID
	id  tracking.TaskID
}

func (s *Store) listMatches(ctx context.Context, app tracking.AppID, q tracking.MatchQuery) ([]tracking.Task, error) {
	for {
		a, err := s.read(ctx, app)
		if a == nil || err != nil {
			return nil, err
		}
		a.mu.RUnlock()
		ids := a.nearby.Matches(q)
		a.mu.RLock()
		found := a.waiting(ids)
		a.mu.RUnlock()
		if len(found) > 0 || len(ids) == 0 {
			return unpacked(found, nil), nil
		}
	}
}

// waiting returns those of the tasks that wait.
func (a *application) waiting(ids []tracking.TaskID) (found []packedTask) {
	for _, id := range ids {
		if r := a.tasks.row(id); r != nil && r.task().Waiting {
			found = append(found, r.kept)
		}
	}
	return found
}
