package tracking

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// TaskID identifies a task.
type TaskID string

// TaskType says what a task consists of.
type TaskType int

const (
	Pickup        TaskType = 1
	Drop          TaskType = 2
	PickupAndDrop TaskType = 3
)

// TaskStatus is the state of a task.
type TaskStatus string

const (
	StatusCreated    TaskStatus = "created"
	StatusAssigned   TaskStatus = "assigned"
	StatusInProgress TaskStatus = "in_progress"
	StatusCompleted  TaskStatus = "completed"
)

// Outcome is how a completed task ended; "" before.
type Outcome string

const (
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	Cancelled Outcome = "cancelled"
)

// Contact is a person to meet at a place.
type Contact struct {
	Name   string
	Mobile string
}

// Place is where a task happens. It has a point, an address, or both.
type Place struct {
	LngLat   *LngLat
	Address  string
	Customer *Contact
}

func (p *Place) clone() *Place {
	if p == nil {
		return nil
	}
	return &Place{LngLat: clonePtr(p.LngLat), Address: p.Address, Customer: clonePtr(p.Customer)}
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// Task is a pickup, a drop, or both.
type Task struct {
	ID      TaskID
	Type    TaskType
	Status  TaskStatus
	Outcome Outcome
	Reason  string // why it failed or was cancelled
	Time    time.Time
	Notes   string
	OrderID string
	Pickup  *Place
	Drop    *Place

	DriverID     DriverID   // "" while nobody has it; stays when completed
	AutoAssigned bool       // the present assignment was automatic
	Waiting      bool       // waits for a driver to be found automatically
	Excluded     []DriverID // not to be offered it automatically: they declined it, or it was taken from them; sorted, without repeats

	Key       string    // idempotency key of its creation; "" for none
	KeySum    Hash      // of the content it was created with
	GeocodeAt time.Time // when to ask the Geocoder for its point; zero: not
	Link      Link

	CreatedAt   time.Time
	UpdatedAt   time.Time
	AssignedAt  time.Time
	StartedAt   time.Time
	PickedUpAt  time.Time
	CompletedAt time.Time

	Seq     int64 // order of insertion; given by the store
	Version int64 // raised by each change; given by the store
}

// Clone returns a deep copy.
func (t Task) Clone() Task {
	t.Pickup, t.Drop = t.Pickup.clone(), t.Drop.clone()
	t.Excluded = slices.Clone(t.Excluded)
	if len(t.Excluded) == 0 {
		t.Excluded = nil
	}
	return t
}

// Open reports whether the task is somebody's work: assigned or in progress.
func (t Task) Open() bool { return t.Status == StatusAssigned || t.Status == StatusInProgress }

// TaskFilter picks tasks. Zero fields do not filter.
type TaskFilter struct {
	Page           // default limit 10
	DriverID       DriverID
	Status         []TaskStatus // any of these
	OrderID        string
	CompletedSince time.Time // CompletedAt at or after
}

// TaskReader reads tasks.
type TaskReader interface {
	// Task reads one.
	Task(ctx context.Context, app AppID, id TaskID) (Task, error)

	// Tasks lists newest first, by CreatedAt and then insertion. A near page of any one filter, or of driver and status together, costs its length and
	// not the size of the store. More tells whether a further page exists. Page.Limit is given, 1 or more.
	Tasks(ctx context.Context, app AppID, f TaskFilter) (list []Task, more bool, err error)

	// TaskByKey finds the task created with that idempotency key.
	TaskByKey(ctx context.Context, app AppID, key string) (Task, error)

	// TaskByLink finds the task, of any application, whose Link.Hash this is.
	TaskByLink(ctx context.Context, hash Hash) (AppID, Task, error)
}

// point is where a driver for the task is looked for: at the pickup, for a drop at the drop; nil while that is not known.
func (t Task) point() *LngLat {
	p := t.Pickup
	if t.Type == Drop {
		p = t.Drop
	}
	if p == nil {
		return nil
	}
	return p.LngLat
}

// pointField is the input that point comes from.
func (t Task) pointField() string {
	if t.Type == Drop {
		return "drop.lnglat"
	}
	return "pickup.lnglat"
}

// nextPlace is where the task's driver has to go next; of a completed task where it ended.
func (t Task) nextPlace() *Place {
	if t.Type == Pickup || t.Type == PickupAndDrop && t.PickedUpAt.IsZero() && t.Status != StatusCompleted {
		return t.Pickup
	}
	return t.Drop
}

// pointless reports whether one of the task's places has no point yet.
func (t Task) pointless() bool {
	return t.Pickup != nil && t.Pickup.LngLat == nil || t.Drop != nil && t.Drop.LngLat == nil
}

// trackingID is the tracking id of the task's trips.
func (t Task) trackingID() TrackingID { return TrackingID(t.ID) }

func (t Task) subject() Subject { return Subject{KindTask, string(t.ID)} }

// The transitions of a task. Each is a pure function of the task as it is: it returns the task as it is to be and whether that is a change;
// with an error the state forbids it. What lies around it (the driver's count, the trip, events and notices) follows from the two tasks.

var (
	errCompleted  = conflict("The task is completed.")
	errInProgress = conflict("The task is in progress.")
	errNotStarted = conflict("The task is not in progress.")
)

// assigned gives the task to d. Auto tells that nobody chose d by hand.
func (t Task) assigned(d DriverID, auto bool, now time.Time) (Task, bool, error) {
	switch {
	case t.Status == StatusCompleted:
		return t, false, errCompleted
	case t.Open() && t.DriverID == d:
		return t, false, nil
	case t.Status == StatusInProgress:
		return t, false, conflict("The task is in progress with another driver; unassign it first.")
	}
	if t.Status == StatusAssigned {
		t = t.exclude(t.DriverID)
	}
	if !auto {
		t.Excluded = slices.DeleteFunc(slices.Clone(t.Excluded), func(x DriverID) bool { return x == d })
	}
	t.Status, t.DriverID, t.AutoAssigned, t.Waiting, t.Reason = StatusAssigned, d, auto, false, ""
	t.AssignedAt, t.UpdatedAt = now, now
	return t, true, nil
}

func (t Task) exclude(d DriverID) Task {
	if i, found := slices.BinarySearch(t.Excluded, d); !found {
		t.Excluded = slices.Insert(slices.Clone(t.Excluded), i, d)
	}
	return t
}

// freed is the task without its driver, who is not to get it again automatically.
func (t Task) freed(now time.Time) Task {
	t = t.exclude(t.DriverID)
	t.Status, t.DriverID, t.AutoAssigned, t.Reason = StatusCreated, "", false, ""
	t.AssignedAt, t.StartedAt, t.PickedUpAt, t.UpdatedAt = time.Time{}, time.Time{}, time.Time{}, now
	return t
}

// unassigned takes the task from its driver, and ends its waiting.
func (t Task) unassigned(now time.Time) (Task, bool, error) {
	switch {
	case t.Status == StatusCompleted:
		return t, false, errCompleted
	case t.Status == StatusCreated && !t.Waiting:
		return t, false, nil
	case t.Status == StatusCreated:
		t.Waiting = false // nobody outside can see this: no event, and UpdatedAt stays
		return t, true, nil
	}
	return t.freed(now), true, nil
}

// heldBy checks that d is the task's driver; another one must not learn of it.
func (t Task) heldBy(d DriverID) error {
	if t.DriverID != d || d == "" {
		return notFound("task_id", "task")
	}
	return nil
}

// declined gives the task back; it waits again if it had been assigned automatically.
func (t Task) declined(d DriverID, reason string, now time.Time) (Task, bool, error) {
	if err := t.heldBy(d); err != nil {
		return t, false, err
	}
	switch t.Status {
	case StatusInProgress:
		return t, false, errInProgress
	case StatusCompleted:
		return t, false, errCompleted
	}
	waits := t.AutoAssigned
	t = t.freed(now)
	t.Waiting, t.Reason = waits, reason
	return t, true, nil
}

// started begins the task. Started again it stays as it is.
func (t Task) started(d DriverID, at, now time.Time) (Task, bool, error) {
	if err := t.heldBy(d); err != nil {
		return t, false, err
	}
	switch t.Status {
	case StatusCompleted:
		return t, false, errCompleted
	case StatusInProgress:
		return t, false, nil
	}
	t.Status, t.StartedAt, t.UpdatedAt = StatusInProgress, clampAt(at, t.AssignedAt, now), now
	return t, true, nil
}

// pickedUp notes that the goods are on board; done again it stays as it is.
func (t Task) pickedUp(d DriverID, at, now time.Time) (Task, bool, error) {
	if err := t.heldBy(d); err != nil {
		return t, false, err
	}
	switch {
	case t.Status == StatusCompleted:
		return t, false, errCompleted
	case t.Status != StatusInProgress:
		return t, false, errNotStarted
	case t.Type != PickupAndDrop:
		return t, false, conflict("Only a task with pickup and drop is picked up; complete this one.")
	case !t.PickedUpAt.IsZero():
		return t, false, nil
	}
	t.PickedUpAt, t.UpdatedAt = clampAt(at, t.StartedAt, now), now
	return t, true, nil
}

// completed ends the task. d is the driver who ends it, "" for the application, which may end any open one and is the only one to cancel.
func (t Task) completed(d DriverID, outcome Outcome, reason string, at, now time.Time) (Task, bool, error) {
	if d != "" {
		if err := t.heldBy(d); err != nil {
			return t, false, err
		}
	}
	switch {
	case t.Status == StatusCompleted && t.Outcome == outcome:
		return t, false, nil
	case t.Status == StatusCompleted:
		return t, false, conflict("The task is completed already, with another outcome.")
	case d != "" && t.Status != StatusInProgress:
		return t, false, errNotStarted
	}
	last := t.CreatedAt
	for _, step := range []time.Time{t.AssignedAt, t.StartedAt, t.PickedUpAt} {
		if step.After(last) {
			last = step
		}
	}
	t.Status, t.Outcome, t.Reason, t.Waiting, t.GeocodeAt = StatusCompleted, outcome, reason, false, time.Time{}
	t.CompletedAt, t.UpdatedAt = clampAt(at, last, now), now
	return t, true, nil
}

// TaskUpdate changes a task. A nil field stays as it is. A place given replaces the point and the address together; its customer stays unless one is given.
type TaskUpdate struct {
	Pickup, Drop *Place
	Notes        *string
	OrderID      *string
	Time         *time.Time
}

// updated applies u, and names the fields that change.
func (t Task) updated(u TaskUpdate, now time.Time) (Task, []string, error) {
	if t.Status == StatusCompleted {
		return t, nil, errCompleted
	}
	if t.Status == StatusInProgress && (u.Pickup != nil || u.OrderID != nil || u.Time != nil) {
		return t, nil, conflict("The task is in progress; only its notes and its drop can be changed now.")
	}
	var c check
	if u.Pickup != nil && t.Type == Drop {
		c.fail("pickup", "is not part of a drop task.")
	}
	if u.Drop != nil && t.Type == Pickup {
		c.fail("drop", "is not part of a pickup task.")
	}
	if c.err != nil {
		return t, nil, c.err
	}
	t = t.Clone()
	var changed []string
	move := func(field string, p **Place, to *Place) {
		if to == nil {
			return
		}
		to = to.clone()
		if to.Customer == nil && *p != nil {
			to.Customer = (*p).Customer
		}
		if *p == nil || !samePlace(**p, *to) {
			*p, changed = to, append(changed, field)
		}
	}
	move("pickup", &t.Pickup, u.Pickup)
	move("drop", &t.Drop, u.Drop)
	if u.Notes != nil && *u.Notes != t.Notes {
		t.Notes, changed = *u.Notes, append(changed, "notes")
	}
	if u.OrderID != nil && *u.OrderID != t.OrderID {
		t.OrderID, changed = *u.OrderID, append(changed, "order_id")
	}
	if u.Time != nil && !stamp(*u.Time).Equal(t.Time) {
		t.Time, changed = stamp(*u.Time), append(changed, "time")
	}
	if changed != nil {
		t.UpdatedAt = now
	}
	return t, changed, nil
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func samePlace(a, b Place) bool {
	return same(a.LngLat, b.LngLat) && a.Address == b.Address && same(a.Customer, b.Customer)
}

// NewTask describes a task to create.
type NewTask struct {
	Type       TaskType
	Pickup     *Place    // for Pickup and PickupAndDrop
	Drop       *Place    // for Drop and PickupAndDrop
	Customer   *Contact  // of every place that names none
	OrderID    string    // the caller's reference, up to 200 characters
	Notes      string    // for the driver, up to 4,000 characters
	Time       time.Time // zero: now
	AutoAssign bool      // find the nearest driver who may get it; else it waits for one

	// Key makes creation safe to repeat: the same key with the same content gives the same task again. 1 to 128 characters; "" for none.
	Key string
}

func (n *NewTask) normalize(geocodes bool) error {
	var c check
	if n.Type < Pickup || n.Type > PickupAndDrop {
		c.fail("type", "must be 1 (pickup), 2 (drop) or 3 (pickup and drop).")
		return c.err
	}
	for _, side := range []struct {
		field string
		place **Place
		used  bool
	}{{"pickup", &n.Pickup, n.Type != Drop}, {"drop", &n.Drop, n.Type != Pickup}} {
		p := *side.place
		switch {
		case side.used && p == nil:
			c.fail(side.field, "is required for this type of task.")
		case !side.used && p != nil:
			c.fail(side.field, "is not part of this type of task.")
		}
		c.place(side.field, p)
		if p = p.clone(); p != nil {
			if p.Customer == nil {
				p.Customer = clonePtr(n.Customer)
			}
			*side.place = p
		}
	}
	c.contact("customer", n.Customer)
	c.line("order_id", n.OrderID, 200)
	c.text("notes", n.Notes, 4000)
	c.line("Idempotency-Key", n.Key, 128)
	c.time("time", n.Time)
	n.Time = stamp(n.Time) // the same moment in another zone is the same content
	if c.err == nil && n.AutoAssign && !geocodes {
		if t := (Task{Type: n.Type, Pickup: n.Pickup, Drop: n.Drop}); t.point() == nil {
			c.fail(t.pointField(), "is required with auto_assign.")
		}
	}
	return c.err
}

// CreateTask creates a task. With AutoAssign it comes back assigned when there was a driver for it, and else waits for one.
// Codes: ErrInvalid; ErrConflict when n.Key was used with other content.
func (s *Service) CreateTask(ctx context.Context, n NewTask) (Task, error) {
	if err := n.normalize(s.opts.Geocoder != nil); err != nil {
		return Task{}, err
	}
	content, err := json.Marshal(n)
	if err != nil {
		return Task{}, s.failure(ctx, "CreateTask", err)
	}
	sum := Hash(sha256.Sum256(content))
	var t Task
	err = s.op(ctx, "CreateTask", func(now time.Time) error {
		if n.Key != "" {
			was, err := s.store.TaskByKey(ctx, s.app, n.Key)
			switch {
			case err == nil && was.KeySum == sum:
				t = was
				return nil
			case err == nil:
				return &Error{Code: ErrConflict, Field: "Idempotency-Key", Message: "This key was used for a task with other content."}
			case !errors.Is(err, ErrNotFound):
				return err
			}
		}
		t = Task{
			ID: TaskID(s.ids.next(now)), Type: n.Type, Status: StatusCreated, Time: stamp(n.Time), Notes: n.Notes, OrderID: n.OrderID,
			Pickup: n.Pickup.clone(), Drop: n.Drop.clone(), Key: n.Key, CreatedAt: now, UpdatedAt: now,
		}
		if n.Key != "" {
			t.KeySum = sum
		}
		defaultTo(&t.Time, now)
		if t.pointless() && s.opts.Geocoder != nil {
			t.GeocodeAt = now
		}
		if t.Link, err = s.newLink(ctx, t.subject(), Link{}, now); err != nil {
			return err
		}
		created := s.event(TaskCreated, t.subject(), now, now, s.actor)
		if n.AutoAssign && t.point() != nil {
			done, err := s.createAssigned(ctx, &t, created, now)
			if done || err != nil {
				return err
			}
		}
		t.Waiting = n.AutoAssign
		if err := s.commit(ctx, &Changeset{Tasks: []Task{t}, Events: []Event{created}}); err != nil {
			return err
		}
		if t.Waiting {
			kick(s.waiting) // a driver may have come free between the look and the commit
		}
		return s.reread(ctx, &t)
	})
	if err != nil {
		return Task{}, err
	}
	return t, nil
}

// errAgain makes op decide anew.
var errAgain = &ConflictError{Kind: KindTask}

// createAssigned creates t with a driver, if there is one. Tasks that have waited longer for such a driver go first.
func (s *Service) createAssigned(ctx context.Context, t *Task, created Event, now time.Time) (done bool, err error) {
	d, ok, err := s.choose(ctx, *t, now)
	if err != nil || !ok {
		return false, err
	}
	older, found, err := s.waitingFor(ctx, d)
	if found || err != nil {
		s.taken.release(s.app, d.ID)
		if err != nil {
			return false, err
		}
		if _, _, err := s.assignWaiting(ctx, older); err != nil {
			return false, err
		}
		return false, errAgain
	}
	defer s.taken.release(s.app, d.ID)
	next, _, err := t.assigned(d.ID, true, now)
	if err != nil {
		return false, err
	}
	assigned := s.assignedEvent(*t, next, now, "system")
	d.OpenTasks++
	if err := s.commit(ctx, &Changeset{Tasks: []Task{next}, Drivers: []Driver{d}, Events: []Event{created, assigned}}); err != nil {
		return false, err
	}
	*t = next
	return true, s.reread(ctx, t)
}

// reread fills in what the store gave a new row. The change is done, so that a failure here is none of the caller's.
func (s *Service) reread(ctx context.Context, t *Task) error {
	if kept, err := s.store.Task(ctx, s.app, t.ID); err == nil {
		t.Seq, t.Version = kept.Seq, kept.Version
	}
	return nil
}

// choose finds and reserves the driver who is to get t automatically: of those on offer the nearest, of equally near ones the one with fewer open tasks, then by id.
// Whoever gets one releases the reservation.
func (s *Service) choose(ctx context.Context, t Task, now time.Time) (Driver, bool, error) {
	for limit := 8; ; limit *= 4 {
		list, err := s.store.Offers(ctx, s.app, Offer{
			At: *t.point(), MaxOpen: s.opts.MaxOpenTasks, SeenSince: now.Add(-s.opts.MaxFixAge),
			Within: s.opts.MaxAssignDistance, Exclude: t.Excluded, Limit: limit,
		})
		if err != nil {
			return Driver{}, false, err
		}
		slices.SortStableFunc(list, func(a, b Driver) int {
			return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.OpenTasks, b.OpenTasks), cmp.Compare(a.ID, b.ID))
		})
		d, ok := s.taken.first(s.app, s.opts.MaxOpenTasks, list)
		whole := len(list) < limit
		if whole {
			return d, ok, nil
		}
		if ok && d.Distance < list[len(list)-1].Distance { // else one as near may follow
			return d, true, nil
		}
		if ok {
			s.taken.release(s.app, d.ID)
		}
	}
}

