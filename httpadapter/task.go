package httpadapter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

// oneTask answers the application with a task, ownTask its driver.
func (h *Handler) oneTask(message string) func(tracking.Task, error) (answer, error) {
	return taskAs(message, h.shownWhole)
}

func (h *Handler) ownTask(message string) func(tracking.Task, error) (answer, error) {
	return taskAs(message, func(t *tracking.Task) shownTask { return shownTask{Task: t, now: h.now()} })
}

func taskAs(message string, shown func(*tracking.Task) shownTask) func(tracking.Task, error) (answer, error) {
	return func(t tracking.Task, err error) (answer, error) {
		if err != nil {
			return nil, err
		}
		of := shown(&t)
		return answerTask(message, &of, "")
	}
}

type createTask struct {
	Type       int          `json:"type"`
	Pickup     *placeBody   `json:"pickup"`
	Drop       *placeBody   `json:"drop"`
	Customer   *contactBody `json:"customer"`
	OrderID    string       `json:"order_id"`
	Notes      string       `json:"notes"`
	Time       time.Time    `json:"time"`
	AutoAssign bool         `json:"auto_assign"`

	Window   windowBody        `json:"window"`
	Promised time.Time         `json:"promised"`
	Requires map[string]string `json:"requires"`
	Proof    []proofKind       `json:"proof"`

	Properties map[string]string `json:"properties"`
}

func (b createTask) toTask(key string) tracking.NewTask {
	return tracking.NewTask{
		Type: tracking.TaskType(b.Type), Pickup: b.Pickup.toPlace(), Drop: b.Drop.toPlace(),
		Customer: b.Customer.toContact(),
		OrderID:  b.OrderID, Notes: b.Notes, Time: b.Time, AutoAssign: b.AutoAssign, Key: key,
		Window: tracking.Window(b.Window), Promised: b.Promised, Requires: b.Requires, Proof: toProof(b.Proof),
		Properties: b.Properties,
	}
}

func (h *Handler) createTask(r *request, b createTask) (answer, error) {
	key, err := idempotencyKey(r)
	if err != nil {
		return nil, err
	}
	t, err := r.svc.CreateTask(r.Context(), b.toTask(key))
	if err != nil {
		return nil, err
	}
	link, err := h.linkOf(r, &t)
	if err != nil {
		return nil, err
	}
	shown := h.shownWhole(&t)
	return answerTask("Task created", &shown, link)
}

// linkOf is the customer's link that was made with a task; "" where it was revoked since.
func (h *Handler) linkOf(r *request, t *tracking.Task) (string, error) {
	token, err := r.svc.LinkToken(r.Context(), *t)
	if err != nil || token == "" {
		return "", err
	}
	return trackingURL(h.base(r), token), nil
}

type createTasks struct {
	Tasks strict.Elements[batchTask] `json:"tasks" strict:"required"`
}

// batchTask is one of many, with the key by which it can be asked for again.
type batchTask struct {
	createTask
	Key string `json:"key"`
}

// batchResult is what became of one: a task or an error.
type batchResult struct {
	Task        *task       `json:"task,omitempty"`
	TrackingURL string      `json:"tracking_url,omitempty"`
	Error       *batchError `json:"error,omitempty"`
}

type batchError struct {
	Code    tracking.ErrorCode `json:"code"`
	Field   string             `json:"field,omitempty"`
	Message string             `json:"message"`
}

