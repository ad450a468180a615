package httpadapter

import (
	"math"
	"strings"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

func readPlace(o strict.Object, name string) *tracking.Place {
	in, ok := o.Object(name)
	if !ok {
		return nil
	}
	p := &tracking.Place{LngLat: in.LngLat("lnglat"), Customer: readContact(in, "customer")}
	p.Address, _ = in.Text("address")
	return p
}

func readContact(o strict.Object, name string) *tracking.Contact {
	in, ok := o.Object(name)
	if !ok {
		return nil
	}
	var c tracking.Contact
	c.Name, _ = in.Text("name")
	c.Mobile, _ = in.Text("mobile")
	return &c
}

// page reads which part of a list is asked for.
func (r *request) page() tracking.Page {
	var p tracking.Page
	p.Number, _ = r.query.Int("page", 1, math.MaxInt, "must be a number from 1 on, in plain digits")
	p.Limit, _ = r.query.Int("limit", 1, 1000, "must be a number from 1 to 1000, in plain digits")
	return p
}

func oneTask(message string) func(tracking.Task, error) (answer, error) {
	return func(t tracking.Task, err error) (answer, error) {
		if err != nil {
			return nil, err
		}
		return ok(message, list{"task": taskOf(t)})
	}
}

func (h *Handler) createTask(r *request) (answer, error) {
	o, err := r.json()
	if err != nil {
		return nil, err
	}
	typ, _ := o.Int("type")
	n := tracking.NewTask{Type: tracking.TaskType(typ), Pickup: readPlace(o, "pickup"), Drop: readPlace(o, "drop"), Customer: readContact(o, "customer")}
	n.OrderID, _ = o.Text("order_id")
	n.Notes, _ = o.Text("notes")
	n.Time, _ = o.Time("time")
	n.AutoAssign, _ = o.Bool("auto_assign")
	if err := o.Err(); err != nil {
		return nil, err
	}
	if keys := r.Header.Values("Idempotency-Key"); len(keys) > 0 {
		if len(keys) > 1 || keys[0] == "" {
			return nil, &tracking.Error{Code: tracking.ErrInvalid, Field: "Idempotency-Key", Message: "The header Idempotency-Key must be given once, with 1 to 128 characters."}
		}
		n.Key = keys[0]
	}
	return oneTask("Task created")(r.svc.CreateTask(r.Context(), n))
}

func (h *Handler) listTasks(r *request) (answer, error) {
	f := tracking.TaskFilter{Page: r.page(), DriverID: tracking.DriverID(r.query.Filter("driver_id")), OrderID: r.query.Filter("order_id")}
	if words := r.query.Filter("status"); words != "" {
		for word := range strings.SplitSeq(words, ",") {
			switch s := tracking.TaskStatus(word); s {
			case tracking.StatusCreated, tracking.StatusAssigned, tracking.StatusInProgress, tracking.StatusCompleted:
				f.Status = append(f.Status, s)
			default:
				r.query.Fail("status", "must be a list, with commas between, of created, assigned, in_progress and completed")
			}
			if err := r.query.Err(); err != nil {
				return nil, err
			}
		}
	}
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	tasks, more, err := r.svc.Tasks(r.Context(), f)
	if err != nil {
		return nil, err
	}
	return ok("Task List", list{"task_list": mapped(tasks, taskOf), "has_more": more})
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
	return ok("Task", list{"task": taskOf(t).withoutContacts()})
}

func (h *Handler) assignTask(r *request) (answer, error) {
	o, err := r.json()
	if err != nil {
		return nil, err
	}
	id, driver := o.ID("task_id"), o.ID("driver_id")
	if err := o.Err(); err != nil {
		return nil, err
	}
	return oneTask("Task assigned")(r.svc.AssignTask(r.Context(), tracking.TaskID(id), tracking.DriverID(driver)))
}

func (h *Handler) unassignTask(r *request) (answer, error) {
	o, err := r.json()
	if err != nil {
		return nil, err
	}
	id := o.ID("task_id")
	if err := o.Err(); err != nil {
		return nil, err
	}
	return oneTask("Task unassigned")(r.svc.UnassignTask(r.Context(), tracking.TaskID(id)))
}

func (h *Handler) updateTask(r *request) (answer, error) {
	o, err := r.json()
	if err != nil {
		return nil, err
	}
	id := o.ID("task_id")
	u := tracking.TaskUpdate{
		Pickup: readPlace(o, "pickup"), Drop: readPlace(o, "drop"), Notes: optionalText(o, "notes"), OrderID: optionalText(o, "order_id"),
	}
	if v, ok := o.Time("time"); ok {
		u.Time = &v
	}
	if err := o.Err(); err != nil {
		return nil, err
	}
	return oneTask("Task updated")(r.svc.UpdateTask(r.Context(), tracking.TaskID(id), u))
}

func (h *Handler) cancelTask(r *request) (answer, error) {
	o, err := r.json()
	if err != nil {
		return nil, err
	}
	id := o.ID("task_id")
	reason, _ := o.Text("reason")
	if err := o.Err(); err != nil {
		return nil, err
	}
	return oneTask("Task cancelled")(r.svc.CancelTask(r.Context(), tracking.TaskID(id), reason))
}

// readCompletion reads how a task ended. An empty word is not the default: only an absent one is.
func readCompletion(o strict.Object) tracking.Completion {
	var c tracking.Completion
	if v, ok := o.Text("outcome"); ok {
		if c.Outcome = tracking.Outcome(v); c.Outcome != tracking.Succeeded && c.Outcome != tracking.Failed {
			o.Fail("outcome", "must be succeeded or failed")
		}
	}
	c.Reason, _ = o.Text("reason")
	return c
}

func (h *Handler) completeTask(r *request) (answer, error) {
	o, err := r.json()
	if err != nil {
		return nil, err
	}
	id, c := o.ID("task_id"), readCompletion(o)
	if err := o.Err(); err != nil {
		return nil, err
	}
	return oneTask("Task completed")(r.svc.CompleteTask(r.Context(), tracking.TaskID(id), c))
}

func (h *Handler) taskLink(r *request) (answer, error) {
	token, err := r.svc.TaskLink(r.Context(), tracking.TaskID(r.path["task_id"]))
	if err != nil {
		return nil, err
	}
	return ok("Task - Web Url Generated", list{"webUrl": h.base(r) + "/track/" + token})
}

func (h *Handler) revokeTaskLink(r *request) (answer, error) {
	o, err := r.json()
	if err != nil {
		return nil, err
	}
	id := o.ID("task_id")
	if err := o.Err(); err != nil {
		return nil, err
	}
	if err := r.svc.RevokeTaskLink(r.Context(), tracking.TaskID(id)); err != nil {
		return nil, err
	}
	return ok("Task - Web Url Revoked", nil)
}
