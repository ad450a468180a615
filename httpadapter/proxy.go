package httpadapter

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// BehindProxies returns an Options.ClientIP for a server that is reached through the proxies with
// these addresses. Header is the one in which they write where a request came from,
// X-Forwarded-For or Forwarded (RFC 7239): only that one is read, since what a proxy passes on
// unread is the client's word.
//
// It is read from its end, as each proxy adds to it there: the client is the first address that is
// none of the proxies'. Where a proxy did not know, or wrote what makes no sense, it is the proxy's
// own address; and where the request came from nobody whom the list names, the peer's.
func BehindProxies(header string, proxies ...netip.Prefix) (func(*http.Request) netip.Addr, error) {
	var read func(element string) string
	switch http.CanonicalHeaderKey(header) {
	case "X-Forwarded-For":
		read = strings.TrimSpace
	case "Forwarded":
		read = forwardedFor
	default:
		return nil, errors.New("httpadapter: BehindProxies reads the header X-Forwarded-For or Forwarded")
	}
	trusted := make([]netip.Prefix, len(proxies))
	for i, p := range proxies {
		if !p.IsValid() {
			return nil, errors.New("httpadapter: BehindProxies was given a range of addresses that is none")
		}
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		trusted[i] = p
	}
	isProxy := func(a netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	return func(r *http.Request) netip.Addr {
		at := peerIP(r).Unmap().WithZone("")
		lines := r.Header.Values(header)
		for i := len(lines) - 1; i >= 0; i-- {
			// No address holds a comma, so that nothing to the left, an open quote say, has a say here.
			rest, element, more := lines[i], "", true
			for more && isProxy(at) {
				cut := strings.LastIndexByte(rest, ',')
				more = cut >= 0
				rest, element = rest[:max(cut, 0)], rest[cut+1:]
				before, ok := hop(read(element))
				if !ok {
					return at
				}
				at = before
			}
		}
		return at
	}, nil
}

// hop reads an address with or without a port.
func hop(text string) (a netip.Addr, ok bool) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); ok {
			text = inner
		}
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		with, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		a = with.Addr()
	}
	return a.Unmap().WithZone(""), true
}

// forwardedFor is the value of for in an element of a Forwarded header; "" for none.
func forwardedFor(element string) string {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, _ := strings.Cut(pair, "=")
		if strings.EqualFold(strings.TrimSpace(name), "for") {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}