// waitingFor finds the oldest waiting task that d could get.
func (s *Service) waitingFor(ctx context.Context, d Driver) (Task, bool, error) {
	for after := (Cursor{}); ; {
		list, err := s.store.Waiting(ctx, s.app, after, 100)
		if err != nil || len(list) == 0 {
			return Task{}, false, err
		}
		for _, w := range list {
			p := w.Task.point()
			if p == nil || slices.Contains(w.Task.Excluded, d.ID) {
				continue
			}
			if limit := s.opts.MaxAssignDistance; limit == 0 || Distance(*p, d.Position.Fix.LngLat) <= limit {
				return w.Task, true, nil
			}
		}
		last := list[len(list)-1].Task
		after = Cursor{last.CreatedAt, last.Seq}
	}
}

// assignWaiting gives a waiting task to a driver, if there is one; assigned tells whether it did, and nobody that there was none.
func (s *Service) assignWaiting(ctx context.Context, w Task) (assigned, nobody bool, err error) {
	err = s.op(ctx, "AssignWaiting", func(now time.Time) error {
		assigned, nobody = false, false
		t, err := s.store.Task(ctx, s.app, w.ID)
		if err != nil {
			return err
		}
		if !t.Waiting || t.point() == nil {
			return nil
		}
		d, ok, err := s.choose(ctx, t, now)
		if err != nil || !ok {
			nobody = err == nil
			return err
		}
		defer s.taken.release(s.app, d.ID)
		next, changed, err := t.assigned(d.ID, true, now)
		if err != nil || !changed {
			return err
		}
		d.OpenTasks++
		assigned = true
		return s.commit(ctx, &Changeset{Tasks: []Task{next}, Drivers: []Driver{d}, Events: []Event{s.assignedEvent(t, next, now, "system")}})
	})
	return assigned && err == nil, nobody, err
}

