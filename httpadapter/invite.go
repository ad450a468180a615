package httpadapter

import (
	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

// inviteDriver leaves as it is what is absent.
type inviteDriver struct {
	Name   *string            `json:"name"`
	Mobile *string            `json:"mobile"`
	Email  *string            `json:"email"`
	UserID *tracking.DriverID `json:"user_id"`
}

// Check looks at what no tag says.
func (b *inviteDriver) Check(o strict.Object) {
	if b.UserID != nil && *b.UserID == "" {
		o.Fail("user_id", "must not be empty; leave it out to have one made")
	}
}

func (h *Handler) invite(r *request, b inviteDriver) (answer, error) {
	n := tracking.NewInvite{Name: b.Name, Mobile: b.Mobile, Email: b.Email}
	if b.UserID != nil {
		n.DriverID = *b.UserID
	}
	made, err := r.svc.InviteDriver(r.Context(), n)
	if err != nil {
		return nil, err
	}
	return ok("Invite Created", invitation{joinURL(h.base(r), made.Token), made.Code, made.DriverID})
}

type invitation struct {
	URL    string            `json:"url"`
	Code   int               `json:"invite_code"`
	UserID tracking.DriverID `json:"user_id"`
}

// joinDriver names an invite by its code or by the token in its link.
type joinDriver struct {
	Code  *string `json:"invite_code" strict:"digits"`
	Token *string `json:"invite" strict:"lookup"`
	Nonce string  `json:"nonce"`
}

// Check looks at what no tag says.
func (b *joinDriver) Check(o strict.Object) {
	switch {
	case b.Code != nil && b.Token != nil:
		o.Fail("invite", "and invite_code exclude each other")
	case b.Code != nil && *b.Code == "":
		o.Fail("invite_code", "must not be empty")
	case b.Token != nil && *b.Token == "":
		o.Fail("invite", "must not be empty")
	case b.Code == nil && b.Token == nil:
		o.Fail("invite_code", "or invite is required")
	}
}

// join makes tokens out of an invite. Whatever is not one that is live gets one and the same
// answer; only what cannot be an invite at all, such as a list, is invalid.
func (h *Handler) join(r *request, b joinDriver) (answer, error) {
	j := tracking.JoinRequest{Source: h.source(r), Nonce: b.Nonce}
	if b.Code != nil {
		j.Code = *b.Code
	} else {
		j.Token = *b.Token
	}
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
