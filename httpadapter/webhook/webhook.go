// Package webhook tells other programs of events over HTTP, after Standard Webhooks 1.0.0
// (https://www.standardwebhooks.com).
//
// A [Notifier] is given to the service, which calls it for each event:
//
//	hook, err := webhook.New("https://example.com/hooks/tracking", []string{secret}, nil)
//	if err != nil {
//		return err
//	}
//	svc, err := tracking.New(store, &tracking.Options{Notifiers: map[string]tracking.Notifier{"webhook": hook}})
//
// and posts this, as application/json:
//
//	{"type": "task.assigned", "timestamp": "2026-05-04T03:02:01.987Z", "data": {…}}
//
// where timestamp says when it happened and data is the event, or what [Options.Fill] makes of it.
// The header webhook-id holds the event's id, the same however often it is sent; webhook-timestamp
// the time of this try in Unix seconds; webhook-signature one signature for each secret. A receiver
// calls [Verify] with the body as it came, and keeps the ids it has seen: it may get an event more
// than once.
//
// # Answers
//
// A status of 2xx, within [Options.Timeout], means that the receiver has the event. A redirect is
// not followed and counts as a failure. After a 4xx other than 408, 425 and 429 the event is tried
// again only until it has been tried [Options.Tries] times in all; everything else is tried again
// to the end of the service's schedule, and no sooner than the answer's Retry-After says, up to
// [MaxRetryAfter]. 410 Gone ends it all: the notifier sends nothing more, to no matter what event,
// until [Notifier.Enable].
//
// # Addresses
//
// The URL of a webhook is often the word of a customer. So that it cannot reach into the sender's
// own network, a connection to an address that is not public is refused after the name has been
// resolved, at each dial: loopback, private, link-local, shared (CGNAT), NAT64, multicast and the
// rest of IANA's special-purpose registries. [Options.Allow] makes exceptions. Proxies of the
// environment are not used.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/egress"
)

// MaxRetryAfter is the longest Retry-After that is honoured; a longer one counts as this.
const MaxRetryAfter = 24 * time.Hour

// AddressError is the cause of a failed delivery when the receiver's address is not public; Addr
// names it.
type AddressError = egress.AddressError

// Options set up a [Notifier]. The zero value of each field means its default.
type Options struct {
	// Fill gives what stands under "data". Its result is encoded as JSON; an error makes the
	// delivery fail, to be tried again. Events hold ids and no personal data, so this is the place
	// to add the rows as they are now. Default: [DataOf] the event.
	Fill func(ctx context.Context, n tracking.Notification) (any, error)

	Timeout time.Duration // for one try, from the dial to the end of the answer; default 15 s
	Tries   int           // how often an event is sent to a receiver that answers 4xx; default 3

	// Allow lists networks that may be reached though they are not public.
	Allow []netip.Prefix

	// Transport sends the requests in place of the notifier's own. It has to refuse addresses by
	// itself.
	Transport http.RoundTripper

	// Disabled is called once when the receiver answers 410 Gone.
	Disabled func()

	Now func() time.Time // default time.Now
}

// Notifier posts events to one URL. It is safe for use by several goroutines at once.
type Notifier struct {
	url      string
	keys     [][]byte
	opts     Options
	client   *http.Client
	disabled atomic.Bool
}

var _ tracking.Notifier = (*Notifier)(nil)

// ErrDisabled is the cause of a failed delivery when the receiver has answered 410 Gone before.
var ErrDisabled = errors.New("the webhook is disabled: its receiver answered 410 Gone")