// AssignWaiting gives waiting tasks of all applications, oldest first, to drivers who have become available, free, or near. It reports how many it assigned.
// [Service.Run] calls it.
func (s *Service) AssignWaiting(ctx context.Context) (int, error) {
	n := 0
	idle := map[AppID]bool{} // applications without any driver on offer
	var errs []error
	for after := (Cursor{}); ; {
		list, err := s.store.Waiting(ctx, "", after, 100)
		if err != nil {
			return n, s.failure(ctx, "AssignWaiting", err)
		}
		if len(list) == 0 {
			return n, errors.Join(errs...)
		}
		for _, w := range list {
			if idle[w.App] || w.Task.point() == nil {
				continue
			}
			assigned, nobody, err := s.ForApp(w.App).assignWaiting(ctx, w.Task)
			switch {
			case err != nil && ctx.Err() != nil:
				return n, err
			case err != nil:
				errs = append(errs, err)
			case assigned:
				n++
			case nobody && len(w.Task.Excluded) == 0 && s.opts.MaxAssignDistance == 0:
				idle[w.App] = true
			}
		}
		last := list[len(list)-1].Task
		after = Cursor{last.CreatedAt, last.Seq}
	}
}

func (s *Service) assignedEvent(before, after Task, now time.Time, actor string) Event {
	auto := ""
	if after.AutoAssigned {
		auto = "true"
	}
	e := s.event(TaskAssigned, after.subject(), now, now, actor, "driver_id", string(after.DriverID), "previous_driver_id", string(before.DriverID), "auto", auto)
	if before.Open() {
		e.Notices = append(e.Notices, Notice{DriverID: before.DriverID, Kind: NoticeUnassigned, TaskID: after.ID})
	}
	e.Notices = append(e.Notices, Notice{DriverID: after.DriverID, Kind: NoticeAssigned, TaskID: after.ID})
	return e
}

