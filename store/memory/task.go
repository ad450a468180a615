package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// taskRow is a task's place in the lists. The Task itself is never changed but replaced, so that a reader may copy it after giving back the lock.
type taskRow struct {
	place
	task *tracking.Task
}

func (r *taskRow) compare(o *taskRow) int { return r.place.compare(o.place) }

func byCompletion(a, b *taskRow) int {
	return cmp.Or(a.task.CompletedAt.Compare(b.task.CompletedAt), a.compare(b))
}

func byTaskGeocode(a, b *taskRow) int {
	return cmp.Or(a.task.GeocodeAt.Compare(b.task.GeocodeAt), a.compare(b))
}

// tasks holds an application's tasks, and the lists that serve its filters.
type tasks struct {
	byID     map[tracking.TaskID]*taskRow
	byKey    map[string]*taskRow
	all      taskSet
	byDriver map[tracking.DriverID]*taskSet
	byOrder  map[string]*list[*taskRow]
	waiting  list[*taskRow]
	geocode  list[*taskRow] // by GeocodeAt
}

// taskSet is the tasks of the application, or of one driver.
type taskSet struct {
	all       list[*taskRow]
	byStatus  map[tracking.TaskStatus]*list[*taskRow]
	completed list[*taskRow] // those with a CompletedAt, by it
}

func newTasks() tasks {
	return tasks{
		byID:     make(map[tracking.TaskID]*taskRow),
		byKey:    make(map[string]*taskRow),
		byDriver: make(map[tracking.DriverID]*taskSet),
		byOrder:  make(map[string]*list[*taskRow]),
	}
}

// taskKeys is what decides in which lists a task is.
type taskKeys struct {
	status             tracking.TaskStatus
	driver             tracking.DriverID
	order              string
	waiting            bool
	completed, geocode time.Time
}

func keysOfTask(t *tracking.Task) taskKeys {
	return taskKeys{t.Status, t.DriverID, t.OrderID, t.Waiting, t.CompletedAt, t.GeocodeAt}
}

// insert adds a new task. Its CreatedAt and Seq are set.
func (x *tasks) insert(t *tracking.Task) {
	r := &taskRow{place{t.CreatedAt.UnixMilli(), t.Seq}, t}
	x.byID[t.ID] = r
	x.all.all.insert(r, (*taskRow).compare)
	x.enter(r, taskKeys{})
	if t.Key != "" {
		x.byKey[t.Key] = r
	}
}

// replace puts t in the place of r's task.
func (x *tasks) replace(r *taskRow, t *tracking.Task) {
	old := r.task
	if was := keysOfTask(old); was != keysOfTask(t) {
		x.leave(r, keysOfTask(t))
		r.task = t
		x.enter(r, was)
	}
	r.task = t
	if old.Key != t.Key {
		if x.byKey[old.Key] == r {
			delete(x.byKey, old.Key)
		}
		if t.Key != "" {
			x.byKey[t.Key] = r
		}
	}
}

// enter puts r into the lists of its keys, other than those where it has been under its former keys.
func (x *tasks) enter(r *taskRow, was taskKeys) {
	now := keysOfTask(r.task)
	x.all.enter(r, now, was, false)
	if now.driver != "" {
		set := x.byDriver[now.driver]
		if set == nil {
			set = new(taskSet)
			x.byDriver[now.driver] = set
		}
		if moved := now.driver != was.driver; moved {
			set.all.insert(r, (*taskRow).compare)
			set.enter(r, now, was, true)
		} else {
			set.enter(r, now, was, false)
		}
	}
	if now.order != "" && now.order != was.order {
		insertInto(x.byOrder, now.order, r, (*taskRow).compare)
	}
	if now.waiting && !was.waiting {
		x.waiting.insert(r, (*taskRow).compare)
	}
	if !now.geocode.IsZero() && now.geocode != was.geocode {
		x.geocode.insert(r, byTaskGeocode)
	}
}

// leave takes r, whose task is still the former one, out of the lists that it will not be in under its next keys.
func (x *tasks) leave(r *taskRow, next taskKeys) {
	was := keysOfTask(r.task)
	x.all.leave(r, was, next, false)
	if set := x.byDriver[was.driver]; was.driver != "" {
		moved := next.driver != was.driver
		set.leave(r, was, next, moved)
		if moved {
			set.all.remove(r, (*taskRow).compare)
			if set.all.len() == 0 {
				delete(x.byDriver, was.driver)
			}
		}
	}
	if was.order != "" && was.order != next.order {
		removeFrom(x.byOrder, was.order, r, (*taskRow).compare)
	}
	if was.waiting && !next.waiting {
		x.waiting.remove(r, (*taskRow).compare)
	}
	if !was.geocode.IsZero() && was.geocode != next.geocode {
		x.geocode.remove(r, byTaskGeocode)
	}
}

// enter and leave treat the lists by status and by completion alike; moved says that r comes from, or goes to, another set.
func (s *taskSet) enter(r *taskRow, now, was taskKeys, moved bool) {
	if moved || now.status != was.status {
		if s.byStatus == nil {
			s.byStatus = make(map[tracking.TaskStatus]*list[*taskRow])
		}
		insertInto(s.byStatus, now.status, r, (*taskRow).compare)
	}
	if !now.completed.IsZero() && (moved || now.completed != was.completed) {
		s.completed.insert(r, byCompletion)
	}
}

func (s *taskSet) leave(r *taskRow, was, next taskKeys, moved bool) {
	if moved || was.status != next.status {
		removeFrom(s.byStatus, was.status, r, (*taskRow).compare)
	}
	if !was.completed.IsZero() && (moved || was.completed != next.completed) {
		s.completed.remove(r, byCompletion)
	}
}