// New makes a notifier for an absolute http or https URL. Each request is signed with every one of
// secrets, which are as [NewSecret] makes them: one, or two while receivers change from the old one
// to the new.
func New(endpoint string, secrets []string, opts *Options) (*Notifier, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Fragment != "" {
		// and is not shown: it may hold a token
		return nil, errors.New("webhook: the URL must be absolute, http or https, without a fragment")
	}
	if len(secrets) == 0 {
		return nil, errors.New("webhook: give at least one secret; NewSecret makes one")
	}
	n := &Notifier{url: endpoint}
	for _, s := range secrets {
		key, err := parseSecret(s)
		if err != nil {
			return nil, err
		}
		n.keys = append(n.keys, key)
	}
	if opts != nil {
		n.opts = *opts
	}
	if n.opts.Timeout < 0 || n.opts.Tries < 0 {
		return nil, errors.New("webhook: Timeout and Tries must not be negative; 0 means the default")
	}
	if n.opts.Timeout == 0 {
		n.opts.Timeout = 15 * time.Second
	}
	if n.opts.Tries == 0 {
		n.opts.Tries = 3
	}
	if n.opts.Now == nil {
		n.opts.Now = time.Now
	}
	if n.opts.Fill == nil {
		n.opts.Fill = func(_ context.Context, n tracking.Notification) (any, error) { return DataOf(n.Event), nil }
	}
	if n.opts.Transport == nil {
		n.opts.Transport = egress.Transport(n.opts.Allow)
	}
	n.client = egress.Client(n.opts.Transport)
	return n, nil
}

// Notify posts n. Its error is a *[tracking.NotifyError] that never shows the URL, which may hold a
// token, nor what the receiver said.
func (n *Notifier) Notify(ctx context.Context, note tracking.Notification) error {
	if n.disabled.Load() {
		return &tracking.NotifyError{Permanent: true, Err: ErrDisabled}
	}
	ctx, cancel := context.WithTimeout(ctx, n.opts.Timeout)
	defer cancel()
	body, err := n.body(ctx, note)
	if err != nil {
		return &tracking.NotifyError{Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url, bytes.NewReader(body))
	if err != nil {
		return &tracking.NotifyError{Permanent: true, Err: errors.New("webhook: the URL cannot be requested")}
	}
	now := n.opts.Now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "tracking-webhook/1")
	sign(req.Header, note.Event.ID, now, body, n.keys)

	res, err := n.client.Do(req)
	if err != nil {
		return n.failed(note, err)
	}
	egress.Discard(res)
	return n.judge(note, res, now)
}

func (n *Notifier) body(ctx context.Context, note tracking.Notification) ([]byte, error) {
	data, err := n.opts.Fill(ctx, note)
	if err != nil {
		return nil, fmt.Errorf("webhook: filling the body: %w", err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err = enc.Encode(struct {
		Type      tracking.EventType `json:"type"`
		Timestamp string             `json:"timestamp"`
		Data      any                `json:"data"`
	}{note.Event.Type, timestamp(note.Event.Time), data})
	if err != nil {
		return nil, fmt.Errorf("webhook: encoding the body: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// failed is the error of a request without an answer.
func (n *Notifier) failed(note tracking.Notification, err error) error {
	err = egress.Cause(err)
	var refused *AddressError
	return &tracking.NotifyError{
		Permanent: errors.As(err, &refused) && note.Attempt >= n.opts.Tries,
		Err:       fmt.Errorf("webhook: %w", err),
	}
}

// judge makes the outcome of an answer.
func (n *Notifier) judge(note tracking.Notification, res *http.Response, now time.Time) error {
	status := res.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	e := &tracking.NotifyError{RetryAfter: egress.RetryAfter(res.Header, now, MaxRetryAfter), Err: &StatusError{status}}
	switch {
	case status == http.StatusGone:
		e.Permanent = true
		if !n.disabled.Swap(true) && n.opts.Disabled != nil {
			n.opts.Disabled()
		}
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
	case status >= 400 && status < 500:
		e.Permanent = note.Attempt >= n.opts.Tries
	}
	return e
}

// Disabled reports whether the receiver has answered 410 Gone. This is known to this Notifier
// alone, and only until the program ends.
func (n *Notifier) Disabled() bool { return n.disabled.Load() }

// Enable makes a disabled notifier send again.
func (n *Notifier) Enable() { n.disabled.Store(false) }

// Close closes idle connections. The notifier can still be used.
func (n *Notifier) Close() error {
	n.client.CloseIdleConnections()
	return nil
}

// StatusError is the cause of a failed delivery when the receiver answered with something else than
// 2xx.
type StatusError struct{ Status int }

func (e *StatusError) Error() string {
	return "webhook: the receiver answered " + strconv.Itoa(e.Status)
}
