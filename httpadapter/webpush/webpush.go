// Package webpush tells drivers' browsers of their notices while the app is closed or the phone is
// locked, by Web Push: RFC 8030 (the protocol), RFC 8291 and RFC 8188 (encryption), RFC 8292
// (VAPID, who sends).
//
// A [Notifier] is given to the service, and the service to it, since it reads the drivers' browsers
// there and the secret that its key is derived from:
//
//	push, err := webpush.New(nil, &webpush.Options{Contact: "mailto:ops@example.com"})
//	if err != nil {
//		return err
//	}
//	svc, err := tracking.New(store, &tracking.Options{Notifiers: map[string]tracking.Notifier{"push": push}})
//	if err != nil {
//		return err
//	}
//	push.Bind(svc)
//	key, err := push.PublicKey(ctx) // for the web app, which subscribes with it
//
// What a browser's PushManager.subscribe returns goes to [tracking.Service.SubscribePush].
//
// For each notice in an event, each browser of its driver, and of nobody who has his id after him,
// gets a [Payload], encrypted for it and filled up to a multiple of 256 bytes: what happened, and
// ids. There is nothing in it of customers or places; the app fetches that with the driver's token.
//
// # How often
//
// A notice is pushed at least once. A browser that has it is not told again while another one's
// push service is down, as far as this process remembers: it forgets what happened before it was
// started, and the oldest of the events that are underway when they are more than 10,000. What is
// sent twice shows once: both messages have the same Topic, by which the push service replaces one
// that the phone has not fetched, and the same tag, by which the app knows that it has shown it. The
// Topic is the event's id, the tag the notice's id. However much is new, the phone shows one line,
// with the newest of it and how much there is.
//
// A notice is pushed to nobody once [Options.TTL] has passed since its event.
//
// # Answers
//
// 2xx means that the push service has the message. 404 and 410 mean that the browser no longer
// wants any, and so does a key that nothing can be encrypted for: it is forgotten
// ([tracking.Service.UnsubscribePush]), and that counts as done. A redirect is not followed. After
// no answer, 408, 425, 429 and 5xx the event is tried again until it has been tried [Options.Tries]
// times in all, no sooner than Retry-After says, up to [MaxRetryAfter]. Any other answer is final.
// When a browser could not be told, the event counts as given up (see [tracking.EventFilter].Dead),
// though the others have it; [tracking.Service.Replay] tells all of them again.
//
// The next event of the same task waits meanwhile. Other notifiers go on, and this one goes on when
// they fail, if it stands by itself in [tracking.Options].Notifiers. In a fan-out (package webhook)
// it would wait for the others: while a receiver of webhooks took no event of a task, no push of
// that task's later events would go out, and by the time the webhook was given up, after three days
// by default, their TTL would have passed.
//
// # Addresses
//
// The address of a push service is the word of a driver's browser. So that it cannot reach into the
// sender's own network, a connection to an address that is not public is refused after the name has
// been resolved, at each dial: loopback, private, link-local, shared (CGNAT), NAT64, multicast and
// the rest of IANA's special-purpose registries. [Options.Allow] makes exceptions. Proxies of the
// environment are not used.
package webpush

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/egress"
)

// MaxRetryAfter is the longest Retry-After that is honoured; a longer one counts as this. The next
// event of the same task waits for so long.
const MaxRetryAfter = time.Hour

// AddressError is the cause of a failed delivery when a push service's address is not public; Addr
// names it.
type AddressError = egress.AddressError

// Options set up a [Notifier]. The zero value of each field means its default; Contact has none.
type Options struct {
	// Contact is where the operators of push services reach you, mailto:ops@example.com or
	// https://example.com. It goes into each request (RFC 8292, the claim sub); some push services
	// refuse messages of senders that nobody could reach there, so that names like localhost are
	// refused here.
	Contact string

	// how long after its event a notice is still of use: push services keep it for a phone that is
	// off; whole seconds, default 24 h, at most 28 days
	TTL     time.Duration
	Timeout time.Duration // for one request, from the dial to the end of the answer; default 10 s
	// how often an event is sent to a push service that does not take it; default 3, by the
	// service's schedule within about 5 minutes
	Tries int

	// Title is the line that is shown, if the service worker has no words of its own for the kind;
	// default: English ones. What is longer than a message can hold is left out.
	Title func(app tracking.AppID, kind tracking.NoticeKind) string

	// Allow lists networks that may be reached though they are not public.
	Allow []netip.Prefix

	// Transport sends the requests in place of the notifier's own. It has to refuse addresses by
	// itself.
	Transport http.RoundTripper

	Now func() time.Time // default time.Now
}

