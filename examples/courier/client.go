package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/courier/internal/trace"
)

// client calls the routes of the driver.
type client struct {
	http     *http.Client
	server   string
	patience time.Duration
	log      io.Writer // says when the server keeps us waiting
	token    string    // of the app; "" before joining
}

// phoneApps is how phone apps are set up for the driver.
type phoneApps struct {
	IngestURL string `json:"ingest_url"`
	Apps      []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	} `json:"apps"`
}

// phoneApps asks how to set up phone apps.
func (c *client) phoneApps(ctx context.Context) (phoneApps, error) {
	var data phoneApps
	if err := c.call(ctx, http.MethodGet, "/v1/driver/phone", nil, &data); err != nil {
		return data, fmt.Errorf("asking for the address of phone apps failed: %w", err)
	}
	if data.IngestURL == "" {
		return data, errors.New("the server gave no address for phone apps")
	}
	return data, nil
}

func newClient(server string, patience time.Duration, log io.Writer) *client {
	return &client{
		http: &http.Client{
			Timeout: 30 * time.Second,
			// A redirected POST would arrive as a GET.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		server:   strings.TrimRight(server, "/"),
		patience: patience,
		log:      log,
	}
}

// invite is what a driver was given to join with: a code, or the token of a link.
type invite struct {
	code, token string
	server      string // that the link leads to
}

func parseInvite(text string) invite {
	text = strings.TrimSpace(text)
	if base, token, ok := strings.Cut(text, "/join/"); ok {
		return invite{token: token, server: base}
	}
	if strings.Trim(text, "0123456789") == "" {
		return invite{code: text}
	}
	return invite{token: text}
}

// join makes this client the driver's phone and returns the driver's id.
func (c *client) join(ctx context.Context, inv invite) (string, error) {
	request := struct {
		Code  string `json:"invite_code,omitempty"`
		Token string `json:"invite,omitempty"`
		Nonce string `json:"nonce"` // lets a lost answer be asked for again
	}{inv.code, inv.token, rand.Text()}
	var data struct {
		Driver struct {
			ID string `json:"driver_id"`
		} `json:"driver"`
		Token string `json:"token"`
	}
	if err := c.post(ctx, "/v1/driver/join", request, &data); err != nil {
		return "", fmt.Errorf("joining failed: %w", err)
	}
	if data.Token == "" {
		return "", errors.New("joining failed: the server gave no token")
	}
	c.token = data.Token
	return data.Driver.ID, nil
}

func (c *client) setAvailability(ctx context.Context, available bool) error {
	request := struct {
		Availability bool `json:"availability"`
	}{available}
	if err := c.post(ctx, "/v1/driver/availability", request, nil); err != nil {
		word := "off"
		if available {
			word = "on"
		}
		return fmt.Errorf("going %s duty failed: %w", word, err)
	}
	return nil
}

// appPhone is the driver app of the service itself.
type appPhone struct {
	*client
	trackingID string
	out        io.Writer
	trip       string
}

func (p *appPhone) start(ctx context.Context, at time.Time) error {
	request := struct {
		TrackingID string `json:"tracking_id"`
		At         string `json:"at"`
	}{p.trackingID, timestamp(at)}
	var data struct {
		Trip struct {
			ID        string `json:"_id"`
			StartedAt string `json:"started_at"`
		} `json:"trip"`
	}
	if err := p.post(ctx, "/v1/driver/trips", request, &data); err != nil {
		return fmt.Errorf("starting the trip failed: %w", err)
	}
	p.trip = data.Trip.ID
	fmt.Fprintf(p.out, "Started trip %s with tracking id %s at %s.\n", p.trip, p.trackingID, timestamp(at))
	if began := data.Trip.StartedAt; began > timestamp(at) { // the format sorts by time
		fmt.Fprintf(p.out,
			"The server has it start at %s, when the trip before it with that tracking id ended; what lies before is not in its path.\n", began)
	}
	return nil
}

// send posts points as the driver app does, and returns what became of each.
func (p *appPhone) send(ctx context.Context, points []trace.Point) ([]tracking.FixOutcome, error) {
	type fix struct {
		LngLat  [2]float64 `json:"lnglat"`
		Time    string     `json:"time"`
		Speed   *float64   `json:"speed,omitempty"`
		Bearing *float64   `json:"bearing,omitempty"`
	}
	known := func(r tracking.Reading) *float64 {
		if !r.Known {
			return nil
		}
		return &r.Value
	}
	request := struct {
		Fixes []fix `json:"fixes"`
	}{make([]fix, len(points))}
	for i, pt := range points {
		request.Fixes[i] = fix{
			[2]float64{pt.LngLat.Lng, pt.LngLat.Lat}, timestamp(pt.Time), known(pt.Speed), known(pt.Bearing),
		}
	}
	var data struct {
		Outcomes []tracking.FixOutcome `json:"outcomes"`
	}
	if err := p.post(ctx, "/v1/driver/fixes", request, &data); err != nil {
		return nil, fmt.Errorf("sending %s failed: %w", plural(len(points), "fix", "fixes"), err)
	}
	return data.Outcomes, nil
}

func (p *appPhone) stop(ctx context.Context, at time.Time) error {
	request := struct {
		At string `json:"at"`
	}{timestamp(at)}
	if err := p.post(ctx, "/v1/driver/trips/"+url.PathEscape(p.trip)+"/stop", request, nil); err != nil {
		return fmt.Errorf("stopping the trip failed: %w", err)
	}
	fmt.Fprintf(p.out, "Stopped it at %s.\n", timestamp(at))
	return nil
}

// finish has nothing to do: every batch has been answered.
func (p *appPhone) finish(context.Context) ([]tracking.FixOutcome, error) { return nil, nil }

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

const (
	firstWait = 500 * time.Millisecond // before a call is tried again; doubled each time
	maxWait   = 15 * time.Second
	maxAnswer = 4 << 20 // bytes
)

// post makes a call with a body; see call.
func (c *client) post(ctx context.Context, path string, request, data any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, path, body, data)
}

