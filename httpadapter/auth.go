package httpadapter

import (
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/seed-8aba7b13/tracking"
)

// APIKey is the key that a call carries, in the query parameter apikey or the header X-Api-Key; "" for none. Two that differ are ErrInvalid.
// It is for an Options.Authenticate that looks keys up by itself.
func APIKey(r *http.Request) (string, error) {
	var keys []string
	if v, ok := r.URL.Query()["apikey"]; ok {
		keys = append(keys, v...)
	}
	keys = append(keys, r.Header.Values("X-Api-Key")...)
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

// KeyAuth returns an Options.Authenticate that takes the given keys and those that the store of svc keeps.
func KeyAuth(svc *tracking.Service, keys map[string]Principal) func(*http.Request) (Principal, error) {
	// By hash, so that how long a look-up takes says nothing about a key.
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
	return func(r *http.Request) (Principal, error) {
		key, err := APIKey(r)
		if err != nil {
			return Principal{}, err
		}
		if key == "" {
			return Principal{}, errNoKey
		}
		if p, ok := known[sha256.Sum256([]byte(key))]; ok {
			return p, nil
		}
		app, k, err := svc.AuthenticateKey(r.Context(), key)
		if errors.Is(err, tracking.ErrUnauthorized) {
			return Principal{}, errNoKey
		}
		if err != nil {
			return Principal{}, err
		}
		return Principal{App: app, Actor: "key:" + k.ID}, nil
	}
}

// authorize finds out who calls and scopes the request's Service to that.
func (h *Handler) authorize(r *request) error {
	switch r.route.who {
	case application:
		p, err := h.opts.Authenticate(r.Request)
		if err != nil {
			var e *tracking.Error
			if errors.As(err, &e) {
				return err
			}
			return errNoKey
		}
		if p.App == "" {
			p.App = h.svc.App()
		}
		if p.Actor == "" {
			p.Actor = "key:static"
		}
		r.svc = h.svc.ForApp(p.App).As(p.Actor)
	case driver:
		token, ok := bearer(r.Header)
		if !ok {
			return errNoToken
		}
		app, id, err := h.svc.AuthenticateDriver(r.Context(), tracking.AppToken, token)
		if errors.Is(err, tracking.ErrUnauthorized) {
			return errNoToken
		}
		if err != nil {
			return err
		}
		r.svc, r.driver = h.svc.ForApp(app).As("driver:"+string(id)), id
	}
	return nil
}

// bearer is the token of an Authorization header.
func bearer(hd http.Header) (string, bool) {
	v := hd.Values("Authorization")
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

// source names where a call comes from. A home has one IPv4 address, or a /64 of IPv6 to choose addresses from.
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
		return h.opts.BaseURL + h.opts.Prefix
	}
	u := url.URL{Scheme: "http", Host: r.Host}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && u.Host == "" { // HTTP/1.0
		u.Host = local.String()
	}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	return u.String() + h.opts.Prefix
}