// createTasks creates what can be created. What is wrong with one is its result and not the others'.
func (h *Handler) createTasks(r *request, b createTasks) (answer, error) {
	elements, more := b.Tasks.Take(tracking.MaxTasks)
	if more {
		return nil, &tracking.Error{
			Code: tracking.ErrTooLarge, Field: "tasks",
			Message: fmt.Sprintf("The field tasks has more than %d entries; send them in parts.", tracking.MaxTasks),
		}
	}
	results := make([]batchResult, len(elements))
	var whole []tracking.NewTask
	var at []int // of each of these, its place
	for i, e := range elements {
		if e.Err != nil {
			results[i] = batchFailure(e.Err)
			continue
		}
		whole, at = append(whole, e.Value.toTask(e.Value.Key)), append(at, i)
	}
	made, err := r.svc.CreateTasks(r.Context(), whole)
	if err != nil {
		return nil, err
	}
	for i, m := range made {
		if m.Err != nil {
			results[at[i]] = batchFailure(m.Err)
			continue
		}
		link, err := h.linkOf(r, &m.Task)
		if err != nil {
			return nil, err
		}
		shown := h.wholeTask(m.Task)
		results[at[i]] = batchResult{Task: &shown, TrackingURL: link}
	}
	return ok("Tasks created", list{"results": results})
}

// batchFailure is an error as a row of a batch has it, where the key is a field.
func batchFailure(err error) batchResult {
	e, _ := asError(err)
	const header = "Idempotency-Key"
	field, message := e.Field, e.Message
	if field == header {
		field, message = "key", strings.ReplaceAll(message, header, "key")
	}
	return batchResult{Error: &batchError{e.Code, field, message}}
}

// idempotencyKey is the key by which a call can be made again; "" for none.
func idempotencyKey(r *request) (string, error) {
	keys := r.Header["Idempotency-Key"]
	if len(keys) == 0 {
		return "", nil
	}
	if len(keys) > 1 || keys[0] == "" {
		return "", &tracking.Error{
			Code: tracking.ErrInvalid, Field: "Idempotency-Key",
			Message: "The header Idempotency-Key must be given once, with 1 to 128 characters.",
		}
	}
	return keys[0], nil
}

func (h *Handler) listTasks(r *request) (answer, error) {
	f := tracking.TaskFilter{
		Page: r.page(), DriverID: tracking.DriverID(r.query.Filter("driver_id")),
		OrderID: r.query.Filter("order_id"), Status: r.taskStatus(), Query: r.query.Filter("q"),
		CreatedFrom: r.query.Time("created_from"), CreatedTo: r.query.Time("created_to"),
		WindowFrom: r.query.Time("window_from"), WindowTo: r.query.Time("window_to"),
		Late: r.query.True("late"), Waiting: r.query.True("waiting"), Properties: r.query.Prefixed("properties."),
		Sort: r.taskSort(), After: r.taskMark(),
	}
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	room := pages.Get().(*[]tracking.Task)
	f.Into = *room
	tasks, more, err := r.svc.Tasks(r.Context(), f)
	if err != nil {
		return nil, err
	}
	defer func() {
		if n := cap(tasks); n > 0 && n <= largePage {
			*room = tasks[:0]
			pages.Put(room)
		}
	}()
	var waits []*tracking.Waits
	if f.Waiting {
		if waits, err = r.svc.Waits(r.Context(), tasks); err != nil {
			return nil, err
		}
	}
	var route []tracking.Stop
	if f.DriverID != "" && len(tasks) > 0 {
		if route, err = r.routeOf(f.DriverID); err != nil {
			return nil, err
		}
	}
	now := h.now()
	var next string
	if more {
		next = tasks[len(tasks)-1].Mark(f.Order()).String()
	}
	return answerTasks("Task List", more, next, len(tasks), func(i int) shownTask {
		shown := shownWhole(&tasks[i], now)
		shown.stop = stopIn(route, tasks[i].ID)
		if waits != nil {
			shown.waits = waits[i]
		}
		return shown
	})
}

// pages are the memory of pages of tasks that have been written, but for long ones: a page is a
// kilobyte a task, most of what a list would leave to the garbage collector.
var pages = sync.Pool{New: func() any { return new([]tracking.Task) }}

const largePage = 100

func (h *Handler) countTasks(r *request) (answer, error) {
	since := r.query.Time("since")
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	n, err := r.svc.TaskCounts(r.Context(), since)
	if err != nil {
		return nil, err
	}
	return ok("Task Counts", list{"counts": countsOf(n)})
}