// loads adds to cs the drivers whose count of open tasks the change alters.
func (s *Service) loads(ctx context.Context, cs *Changeset, before, after Task) error {
	if before.Open() && after.Open() && before.DriverID == after.DriverID {
		return nil
	}
	add := func(id DriverID, n int) error {
		d, err := s.store.Driver(ctx, s.app, id)
		if err != nil {
			return orNotFound(err, "driver_id", "driver")
		}
		d.OpenTasks = max(d.OpenTasks+n, 0)
		cs.Drivers = append(cs.Drivers, d)
		return nil
	}
	if before.Open() {
		if err := add(before.DriverID, -1); err != nil {
			return err
		}
	}
	if after.Open() {
		return add(after.DriverID, 1)
	}
	return nil
}

// task reads a task that the caller named.
func (s *Service) task(ctx context.Context, id TaskID) (Task, error) {
	if !lookup(string(id)) {
		return Task{}, notFound("task_id", "task")
	}
	t, err := s.store.Task(ctx, s.app, id)
	return t, orNotFound(err, "task_id", "task")
}

func (s *Service) changeTask(ctx context.Context, name string, id TaskID, locks []string, change func(t Task, now time.Time) (Task, *Changeset, error)) (Task, error) {
	release, err := s.locks.take(ctx, append(locks, "task:"+string(s.app)+":"+string(id))...)
	if err != nil {
		return Task{}, s.failure(ctx, name, err)
	}
	defer release()
	var result Task
	err = s.op(ctx, name, func(now time.Time) error {
		t, err := s.task(ctx, id)
		if err != nil {
			return err
		}
		next, cs, err := change(t, now)
		if err != nil {
			return err
		}
		result = next
		if cs == nil {
			return nil
		}
		if !reflect.DeepEqual(t, next) { // else only what belongs to it changes, as when a trip starts anew
			cs.Tasks = append(cs.Tasks, next)
			result.Version++
		}
		if err := s.loads(ctx, cs, t, next); err != nil {
			return err
		}
		if err := s.commit(ctx, cs); err != nil {
			return err
		}
		if t.Open() && !next.Open() || next.Waiting {
			kick(s.waiting)
		}
		return nil
	})
	if err != nil {
		return Task{}, err
	}
	return result, nil
}

