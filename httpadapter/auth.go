package httpadapter

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-8aba7b13/tracking"
)

// APIKey is the key that a call carries, in the query parameter apikey or the header X-Api-Key; ""
// for none. Two that differ are ErrInvalid. It is for an Options.Authenticate that looks keys up by
// itself.
func APIKey(r *http.Request) (string, error) {
	keys := r.Header["X-Api-Key"]
	if q := r.URL.RawQuery; strings.Contains(q, "apikey") || strings.Contains(q, "%") { // else it is not in there
		keys = slices.Concat(r.URL.Query()["apikey"], keys)
	}
	for _, k := range keys {
		if k != keys[0] {
			return "", errTwoKeys
		}
	}
	if len(keys) == 0 {
		return "", nil
	}
	return keys[0], nil
}

// KeyAuth returns an Options.Authenticate that takes the given keys and those that the store of svc
// keeps.
func KeyAuth(svc *tracking.Service, keys map[string]Principal) func(*http.Request) (Principal, error) {
	ring := newKeyring(svc, keys)
	return func(r *http.Request) (Principal, error) {
		key, err := APIKey(r)
		if err != nil {
			return Principal{}, err
		}
		p, _, err := ring.find(r.Context(), key)
		return p, err
	}
}

// keyring is the keys that a program has fixed, and those that its store keeps.
type keyring struct {
	svc *tracking.Service
	// By hash, so that how long a look-up takes says nothing about a key.
	known map[[sha256.Size]byte]Principal
}

func newKeyring(svc *tracking.Service, keys map[string]Principal) keyring {
	known := make(map[[sha256.Size]byte]Principal, len(keys))
	for key, p := range keys {
		if p.App == "" {
			p.App = svc.App()
		}
		if p.Actor == "" {
			p.Actor = "key:static"
		}
		known[sha256.Sum256([]byte(key))] = p
	}
	return keyring{svc, known}
}

// find says whose key it is, and its id where the store keeps it.
func (k keyring) find(ctx context.Context, key string) (p Principal, id string, err error) {
	if key == "" {
		return Principal{}, "", errNoKey
	}
	if p, ok := k.known[sha256.Sum256([]byte(key))]; ok {
		return p, "", nil
	}
	app, kept, err := k.svc.AuthenticateKey(ctx, key)
	if errors.Is(err, tracking.ErrUnauthorized) {
		return Principal{}, "", errNoKey
	}
	if err != nil {
		return Principal{}, "", err
	}
	return Principal{App: app, Actor: "key:" + kept.ID}, kept.ID, nil
}

// authorize finds out who calls and scopes the request's Service to that.
func (h *Handler) authorize(r *request) error {
	switch r.route.who {
	case application:
		p, err := h.principal(r)
		if err != nil {
			return err
		}
		r.svc, r.caller = h.svc.ForApp(p.App).As(p.Actor), p
		if err := h.mayCall(r); err != nil {
			return err
		}
	case driver:
		token, ok := bearer(r.Header)
		if !ok {
			return errNoToken
		}
		r.token = token
		return r.knowDriver()
	}
	return nil
}

// knowDriver finds out whose the token is.
func (r *request) knowDriver() error {
	app, d, err := r.h.svc.DriverByToken(r.Context(), tracking.TokenApp, r.token)
	if errors.Is(err, tracking.ErrUnauthorized) {
		return errNoToken
	}
	if err != nil {
		return err
	}
	if d.ID != r.driver || d.Person != r.person || app != r.svc.App() {
		r.svc, r.driver, r.person = r.h.svc.ForApp(app).AsDriver(d), d.ID, d.Person
	}
	return nil
}

// loginError is what the caller gets to see of an error of Options.Authenticate: the message that a
// *tracking.Error has for that purpose, and nothing of any other text, which may hold what was
// tried. A bare code, wrapped or not, counts too.
func loginError(err error) error {
	var e *tracking.Error
	var code tracking.ErrorCode
	switch {
	case errors.As(err, &e):
		if e == nil {
			return mistakenLogin("a nil *tracking.Error as an error: return nil itself")
		}
		if _, known := statusOf(e.Code); !known {
			return mistakenLogin("a *tracking.Error without a Code of package tracking, such as tracking.ErrUnauthorized")
		}
		if e.Code == tracking.ErrUnauthorized && e.Message == "" {
			return &tracking.Error{Code: e.Code, Message: notSignedIn, Field: e.Field, Err: err}
		}
		return err
	case errors.As(err, &code) && code != tracking.ErrUnauthorized:
		if _, known := statusOf(code); !known {
			return mistakenLogin("an ErrorCode that is none of package tracking's, such as tracking.ErrUnauthorized")
		}
		return &tracking.Error{Code: code, Err: err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err // the caller has gone, or the login did not answer in time: that says nothing about who calls
	}
	return &tracking.Error{Code: tracking.ErrUnauthorized, Message: notSignedIn, Err: err}
}

// mistakenLogin is for the log: the caller is told that something is wrong on our side.
func mistakenLogin(what string) error {
	return errors.New("httpadapter: Options.Authenticate returned " + what)
}

// types names the types of an error and what it wraps: its text may hold what was tried.
func types(err error) string {
	var names []string
	for ; err != nil; err = errors.Unwrap(err) {
		names = append(names, fmt.Sprintf("%T", err))
	}
	return strings.Join(names, ": ")
}

// bearer is the token of an Authorization header.
func bearer(hd http.Header) (string, bool) {
	v := hd["Authorization"]
	if len(v) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(v[0], " ")
	token = strings.TrimLeft(token, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// peerIP is the address at the other end of the connection.
func peerIP(r *http.Request) netip.Addr {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return a.Addr()
}

// source names where a call comes from. A home has one IPv4 address, or a /64 of IPv6 to choose
// addresses from.
func (h *Handler) source(r *request) string {
	a := h.opts.ClientIP(r.Request).Unmap().WithZone("")
	if a.Is6() {
		p, _ := a.Prefix(64)
		return p.String()
	}
	return a.String()
}

// base is what public addresses begin with, the prefix included.
func (h *Handler) base(r *request) string {
	if h.opts.BaseURL != "" {
		return h.ownBase()
	}
	u := url.URL{Scheme: "http", Host: r.Host}
	if u.Host == "" { // HTTP/1.0
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
			u.Host = local.String()
		}
	}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	return u.String() + h.opts.Prefix
}

// TrackingURL is the address of the tracking page whose token [tracking.Service.TaskLink] or TripLink
// has returned. It is whole where Options.BaseURL is set; else it is the path on whatever host serves
// the Handler, which is enough for a page of that host.
func (h *Handler) TrackingURL(token string) string { return trackingURL(h.ownBase(), token) }

// JoinURL is the address where a driver takes up the invite with this token, as TrackingURL is.
func (h *Handler) JoinURL(token string) string { return joinURL(h.ownBase(), token) }

// SignInURL is the address where somebody signs in to the board with a token of
// [tracking.Service.SignIn], as TrackingURL is.
func (h *Handler) SignInURL(token string) string { return h.ownBase() + "/board/#signin=" + token }

func (h *Handler) ownBase() string { return h.opts.BaseURL + h.opts.Prefix }

func trackingURL(base, token string) string { return base + "/track/" + token }
func joinURL(base, token string) string     { return base + "/join/" + token }