// call makes a call and reads data of its answer into data, unless that is nil. A call that may
// succeed later is made again until patience ends: all the calls of a driver may be repeated.
func (c *client) call(ctx context.Context, method, path string, body []byte, data any) error {
	began, wait := time.Now(), firstWait
	for {
		after, err := c.once(ctx, method, path, body, data)
		if err == nil || after < 0 || ctx.Err() != nil {
			return err
		}
		pause := max(after, wait)
		if time.Since(began)+pause > c.patience {
			return err
		}
		fmt.Fprintf(c.log, "%v; trying again in %v\n", err, pause)
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		wait = min(2*wait, maxWait)
	}
}

// once makes a call. With an error comes how long to wait at least before it is made again;
// negative: it will not help.
func (c *client) once(ctx context.Context, method, path string, body []byte, data any) (time.Duration, error) {
	const never = -1
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return never, err
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, fmt.Errorf("the server does not answer: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, fmt.Errorf("the server's answer broke off: %w", err)
	}
	var answer struct {
		Message string `json:"message"`
		Success bool   `json:"success"`
		Error   struct {
			Code  string `json:"code"`
			Field string `json:"field"`
		} `json:"error"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return busy(resp), fmt.Errorf("%s answered %s and no JSON: it is not a tracking server", c.server, resp.Status)
	}
	if resp.StatusCode != http.StatusOK || !answer.Success {
		detail := strconv.Itoa(resp.StatusCode)
		if answer.Error.Code != "" {
			detail = answer.Error.Code
		}
		if answer.Error.Field != "" {
			detail += ", field " + answer.Error.Field
		}
		return busy(resp), fmt.Errorf("the server says: %s (%s)", answer.Message, detail)
	}
	if data == nil {
		return 0, nil
	}
	if err := json.Unmarshal(answer.Data, data); err != nil {
		return never, fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	return 0, nil
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// busy says how long a server that cannot answer now asks to be left alone; negative when its
// answer is final.
func busy(resp *http.Response) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < 500 {
		return -1
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > 1e6 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