// insertInto adds v to the list of a key, and removeFrom takes it out; a key without elements has no list.
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
func (s *Store) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	a, err := s.read(ctx, app)
	if err != nil {
		return tracking.Task{}, err
	}
	if a == nil {
		return tracking.Task{}, tracking.ErrNotFound
	}
	r := a.tasks.byID[id]
	return a.unlockTask(r)
}

// unlockTask gives back the lock and returns a copy of r's task; r may be nil.
func (a *application) unlockTask(r *taskRow) (tracking.Task, error) {
	if r == nil {
		a.mu.RUnlock()
		return tracking.Task{}, tracking.ErrNotFound
	}
	t := r.task
	a.mu.RUnlock()
	return t.Clone(), nil
}

// TaskByKey implements [tracking.TaskReader].
func (s *Store) TaskByKey(ctx context.Context, app tracking.AppID, key string) (tracking.Task, error) {
	a, err := s.read(ctx, app)
	if err != nil {
		return tracking.Task{}, err
	}
	if a == nil {
		return tracking.Task{}, tracking.ErrNotFound
	}
	return a.unlockTask(a.tasks.byKey[key])
}

// TaskByLink implements [tracking.TaskReader].
func (s *Store) TaskByLink(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Task, error) {
	a, row, err := findSecret(ctx, s, s.secrets.taskLinks, hash, func(a *application, id tracking.TaskID) *taskRow {
		if r := a.tasks.byID[id]; r != nil && r.task.Link.Hash == hash {
			return r
		}
		return nil
	})
	if err != nil {
		return "", tracking.Task{}, err
	}
	t, err := a.unlockTask(row)
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
	return copies(found, (*tracking.Task).Clone), more, nil
}

// page finds the tasks of a page.
func (x *tasks) page(f tracking.TaskFilter) (page []*tracking.Task, more bool) {
	set := &x.all
	if f.DriverID != "" {
		if set = x.byDriver[f.DriverID]; set == nil {
			return nil, false
		}
	}
	sources := []*list[*taskRow]{&set.all}
	switch order := x.byOrder[f.OrderID]; {
	case f.OrderID != "" && order == nil:
		return nil, false
	case f.OrderID != "" && order.len() <= set.all.len():
		sources = []*list[*taskRow]{order}
	case len(f.Status) > 0:
		sources = sources[:0]
		for i, st := range f.Status {
			if l := set.byStatus[st]; l != nil && !slices.Contains(f.Status[:i], st) {
				sources = append(sources, l)
			}
		}
	}
	var keep func(*taskRow) bool
	if f.OrderID != "" || !f.CompletedSince.IsZero() {
		keep = func(r *taskRow) bool {
			t := r.task
			return (f.DriverID == "" || t.DriverID == f.DriverID) && (f.OrderID == "" || t.OrderID == f.OrderID) &&
				(len(f.Status) == 0 || slices.Contains(f.Status, t.Status)) &&
				(f.CompletedSince.IsZero() || !t.CompletedAt.Before(f.CompletedSince))
		}
	}
	if l, ok := set.completedSince(f, sources); ok {
		sources = []*list[*taskRow]{l}
	}
	rows, more := newest(sources, f.Page, (*taskRow).compare, keep)
	return copies(rows, func(r *taskRow) *tracking.Task { return r.task }), more
}

// completedSince returns the tasks completed since then, in order of creation, if sorting them is less work than leaving the others out.
func (s *taskSet) completedSince(f tracking.TaskFilter, sources []*list[*taskRow]) (*list[*taskRow], bool) {
	if f.CompletedSince.IsZero() {
		return nil, false
	}
	walk := 0
	for _, l := range sources {
		walk += l.len()
	}
	recent := s.completed.len() - s.completed.count(func(r *taskRow) bool { return !r.task.CompletedAt.Before(f.CompletedSince) })
	// Where they are spread evenly, a walk meets walk/recent tasks for each one that it keeps.
	if recent > 0 && (walk <= recent || f.Offset() < recent && walk/recent*(f.Offset()+f.Limit+1) < recent) {
		return nil, false
	}
	if recent == 0 {
		return new(list[*taskRow]), true
	}
	c := s.completed.end(0)
	rows, _ := take(c.prev, 0, recent, nil)
	slices.SortFunc(rows, (*taskRow).compare)
	return &list[*taskRow]{chunks: [][]*taskRow{rows}, n: len(rows)}, true
}

// Waiting implements [tracking.Store].
func (s *Store) Waiting(ctx context.Context, app tracking.AppID, after tracking.Cursor, n int) ([]tracking.AppTask, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	type found struct {
		place
		app  tracking.AppID
		task *tracking.Task
	}
	var all []found
	from := place{after.CreatedAt.UnixMilli(), after.Seq}
	for _, a := range s.applications(app) {
		a.mu.RLock()
		c := a.tasks.waiting.at(func(r *taskRow) bool { return r.place.compare(from) > 0 })
		for range n {
			r, ok := c.next()
			if !ok {
				break
			}
			all = append(all, found{r.place, a.id, r.task})
		}
		a.mu.RUnlock()
	}
	slices.SortFunc(all, func(a, b found) int { return a.place.compare(b.place) })
	var list []tracking.AppTask
	for _, f := range all[:min(max(n, 0), len(all))] {
		list = append(list, tracking.AppTask{App: f.app, Task: f.task.Clone()})
	}
	return list, nil
}
