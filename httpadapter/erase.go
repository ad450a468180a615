package httpadapter

import "github.com/seed-8aba7b13/tracking"

type deleteTask struct {
	TaskID tracking.TaskID `json:"task_id" strict:"id"`
	ifVersion
}

func (h *Handler) deleteTask(r *request, b deleteTask) (answer, error) {
	if err := r.seen(b.ifVersion).svc.DeleteTask(r.Context(), b.TaskID); err != nil {
		return nil, err
	}
	return ok("Task deleted", nil)
}

type eraseContact struct {
	Mobile string `json:"mobile" strict:"required"`
}

func (h *Handler) eraseContact(r *request, b eraseContact) (answer, error) {
	n, err := r.svc.EraseContact(r.Context(), b.Mobile)
	if err != nil {
		return nil, err
	}
	return ok("Contact erased", list{"erased": n})
}