// Task reads one. Codes: ErrNotFound.
func (s *Service) Task(ctx context.Context, id TaskID) (Task, error) {
	var t Task
	err := s.op(ctx, "Task", func(time.Time) (err error) { t, err = s.task(ctx, id); return err })
	return t, err
}

// Tasks lists newest first, and tells whether there is a further page. Codes: ErrInvalid.
func (s *Service) Tasks(ctx context.Context, f TaskFilter) (list []Task, more bool, err error) {
	var c check
	c.page(&f.Page, 10)
	for _, st := range f.Status {
		if !slices.Contains([]TaskStatus{StatusCreated, StatusAssigned, StatusInProgress, StatusCompleted}, st) {
			c.fail("status", "takes created, assigned, in_progress and completed.")
		}
	}
	if c.err != nil {
		return nil, false, c.err
	}
	if f.DriverID != "" && !lookup(string(f.DriverID)) || f.OrderID != "" && !lookup(f.OrderID) {
		return nil, false, nil
	}
	err = s.op(ctx, "Tasks", func(time.Time) (err error) { list, more, err = s.store.Tasks(ctx, s.app, f); return err })
	return list, more, err
}

// AssignTask gives a task to a driver, who is told; so is the one who had it. Any driver of the application may get it, on duty or off, free or full.
// To the same driver again is nothing. Codes: ErrNotFound; ErrConflict when it is completed, or in progress with another.
func (s *Service) AssignTask(ctx context.Context, id TaskID, driver DriverID) (Task, error) {
	return s.changeTask(ctx, "AssignTask", id, []string{"driver:" + string(s.app) + ":" + string(driver)}, func(t Task, now time.Time) (Task, *Changeset, error) {
		if _, err := s.driver(ctx, driver); err != nil {
			return t, nil, err
		}
		next, changed, err := t.assigned(driver, false, now)
		if err != nil || !changed {
			return t, nil, err
		}
		return next, &Changeset{Events: []Event{s.assignedEvent(t, next, now, s.actor)}}, nil
	})
}