// routeOf is a driver's route; none of who is not there any more.
func (r *request) routeOf(d tracking.DriverID) ([]tracking.Stop, error) {
	who, err := r.svc.Driver(r.Context(), d)
	if errors.Is(err, tracking.ErrNotFound) {
		return nil, nil
	}
	return who.Route, err
}

func (h *Handler) getTask(r *request) (answer, error) {
	id := r.query.ID("task_id")
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	t, err := r.svc.Task(r.Context(), tracking.TaskID(id))
	if err != nil {
		return nil, err
	}
	shown := h.shownWhole(&t)
	shown.noContacts = true
	if t.Open() {
		route, err := r.routeOf(t.DriverID)
		if err != nil {
			return nil, err
		}
		shown.stop = stopIn(route, t.ID)
	}
	return answerTask("Task", &shown, "")
}

func (h *Handler) candidates(r *request) (answer, error) {
	id, limit := r.query.ID("task_id"), r.limit()
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	drivers, waits, err := r.svc.Candidates(r.Context(), tracking.TaskID(id), limit)
	if err != nil {
		return nil, err
	}
	data := list{"candidates": mapped(drivers, candidateOf)}
	if waits != nil {
		data["waiting"] = waitingOf(waits)
	}
	return ok("Candidates", data)
}

type assignTask struct {
	TaskID   tracking.TaskID           `json:"task_id" strict:"id"`
	DriverID tracking.DriverID         `json:"driver_id" strict:"id"`
	Force    bool                      `json:"force"`
	Stops    strict.Elements[stopBody] `json:"stops"`
	ifVersion
}

func (h *Handler) assignTask(r *request, b assignTask) (answer, error) {
	a := tracking.Assignment{Task: b.TaskID, Driver: b.DriverID, Force: b.Force}
	var err error
	if a.Stops, err = toStops(b.Stops); err != nil {
		return nil, err
	}
	return h.oneTask("Task assigned")(r.seen(b.ifVersion).svc.Assign(r.Context(), a))
}

type unassignTask struct {
	TaskID tracking.TaskID `json:"task_id" strict:"id"`
	ifVersion
}

func (h *Handler) unassignTask(r *request, b unassignTask) (answer, error) {
	return h.oneTask("Task unassigned")(r.seen(b.ifVersion).svc.UnassignTask(r.Context(), b.TaskID))
}

// updateTask leaves as it is what is absent.
type updateTask struct {
	TaskID  tracking.TaskID `json:"task_id" strict:"id"`
	Pickup  *placeBody      `json:"pickup"`
	Drop    *placeBody      `json:"drop"`
	Notes   *string         `json:"notes"`
	OrderID *string         `json:"order_id"`
	Time    *time.Time      `json:"time"`

	Window   *windowBody        `json:"window"`
	Promised *strict.TimeOrNone `json:"promised"`
	Requires map[string]string  `json:"requires"`
	Proof    []proofKind        `json:"proof"`

	Properties map[string]string `json:"properties"`
	ifVersion
}

func (h *Handler) updateTask(r *request, b updateTask) (answer, error) {
	u := tracking.TaskUpdate{
		Pickup: b.Pickup.toPlace(), Drop: b.Drop.toPlace(), Notes: b.Notes, OrderID: b.OrderID, Time: b.Time,
		Window: (*tracking.Window)(b.Window), Requires: b.Requires, Proof: toProof(b.Proof), Properties: b.Properties,
	}
	if b.Promised != nil {
		u.Promised = &b.Promised.Time
	}
	return h.oneTask("Task updated")(r.seen(b.ifVersion).svc.UpdateTask(r.Context(), b.TaskID, u))
}

type cancelTask struct {
	TaskID tracking.TaskID `json:"task_id" strict:"id"`
	reason
	ifVersion
}

func (h *Handler) cancelTask(r *request, b cancelTask) (answer, error) {
	return h.oneTask("Task cancelled")(r.seen(b.ifVersion).svc.CancelTask(r.Context(), b.TaskID, b.toReason()))
}

type completeTask struct {
	TaskID tracking.TaskID `json:"task_id" strict:"id"`
	completion
	ifVersion
}