// Payload is what a service worker gets, as JSON.
type Payload struct {
	Kind       tracking.NoticeKind `json:"kind"`
	ID         int64               `json:"id"` // of the notice in the driver's feed
	EventID    string              `json:"event_id"`
	TaskID     tracking.TaskID     `json:"task_id,omitempty"`
	TrackingID tracking.TrackingID `json:"tracking_id,omitempty"` // of a trip request
	Time       string              `json:"time"`                  // when it was recorded: UTC, with milliseconds
	Tag        string              `json:"tag"`                   // what comes with the same tag is the same notice
	Title      string              `json:"title,omitempty"`
}

// Notifier pushes notices to the browsers of the drivers they are for. It is safe for use by
// several goroutines at once.
type Notifier struct {
	svc    atomic.Pointer[tracking.Service]
	opts   Options
	client *http.Client
	told   told
}

var _ tracking.Notifier = (*Notifier)(nil)

var errNoService = errors.New("webpush: the Notifier has no Service yet; give it one with Bind")

// New makes a notifier for the drivers of svc. svc may be nil when it is still to be made, with
// this notifier in its options; then [Notifier.Bind] gives it.
func New(svc *tracking.Service, opts *Options) (*Notifier, error) {
	n := &Notifier{told: told{limit: maxUnderway, underway: map[eventKey]map[target]bool{}}}
	if opts != nil {
		n.opts = *opts
	}
	if err := checkContact(n.opts.Contact); err != nil {
		return nil, err
	}
	if n.opts.Timeout < 0 || n.opts.Tries < 0 {
		return nil, errors.New("webpush: Options.Timeout and Tries must not be negative; 0 means the default")
	}
	if n.opts.TTL < 0 || n.opts.TTL > 0 && n.opts.TTL < time.Second || n.opts.TTL > 28*24*time.Hour {
		return nil, errors.New("webpush: Options.TTL must be from 1 s to 28 days, or 0 for the default")
	}
	if n.opts.TTL == 0 {
		n.opts.TTL = 24 * time.Hour
	}
	if n.opts.Timeout == 0 {
		n.opts.Timeout = 10 * time.Second
	}
	if n.opts.Tries == 0 {
		n.opts.Tries = 3
	}
	if n.opts.Title == nil {
		n.opts.Title = title
	}
	if n.opts.Transport == nil {
		n.opts.Transport = egress.Transport(n.opts.Allow)
	}
	if n.opts.Now == nil {
		n.opts.Now = time.Now
	}
	n.client = egress.Client(n.opts.Transport)
	if svc != nil {
		n.Bind(svc)
	}
	return n, nil
}

func title(_ tracking.AppID, kind tracking.NoticeKind) string {
	switch kind {
	case tracking.NoticeAssigned:
		return "New task"
	case tracking.NoticeUnassigned:
		return "A task was taken from you"
	case tracking.NoticeUpdated:
		return "A task has changed"
	case tracking.NoticeCancelled:
		return "A task was cancelled"
	case tracking.NoticeNoted:
		return "A note from the customer"
	case tracking.NoticeReopened:
		return "A task is open again"
	case tracking.NoticeHandedOver:
		return "Tasks were handed over to you"
	case tracking.NoticeRequest:
		return "New trip request"
	case tracking.NoticeRoute:
		return "The order of your stops has changed"
	}
	return ""
}

// Bind says whose drivers are told. Events that come before are tried again later, so it is best
// called before [tracking.Service.Run].
func (n *Notifier) Bind(svc *tracking.Service) { n.svc.Store(svc) }

// Close closes idle connections. The notifier can still be used.
func (n *Notifier) Close() error {
	n.client.CloseIdleConnections()
	return nil
}