// UnassignTask takes a task from its driver, who is told and will not get it again automatically; a trip of it ends. A waiting task waits no longer.
// Codes: ErrNotFound; ErrConflict when it is completed.
func (s *Service) UnassignTask(ctx context.Context, id TaskID) (Task, error) {
	return s.changeTask(ctx, "UnassignTask", id, nil, func(t Task, now time.Time) (Task, *Changeset, error) {
		next, changed, err := t.unassigned(now)
		if err != nil || !changed {
			return t, nil, err
		}
		cs := &Changeset{}
		if !t.Open() { // it only waited
			return next, cs, nil
		}
		e := s.event(TaskUnassigned, t.subject(), now, now, s.actor, "driver_id", string(t.DriverID))
		e.Notices = []Notice{{DriverID: t.DriverID, Kind: NoticeUnassigned, TaskID: t.ID}}
		cs.Events = append(cs.Events, e)
		return next, cs, s.endTaskTrip(ctx, cs, t, now, now, s.actor, nil)
	})
}

// UpdateTask changes a task; a driver who has it is told. While it is in progress only notes and drop can be changed.
// Codes: ErrInvalid, ErrNotFound, ErrConflict.
func (s *Service) UpdateTask(ctx context.Context, id TaskID, u TaskUpdate) (Task, error) {
	var c check
	c.place("pickup", u.Pickup)
	c.place("drop", u.Drop)
	if u.Notes != nil {
		c.text("notes", *u.Notes, 4000)
	}
	if u.OrderID != nil {
		c.line("order_id", *u.OrderID, 200)
	}
	if u.Time != nil {
		c.time("time", *u.Time)
		if u.Time.IsZero() {
			u.Time = nil
		}
	}
	if c.err != nil {
		return Task{}, c.err
	}
	return s.changeTask(ctx, "UpdateTask", id, nil, func(t Task, now time.Time) (Task, *Changeset, error) {
		next, fields, err := t.updated(u, now)
		if err != nil || fields == nil {
			return t, nil, err
		}
		if next.pointless() {
			if (next.Waiting || next.AutoAssigned) && next.point() == nil && s.opts.Geocoder == nil {
				return t, nil, invalid(t.pointField(), "is required for a task that goes to drivers automatically.")
			}
			if s.opts.Geocoder != nil {
				next.GeocodeAt = now
			}
		}
		e := s.event(TaskUpdated, t.subject(), now, now, s.actor, "fields", strings.Join(fields, ","))
		if t.Open() {
			e.Notices = []Notice{{DriverID: t.DriverID, Kind: NoticeUpdated, TaskID: t.ID}}
		}
		return next, &Changeset{Events: []Event{e}}, nil
	})
}

// CancelTask ends a task as cancelled; a driver who has it is told, a trip of it ends. Cancelling again is nothing.
// Codes: ErrInvalid, ErrNotFound; ErrConflict when it has ended otherwise.
func (s *Service) CancelTask(ctx context.Context, id TaskID, reason string) (Task, error) {
	var c check
	c.text("reason", reason, 200)
	if c.err != nil {
		return Task{}, c.err
	}
	return s.endTask(ctx, "CancelTask", "", id, Cancelled, reason, Step{})
}

// Completion says how a task ended.
type Completion struct {
	Outcome Outcome // Succeeded or Failed; "" means Succeeded
	Reason  string  // up to 200 characters
}

func (c *Completion) normalize() error {
	defaultTo(&c.Outcome, Succeeded)
	var k check
	if c.Outcome != Succeeded && c.Outcome != Failed {
		k.fail("outcome", "must be succeeded or failed.")
	}
	k.text("reason", c.Reason, 200)
	return k.err
}

// CompleteTask ends a task from any open state, on behalf of the application; a driver who has it is told, a trip of it ends.
// With the same outcome again is nothing. Codes: ErrInvalid, ErrNotFound; ErrConflict when it has ended otherwise.
func (s *Service) CompleteTask(ctx context.Context, id TaskID, c Completion) (Task, error) {
	if err := c.normalize(); err != nil {
		return Task{}, err
	}
	return s.endTask(ctx, "CompleteTask", "", id, c.Outcome, c.Reason, Step{})
}