func (h *Handler) completeTask(r *request, b completeTask) (answer, error) {
	return h.oneTask("Task completed")(r.seen(b.ifVersion).svc.CompleteTask(r.Context(), b.TaskID, b.toCompletion()))
}

type retryTask struct {
	TaskID   tracking.TaskID `json:"task_id" strict:"id"`
	Window   windowBody      `json:"window"`
	Promised time.Time       `json:"promised"`
	ifVersion
}

func (h *Handler) retryTask(r *request, b retryTask) (answer, error) {
	return h.oneTask("Task created")(r.seen(b.ifVersion).svc.RetryTask(r.Context(), b.TaskID, tracking.Retry{
		Window: tracking.Window(b.Window), Promised: b.Promised,
	}))
}

type reopenTask struct {
	TaskID tracking.TaskID `json:"task_id" strict:"id"`
	ifVersion
}

func (h *Handler) reopenTask(r *request, b reopenTask) (answer, error) {
	return h.oneTask("Task reopened")(r.seen(b.ifVersion).svc.ReopenTask(r.Context(), b.TaskID))
}

type findPlace struct {
	Address string `json:"address" strict:"required"`
}

// findPlace asks somebody who may charge for it, so that it is for those who may change something.
func (h *Handler) findPlace(r *request, b findPlace) (answer, error) {
	at, err := r.svc.FindPlace(r.Context(), b.Address)
	if err != nil {
		return nil, err
	}
	return ok("Place", list{"lnglat": pointOf(&at)})
}

type settleTask struct {
	TaskID tracking.TaskID `json:"task_id" strict:"id"`
	ifVersion
}

func (h *Handler) settleTask(r *request, b settleTask) (answer, error) {
	return h.oneTask("Task settled")(r.seen(b.ifVersion).svc.SettleTask(r.Context(), b.TaskID))
}

func (h *Handler) taskLink(r *request) (answer, error) {
	token, err := r.svc.TaskLink(r.Context(), r.taskID())
	if err != nil {
		return nil, err
	}
	return ok("Task - Web Url Generated", list{"webUrl": trackingURL(h.base(r), token)})
}

type revokeTaskLink struct {
	TaskID tracking.TaskID `json:"task_id" strict:"id"`
	ifVersion
}

func (h *Handler) revokeTaskLink(r *request, b revokeTaskLink) (answer, error) {
	if err := r.seen(b.ifVersion).svc.RevokeTaskLink(r.Context(), b.TaskID); err != nil {
		return nil, err
	}
	return ok("Task - Web Url Revoked", nil)
}

// What a driver does with the app token.

const (
	ownTasks    = 1000            // how many open and how many completed tasks a driver is shown
	aheadAtMost = 2 * time.Minute // how far the clocks of two processes may differ
)

// driverTasks lists the open tasks in the order of the route, and those completed within the last 24
// hours, which is today wherever the driver is, without their contacts and what these have written.
func (h *Handler) driverTasks(r *request) (answer, error) {
	tasks, err := h.tasksOf(r)
	if err != nil {
		return nil, err
	}
	return ok("Task List", list{"task_list": tasks})
}

func (h *Handler) tasksOf(r *request) ([]task, error) {
	f := tracking.TaskFilter{
		Page: tracking.Page{Limit: ownTasks}, DriverID: r.driver, Person: r.person,
		Status: []tracking.TaskStatus{tracking.StatusAssigned, tracking.StatusInProgress},
	}
	open, _, err := r.svc.Tasks(r.Context(), f)
	if err != nil {
		return nil, err
	}
	route, err := r.routeOf(r.driver)
	if err != nil {
		return nil, err
	}
	now := h.now()
	f.Status, f.CompletedSince = []tracking.TaskStatus{tracking.StatusCompleted}, now.Add(-24*time.Hour)
	done, _, err := r.svc.Tasks(r.Context(), f)
	if err != nil {
		return nil, err
	}
	tasks := mapped(open, h.taskOf)
	for i := range tasks {
		tasks[i].Stop = stopIn(route, tasks[i].ID)
	}
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(a.Stop, b.Stop) })
	for _, t := range done {
		// by a clock of ours that was wrong: it would be of today for ever
		if t.CompletedAt.After(now.Add(aheadAtMost)) {
			continue
		}
		tasks = append(tasks, h.taskOf(t).done())
	}
	return tasks, nil
}