// message is a notice on its way to one browser.
type message struct {
	driver   tracking.Driver
	sub      tracking.PushSubscription
	topic    string
	body     []byte // before encryption
	settled  bool
	err      error
	wait     time.Duration // what Retry-After says
	finally  bool          // err is final
	fromHere bool          // err is our own store's
}

// Notify pushes the notices of note.Event, to all browsers at once, and waits for them. Its error
// is a *[tracking.NotifyError] that never shows the URL of a browser, which is all that is needed
// to send to it.
func (n *Notifier) Notify(ctx context.Context, note tracking.Notification) error {
	now := n.opts.Now()
	expires := note.Event.RecordedAt.Add(n.opts.TTL)
	if latest := now.Add(n.opts.TTL); expires.After(latest) { // it was recorded by a clock that was wrong
		expires = latest
	}
	key := eventKey{note.App, note.Event.ID}
	if len(note.Event.Notices) == 0 || !now.Before(expires) {
		n.told.forget(key)
		return nil
	}
	svc := n.svc.Load()
	if svc == nil {
		return &tracking.NotifyError{Err: errNoService}
	}
	svc = svc.ForApp(note.App)
	messages, err := n.messages(ctx, svc, note)
	if err != nil {
		return &tracking.NotifyError{Err: err}
	}
	if note.Attempt <= 1 {
		n.told.forget(key) // of a try before it was given up; now it is for all again
	}
	messages = n.told.without(key, messages)
	if len(messages) > 0 {
		own, err := n.key(ctx)
		if err != nil {
			return &tracking.NotifyError{Err: err}
		}
		ttl := int(expires.Sub(now) / time.Second)
		var wg sync.WaitGroup
		for _, m := range messages {
			wg.Go(func() {
				defer func() { // the service would catch it, but not in this goroutine
					if p := recover(); p != nil {
						m.err = fmt.Errorf("webpush: the Transport panicked: %v", p)
					}
				}()
				n.send(ctx, svc, own, m, ttl, now)
			})
		}
		wg.Wait()
	}
	return n.outcome(key, note.Attempt, messages, expires.Sub(now))
}

// messages are the notices, once for each browser of the driver they are for.
func (n *Notifier) messages(ctx context.Context, svc *tracking.Service, note tracking.Notification) ([]*message,
	error) {
	var list []*message
	nth := map[tracking.DriverID]int{}
	for _, notice := range note.Event.Notices {
		nth[notice.DriverID]++
		d, err := svc.Driver(ctx, notice.DriverID)
		if errors.Is(err, tracking.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err == nil && notice.Person != "" && notice.Person != d.Person {
			continue // and somebody else has the id
		}
		if err != nil {
			return nil, fmt.Errorf("webpush: reading the driver: %w", err)
		}
		if len(d.Push) == 0 {
			continue
		}
		body, err := n.payload(note.App, notice)
		if err != nil {
			return nil, fmt.Errorf("webpush: encoding the payload: %w", err)
		}
		topic := topicOf(note.Event.ID, nth[notice.DriverID])
		for _, sub := range d.Push {
			list = append(list, &message{driver: d, sub: sub, topic: topic, body: body})
		}
	}
	return list, nil
}

func (n *Notifier) payload(app tracking.AppID, notice tracking.Notice) ([]byte, error) {
	p := Payload{
		Kind: notice.Kind, ID: notice.ID, EventID: notice.EventID, TaskID: notice.TaskID, TrackingID: notice.TrackingID,
		Time: notice.Time.UTC().Format("2006-01-02T15:04:05.000Z"), Tag: strconv.FormatInt(notice.ID, 10),
		Title: n.opts.Title(app, notice.Kind),
	}
	b, err := json.Marshal(p)
	if err == nil && len(b) > maxPlaintext {
		p.Title = ""
		b, err = json.Marshal(p)
	}
	return b, err
}

// topicOf is the event's id, if a Topic can be that: at most 32 characters of the base64url
// alphabet (RFC 8030, section 5.4). The second notice of an event to the same driver must not
// replace the first.
func topicOf(event string, nth int) string {
	topic := event
	if nth > 1 {
		topic += "-" + strconv.Itoa(nth)
	}
	foreign := func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", r)
	}
	if topic == "" || len(topic) > 32 || strings.ContainsFunc(topic, foreign) {
		sum := sha256.Sum256([]byte(topic))
		return encode64(sum[:24])
	}
	return topic
}