// FinishTask ends a task at its driver's word; its trip ends with it. Codes: ErrInvalid; ErrNotFound when it is another driver's;
// ErrConflict when it is not in progress, or has ended otherwise.
func (s *Service) FinishTask(ctx context.Context, driver DriverID, id TaskID, c Completion, step Step) (Task, error) {
	if err := first(step.check(), c.normalize()); err != nil {
		return Task{}, err
	}
	if driver == "" {
		return Task{}, notFound("task_id", "task")
	}
	return s.endTask(ctx, "FinishTask", driver, id, c.Outcome, c.Reason, step)
}

func (s *Service) endTask(ctx context.Context, name string, driver DriverID, id TaskID, outcome Outcome, reason string, step Step) (Task, error) {
	return s.changeTask(ctx, name, id, nil, func(t Task, now time.Time) (Task, *Changeset, error) {
		next, changed, err := t.completed(driver, outcome, reason, step.At, now)
		if err != nil || !changed {
			return t, nil, err
		}
		actor := s.actor
		cs := &Changeset{}
		if driver != "" {
			actor = driverActor(driver)
			cs.Fixes = s.stepFixes(step, driver, next.CompletedAt, now)
		}
		e := s.event(TaskCompleted, t.subject(), next.CompletedAt, now, actor, "driver_id", string(t.DriverID), "outcome", string(outcome))
		if driver == "" && t.Open() {
			kind := NoticeUpdated
			if outcome == Cancelled {
				kind = NoticeCancelled
			}
			e.Notices = []Notice{{DriverID: t.DriverID, Kind: kind, TaskID: t.ID}}
		}
		cs.Events = append(cs.Events, e)
		return next, cs, s.endTaskTrip(ctx, cs, t, next.CompletedAt, now, actor, step.LngLat)
	})
}

// Step is what a driver reports of something done.
type Step struct {
	At     time.Time // when, by the phone; clamped to between the step before and now; zero: now
	LngLat *LngLat   // where; nil: not said
}

func (st Step) check() error {
	var c check
	c.point("lnglat", st.LngLat)
	return c.err
}

// stepFixes is the sign of life that a step is, with its fix if it has one.
func (s *Service) stepFixes(st Step, driver DriverID, at, now time.Time) []FixBatch {
	b := FixBatch{DriverID: driver, SeenAt: now, KeepOffDuty: s.opts.KeepOffDuty}
	if st.LngLat != nil {
		b.Fixes = []Fix{{LngLat: *st.LngLat, Time: at}}
	}
	return []FixBatch{b}
}

func driverActor(d DriverID) string { return "driver:" + string(d) }

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// DeclineTask gives a task back that has not been started. Assigned automatically, it goes to another driver; this one will not be asked again.
// Codes: ErrInvalid; ErrNotFound when it is another driver's; ErrConflict when it is in progress or completed.
func (s *Service) DeclineTask(ctx context.Context, driver DriverID, id TaskID, reason string, step Step) (Task, error) {
	var c check
	c.text("reason", reason, 200)
	if err := first(step.check(), c.err); err != nil {
		return Task{}, err
	}
	return s.changeTask(ctx, "DeclineTask", id, nil, func(t Task, now time.Time) (Task, *Changeset, error) {
		next, changed, err := t.declined(driver, reason, now)
		if err != nil || !changed {
			return t, nil, err
		}
		at := clampAt(step.At, t.AssignedAt, now)
		e := s.event(TaskDeclined, t.subject(), at, now, driverActor(driver), "driver_id", string(driver))
		return next, &Changeset{Fixes: s.stepFixes(step, driver, at, now), Events: []Event{e}}, nil
	})
}

// PickUpTask notes that the goods of a task with pickup and drop are on board. Again is nothing.
// Codes: ErrInvalid; ErrNotFound when it is another driver's; ErrConflict when it is not in progress.
func (s *Service) PickUpTask(ctx context.Context, driver DriverID, id TaskID, step Step) (Task, error) {
	if err := step.check(); err != nil {
		return Task{}, err
	}
	return s.changeTask(ctx, "PickUpTask", id, nil, func(t Task, now time.Time) (Task, *Changeset, error) {
		next, changed, err := t.pickedUp(driver, step.At, now)
		if err != nil || !changed {
			return t, nil, err
		}
		e := s.event(TaskPickedUp, t.subject(), next.PickedUpAt, now, driverActor(driver), "driver_id", string(driver))
		return next, &Changeset{Fixes: s.stepFixes(step, driver, next.PickedUpAt, now), Events: []Event{e}}, nil
	})
}

