package tracking

import (
	"context"
	"slices"
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
