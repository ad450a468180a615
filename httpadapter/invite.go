package httpadapter

import "github.com/seed-8aba7b13/tracking"

func (h *Handler) invite(r *request) (answer, error) {
	o, err := r.optionalJSON()
	if err != nil {
		return nil, err
	}
	n := tracking.NewInvite{Name: optionalText(o, "name"), Mobile: optionalText(o, "mobile"), Email: optionalText(o, "email")}
	if id, ok := o.Text("user_id"); ok {
		if id == "" {
			o.Fail("user_id", "must not be empty; leave it out to have one made")
		}
		n.DriverID = tracking.DriverID(id)
	}
	if err := o.Err(); err != nil {
		return nil, err
	}
	made, err := r.svc.InviteDriver(r.Context(), n)
	if err != nil {
		return nil, err
	}
	return ok("Invite Created", invitation{h.base(r) + "/join/" + made.Token, made.Code, made.DriverID})
}

type invitation struct {
	URL    string            `json:"url"`
	Code   int               `json:"invite_code"`
	UserID tracking.DriverID `json:"user_id"`
}

// join makes tokens out of an invite. Whatever is not one that is live gets one and the same answer; only what cannot be an invite at all, such as a list, is invalid.
func (h *Handler) join(r *request) (answer, error) {
	o, err := r.json()
	if err != nil {
		return nil, err
	}
	j := tracking.Join{Source: h.source(r)}
	code, ok1 := o.Digits("invite_code")
	token, ok2 := o.Lookup("invite")
	j.Nonce, _ = o.Text("nonce")
	switch {
	case ok1 && ok2:
		o.Fail("invite", "and invite_code exclude each other")
	case ok1 && code == "":
		o.Fail("invite_code", "must not be empty")
	case ok2 && token == "":
		o.Fail("invite", "must not be empty")
	case !ok1 && !ok2:
		o.Fail("invite_code", "or invite is required")
	}
	if err := o.Err(); err != nil {
		return nil, err
	}
	j.Code, j.Token = code, token
	joined, err := h.svc.Join(r.Context(), j)
	if err != nil {
		return nil, err
	}
	return ok("Driver joined", list{
		"driver":     operatorOf(joined.Driver),
		"token":      joined.Token,
		"ingest_url": h.base(r) + "/ingest/" + joined.IngestToken,
	})
}