// StartTask begins a task and its trip. Started again it is nothing: the trip that is active comes back, or a new one if that has ended.
// Codes: ErrInvalid; ErrNotFound when it is another driver's; ErrConflict when it is completed.
func (s *Service) StartTask(ctx context.Context, driver DriverID, id TaskID, step Step) (Task, Trip, error) {
	if err := step.check(); err != nil {
		return Task{}, Trip{}, err
	}
	var trip Trip
	t, err := s.changeTask(ctx, "StartTask", id, []string{"driver:" + string(s.app) + ":" + string(driver)}, func(t Task, now time.Time) (Task, *Changeset, error) {
		next, changed, err := t.started(driver, step.At, now)
		if err != nil {
			return t, nil, err
		}
		cs := &Changeset{}
		if changed {
			cs.Events = append(cs.Events, s.event(TaskStarted, t.subject(), next.StartedAt, now, driverActor(driver), "driver_id", string(driver)))
		}
		var started bool
		trip, started, err = s.startTrip(ctx, cs, tripStart{driver: driver, tracking: t.trackingID(), task: &next, step: step}, now)
		if err != nil {
			return t, nil, err
		}
		if !changed && !started && cs.CloseRequests == nil {
			return t, nil, nil
		}
		return next, cs, nil
	})
	if err != nil {
		return Task{}, Trip{}, err
	}
	return t, trip, nil
}

// TaskLink returns the token of the task's tracking link: ask again and it is the same, until it expires or is revoked; then a new one is made.
// Codes: ErrNotFound.
func (s *Service) TaskLink(ctx context.Context, id TaskID) (token string, err error) {
	err = s.op(ctx, "TaskLink", func(now time.Time) error {
		t, err := s.task(ctx, id)
		if err != nil {
			return err
		}
		var made bool
		token, made, err = s.link(ctx, t.subject(), &t.Link, t.CompletedAt, now)
		if err != nil || !made {
			return err
		}
		return s.commit(ctx, &Changeset{Tasks: []Task{t}})
	})
	return token, err
}

// RevokeTaskLink makes the task's tracking link dead at once. Codes: ErrNotFound.
func (s *Service) RevokeTaskLink(ctx context.Context, id TaskID) error {
	return s.op(ctx, "RevokeTaskLink", func(now time.Time) error {
		t, err := s.task(ctx, id)
		if err != nil || !t.Link.revoke() {
			return err
		}
		return s.commit(ctx, &Changeset{Tasks: []Task{t}})
	})
}

// Geocode asks the Geocoder for points and addresses that are due, of all applications, and reports how many rows it filled in. [Service.Run] calls it.
func (s *Service) Geocode(ctx context.Context) (int, error) {
	if s.opts.Geocoder == nil {
		return 0, nil
	}
	due, err := s.store.Due(ctx, DueQuery{Kind: DueGeocodes, Before: s.now(), Limit: 20})
	if err != nil {
		return 0, s.failure(ctx, "Geocode", err)
	}
	return s.each(ctx, due, func(svc *Service, subject Subject) (bool, error) {
		if subject.Kind == KindTask {
			return svc.geocodeTask(ctx, TaskID(subject.ID))
		}
		return svc.geocodeTrip(ctx, TripID(subject.ID))
	})
}

// ask calls the Geocoder with a time limit; ok tells that it had an answer.
func (s *Service) ask(ctx context.Context, call func(context.Context) error) (ok bool) {
	err := guarded(ctx, s.opts.NotifyTimeout, call)
	if err != nil && !errors.Is(err, ErrNotFound) {
		s.opts.Logger.WarnContext(ctx, "geocoder failed", "err", err)
	}
	return err == nil
}

// again is when to ask the Geocoder again about a row that was last changed then: after as long as it has waited already, between a minute and six hours.
func again(changed, now time.Time) time.Time {
	return now.Add(min(max(now.Sub(changed), time.Minute), 6*time.Hour))
}

func (s *Service) geocodeTask(ctx context.Context, id TaskID) (bool, error) {
	t, err := s.Task(ctx, id)
	if err != nil || t.Status == StatusCompleted {
		return false, err
	}
	points := map[string]LngLat{}
	for _, p := range []*Place{t.Pickup, t.Drop} {
		if p == nil || p.LngLat != nil {
			continue
		}
		if at, ok := points[p.Address]; ok && at.Valid() {
			continue
		}
		s.ask(ctx, func(ctx context.Context) error {
			at, err := s.opts.Geocoder.Point(ctx, p.Address)
			if err == nil && !at.Valid() {
				err = fmt.Errorf("a point out of range for a task's address")
			}
			if err == nil {
				points[p.Address] = at
			}
			return err
		})
	}
	filled := false
	_, err = s.changeTask(ctx, "Geocode", id, nil, func(t Task, now time.Time) (Task, *Changeset, error) {
		if t.Status == StatusCompleted || t.GeocodeAt.IsZero() {
			return t, nil, nil
		}
		next, fields := t.Clone(), []string(nil)
		for _, side := range []struct {
			field string
			place *Place
		}{{"pickup", next.Pickup}, {"drop", next.Drop}} {
			if side.place == nil || side.place.LngLat != nil {
				continue
			}
			if at, ok := points[side.place.Address]; ok {
				side.place.LngLat = &at
				fields = append(fields, side.field)
			}
		}
		next.GeocodeAt = time.Time{}
		if next.pointless() {
			next.GeocodeAt = again(t.UpdatedAt, now)
		}
		cs := &Changeset{}
		if fields != nil {
			filled = true
			next.UpdatedAt = now
			e := s.event(TaskUpdated, t.subject(), now, now, s.actor, "fields", strings.Join(fields, ","))
			if t.Open() {
				e.Notices = []Notice{{DriverID: t.DriverID, Kind: NoticeUpdated, TaskID: t.ID}}
			}
			cs.Events = append(cs.Events, e)
		}
		return next, cs, nil
	})
	return filled, err
}