// send pushes m to its browser.
func (n *Notifier) send(ctx context.Context, svc *tracking.Service, own vapidKey, m *message, ttl int, now time.Time) {
	endpoint, err := url.Parse(string(m.sub.Endpoint))
	keys, keyErr := decodeKeys(m.sub)
	if err != nil || endpoint.Scheme != "https" || endpoint.Host == "" || keyErr != nil {
		n.forget(ctx, svc, m)
		return
	}

	// Encrypt and sign it (RFC 8291, RFC 8292).
	body, err := keys.seal(m.body)
	if err != nil {
		m.err, m.finally = fmt.Errorf("webpush: encrypting: %w", err), true
		return
	}
	authorization, err := own.authorization(origin(endpoint), n.opts.Contact, now)
	if err != nil {
		m.err, m.finally = fmt.Errorf("webpush: signing: %w", err), true
		return
	}

	// Send it (RFC 8030).
	sending, cancel := context.WithTimeout(ctx, n.opts.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(sending, http.MethodPost, string(m.sub.Endpoint), bytes.NewReader(body))
	if err != nil {
		n.forget(ctx, svc, m)
		return
	}
	req.Header.Set("Authorization", authorization)
	req.Header.Set("Content-Encoding", "aes128gcm")
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("TTL", strconv.Itoa(ttl))
	req.Header.Set("Urgency", "high") // it is for a person on the road, whose phone may be saving power
	req.Header.Set("Topic", m.topic)
	req.Header.Set("User-Agent", "tracking-webpush/1")
	res, err := n.client.Do(req)
	if err != nil {
		m.err = fmt.Errorf("webpush: %w", egress.Cause(err))
		return
	}
	egress.Discard(res)

	switch status := res.StatusCode; {
	case status >= 200 && status < 300:
		m.settled = true
	case status == http.StatusNotFound, status == http.StatusGone:
		n.forget(ctx, svc, m)
	default:
		m.err = &StatusError{status}
		m.wait = egress.RetryAfter(res.Header, now, MaxRetryAfter)
		m.finally = status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooEarly &&
			status != http.StatusTooManyRequests
	}
}

// forget makes the service forget a browser that no message will ever reach.
func (n *Notifier) forget(ctx context.Context, svc *tracking.Service, m *message) {
	err := svc.AsDriver(m.driver).UnsubscribePush(ctx, m.driver.ID, m.sub.Endpoint)
	if err != nil && !errors.Is(err, tracking.ErrNotFound) {
		m.err, m.fromHere = fmt.Errorf("webpush: forgetting a browser: %w", err), true
		return
	}
	m.settled = true
}

// outcome is what the messages of one try come to. left is for how long the notice is still of use.
func (n *Notifier) outcome(key eventKey, attempt int, messages []*message, left time.Duration) error {
	failed := &tracking.NotifyError{}
	var errs []error
	var later, fromHere bool
	for _, m := range messages {
		if m.err != nil {
			errs = append(errs, m.err)
			failed.RetryAfter = max(failed.RetryAfter, m.wait)
			later = later || !m.finally
			fromHere = fromHere || m.fromHere
		}
	}
	if len(errs) == 0 && !n.told.refused(key) {
		n.told.forget(key)
		return nil
	}
	failed.Err = errors.Join(errs...)
	if fromHere || later && attempt < n.opts.Tries && failed.RetryAfter < left {
		n.told.keep(key, messages)
		return failed
	}
	if len(errs) == 0 {
		failed.Err = errRefused
	}
	n.told.forget(key)
	failed.Permanent, failed.RetryAfter = true, 0
	return failed
}

var errRefused = errors.New("webpush: a push service refused the message at an earlier try")

// StatusError is the cause of a failed delivery when a push service answered with something that is
// neither 2xx nor 404 nor 410.
type StatusError struct{ Status int }

func (e *StatusError) Error() string {
	return "webpush: the push service answered " + strconv.Itoa(e.Status)
}