func (h *Handler) driverStartTask(r *request, b step) (answer, error) {
	t, trip, err := r.svc.StartTask(r.Context(), r.driver, r.taskID(), b.toStep())
	if err != nil {
		return nil, err
	}
	return ok("Task started", list{"task": h.taskOf(t), "trip": tripOf(trip)})
}

func (h *Handler) driverPickUpTask(r *request, b step) (answer, error) {
	return h.ownTask("Task picked up")(r.svc.PickUpTask(r.Context(), r.driver, r.taskID(), b.toStep()))
}

func (h *Handler) driverArrive(r *request, b step) (answer, error) {
	return h.ownTask("Task arrived")(r.svc.ArriveTask(r.Context(), r.driver, r.taskID(), b.toStep()))
}

type stuckStep struct {
	Step stuckWord `json:"step" strict:"required"`
	At   time.Time `json:"at"`
	Why  string    `json:"why"`
}

// stuckWord is a step that a phone may fail to deliver.
type stuckWord string

// Words are all of them.
func (stuckWord) Words() []string {
	return []string{"start", "arrive", "pickup", "complete", "fail", "decline", "undo", "proof"}
}

// driverStuck takes what a phone says of a step that it could not deliver. The task may be somebody
// else's by now, so nothing of it is told.
func (h *Handler) driverStuck(r *request, b stuckStep) (answer, error) {
	_, err := r.svc.ReportStuck(r.Context(), r.driver, r.taskID(), tracking.StuckStep{
		Step: string(b.Step), At: b.At, Why: b.Why,
	})
	if err != nil {
		return nil, err
	}
	return ok("Step noted", nil)
}

type settleStep struct {
	Step string `json:"step"`
}

func (h *Handler) driverSettle(r *request, b settleStep) (answer, error) {
	if _, err := r.svc.SettleStep(r.Context(), r.driver, r.taskID(), b.Step); err != nil {
		return nil, err
	}
	return ok("Step settled", nil)
}

type finishTask struct {
	step
	completion
	PIN string `json:"pin"`
}

func (h *Handler) driverFinishTask(r *request, b finishTask) (answer, error) {
	how := b.toCompletion()
	how.PIN = tracking.Secret(b.PIN)
	t, err := r.svc.FinishTask(r.Context(), r.driver, r.taskID(), how, b.toStep())
	if err != nil {
		return nil, err
	}
	data := list{"task": h.taskOf(t)}
	newest := tracking.TripFilter{Page: tracking.Page{Limit: 1}, TrackingID: tracking.TrackingID(t.ID)}
	trips, _, err := r.svc.Trips(r.Context(), newest)
	if err == nil && len(trips) > 0 && trips[0].DriverID == r.driver {
		// The task is completed, whatever becomes of reading its trip.
		data["trip"] = tripOf(trips[0])
	}
	return ok("Task completed", data)
}

type declineTask struct {
	step
	reason
}

func (h *Handler) driverDeclineTask(r *request, b declineTask) (answer, error) {
	return h.ownTask("Task declined")(r.svc.DeclineTask(r.Context(), r.driver, r.taskID(), b.toReason(), b.toStep()))
}

type undoTask struct {
	step
	Step taskStep `json:"step"`
}

func (h *Handler) driverUndoTask(r *request, b undoTask) (answer, error) {
	t, trip, err := r.svc.UndoTask(r.Context(), r.driver, r.taskID(), tracking.TaskStep(b.Step), b.toStep())
	if err != nil {
		return nil, err
	}
	data := list{"task": h.taskOf(t)}
	if trip.ID != "" {
		data["trip"] = tripOf(trip)
	}
	return ok("Task undone", data)
}
