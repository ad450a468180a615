package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/courier/internal/trace"
)

// What a phone app learns of its points.
const (
	taken tracking.FixOutcome = "taken"
	lost  tracking.FixOutcome = "lost"
)

// app is how a phone app sends.
type app struct {
	name       string
	resolution time.Duration // of the times it sends, which it cuts off
	batch      int           // points in one message
	timeout    time.Duration // for one message
	// before a message is sent again; doubled each time up to most
	wait, most time.Duration
	// after which a message is lost; 0: it stays at the head of the queue
	attempts int
	accept   func(status int, body []byte) error               // nil if that is the answer it wants
	messages func(p *gpsPhone, points []trace.Point) []message // for the first of points, at most batch
	// what it sends when it starts, without a position; nil: nothing
	hello   func(p *gpsPhone) []message
	order   func(n int, swap func(i, j int)) // nil: oldest first
	session bool                             // it sends all of its points again when it is stopped
}

// message is one request of an app.
type message struct {
	method, url string
	header      http.Header
	body        string
}

// apps are those that courier can be. What they send is in dialect.go.
func apps() []app {
	return []app{
		{
			name: "traccar8", resolution: time.Second, batch: 1, timeout: 15 * time.Second, wait: 30 * time.Second,
			most: 30 * time.Second, accept: below400, messages: traccar8,
		},
		{
			name: "traccar9", resolution: time.Millisecond, batch: 1, timeout: time.Minute, wait: time.Second,
			most: time.Second, accept: success, messages: traccar9,
		},
		{
			name: "traccar10", resolution: time.Second, batch: 1, timeout: time.Minute, wait: 5 * time.Second,
			most: 5 * time.Minute, accept: success, messages: traccar10, hello: traccar10Hello,
		},
		{
			name: "osmand", resolution: time.Millisecond, batch: 1, timeout: 15 * time.Second, accept: success,
			messages: osmand,
		},
		{
			name: "gpslogger", resolution: time.Second, batch: 1, timeout: time.Minute, wait: 30 * time.Second,
			most: 5 * time.Hour, attempts: 3, accept: success, messages: gpslogger, order: rand.Shuffle, session: true,
		},
		{
			name: "owntracks", resolution: time.Second, batch: 1, timeout: time.Minute, wait: time.Second,
			most: 2 * time.Minute, accept: jsonArray, messages: ownTracks, hello: ownTracksHello,
		},
		{
			name: "overland", resolution: time.Second, batch: 200, timeout: time.Minute, wait: 30 * time.Second,
			most: 30 * time.Second, accept: resultOK, messages: overland,
		},
	}
}

func appNames() []string {
	var names []string
	for _, a := range apps() {
		names = append(names, a.name)
	}
	return names
}

func below400(status int, _ []byte) error { return unless(status < 400) }
func success(status int, _ []byte) error  { return unless(status >= 200 && status < 300) }

func jsonArray(status int, body []byte) error {
	var list []json.RawMessage
	return unless(status == http.StatusOK && json.Unmarshal(body, &list) == nil && list != nil)
}

func resultOK(status int, body []byte) error {
	var answer struct{ Result string }
	return unless(status == http.StatusOK && json.Unmarshal(body, &answer) == nil && answer.Result == "ok")
}

var errNotTaken = errors.New("that is not the answer of a server that has taken it")

func unless(ok bool) error {
	if !ok {
		return errNotTaken
	}
	return nil
}

// gpsPhone is a phone with a GPS app beside the driver app, which starts and stops the trip.
type gpsPhone struct {
	*appPhone
	app       app
	url       string // the driver's ingest address
	device    string // what the app calls itself
	templates map[string]string
	sent      []trace.Point // of the session
}

// newGPSPhone sets up the app as the server says.
func newGPSPhone(ctx context.Context, own *appPhone, name string) (*gpsPhone, error) {
	set, err := own.phoneApps(ctx)
	if err != nil {
		return nil, err
	}
	p := &gpsPhone{appPhone: own, url: set.IngestURL, device: path.Base(set.IngestURL), templates: map[string]string{}}
	for _, a := range set.Apps {
		p.templates[strings.ToLower(a.Name)] = a.Template
	}
	all := apps()
	p.app = all[slices.IndexFunc(all, func(a app) bool { return a.name == name })]
	if (name == "osmand" || name == "gpslogger") && p.templates[name] == "" {
		return nil, fmt.Errorf("the server has no template for %s", name)
	}
	return p, nil
}

// start starts the trip no later than the app says the first point was.
func (p *gpsPhone) start(ctx context.Context, at time.Time) error {
	if err := p.appPhone.start(ctx, at.Truncate(p.app.resolution)); err != nil {
		return err
	}
	if p.app.hello == nil {
		return nil
	}
	for _, m := range p.app.hello(p) {
		if _, err := p.deliver(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (p *gpsPhone) send(ctx context.Context, points []trace.Point) ([]tracking.FixOutcome, error) {
	p.sent = append(p.sent, points...)
	return p.transmit(ctx, points)
}

func (p *gpsPhone) finish(ctx context.Context) ([]tracking.FixOutcome, error) {
	if !p.app.session {
		return nil, nil
	}
	return p.transmit(ctx, p.sent)
}

// transmit sends points in the app's own order and parts.
func (p *gpsPhone) transmit(ctx context.Context, points []trace.Point) ([]tracking.FixOutcome, error) {
	points = slices.Clone(points)
	if p.app.order != nil {
		p.app.order(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	}
	outcomes := make([]tracking.FixOutcome, 0, len(points))
	for len(points) > 0 {
		n := min(len(points), p.app.batch)
		for _, m := range p.app.messages(p, points) {
			word, err := p.deliver(ctx, m)
			if err != nil {
				return nil, fmt.Errorf("sending as %s failed: %w", p.app.name, err)
			}
			outcomes = append(outcomes, slices.Repeat([]tracking.FixOutcome{word}, n)...)
		}
		points = points[n:]
	}
	return outcomes, nil
}

// deliver sends a message until it is taken, or as often as the app does. No app waits for a server
// longer than our patience lasts.
func (p *gpsPhone) deliver(ctx context.Context, m message) (tracking.FixOutcome, error) {
	began, wait := time.Now(), p.app.wait
	for n := 1; ; n++ {
		err := p.try(ctx, m)
		switch {
		case err == nil:
			return taken, nil
		case ctx.Err() != nil:
			return "", ctx.Err()
		case n == p.app.attempts:
			return lost, nil
		case p.app.attempts == 0 && time.Since(began)+wait > p.patience:
			return "", err
		}
		if n == 1 {
			fmt.Fprintf(p.log, "%v; %s sends it again\n", err, p.app.name)
		}
		if err := sleep(ctx, wait); err != nil {
			return "", err
		}
		wait = min(2*wait, p.app.most)
	}
}

// try sends a message once.
func (p *gpsPhone) try(ctx context.Context, m message) error {
	ctx, cancel := context.WithTimeout(ctx, p.app.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, m.method, m.url, strings.NewReader(m.body))
	if err != nil {
		return errors.New("the address for phone apps cannot be requested") // and is not shown: it holds the token
	}
	for name, values := range m.header {
		req.Header[name] = values
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return errors.New("the server does not answer")
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return errors.New("the server's answer broke off")
	}
	if err := p.app.accept(resp.StatusCode, body); err != nil {
		return fmt.Errorf("the server answers %s: %w", resp.Status, err)
	}
	return nil
}
