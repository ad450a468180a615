// Package egress makes requests to addresses that are the word of somebody else: a customer's
// webhook, the push service of a driver's browser. They reach the public Internet only, follow no
// redirect, and read no more of an answer than is of use.
package egress

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxAnswer is how much of an answer is read, in bytes, so that the connection can be used again.
const maxAnswer = 64 << 10

// Transport refuses, after the name has been resolved and at each dial, addresses that are neither
// public nor in allow; its cause is an *[AddressError]. It uses no proxy of the environment, which
// would dial in its place.
func Transport(allow []netip.Prefix) *http.Transport {
	guard := guard{allow}
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, ControlContext: guard.control}).DialContext,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // what is read stays within its limit
		MaxResponseHeaderBytes: maxAnswer,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        90 * time.Second,
	}
}

// Client makes requests through rt and takes a redirect for the answer.
func Client(rt http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Discard ends an answer whose status has said everything. The body is read only for the sake of
// the connection.
func Discard(res *http.Response) {
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer)
	_ = res.Body.Close()
}

// Cause is the error of a request without its URL, which may hold a secret.
func Cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// RetryAfter reads the header Retry-After, seconds or a date, as a time from now, at most limit; 0
// when there is none.
func RetryAfter(h http.Header, now time.Time, limit time.Duration) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	var d time.Duration
	if seconds, err := strconv.ParseUint(v, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		d = time.Duration(min(seconds, uint64(limit/time.Second))) * time.Second
	} else if t, err := http.ParseTime(v); err == nil {
		d = t.Sub(now)
	}
	return min(max(d, 0), limit)
}
