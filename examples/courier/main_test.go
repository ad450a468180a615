package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/internal/commandline"
)

// server stands for the service: it takes what a driver's phone may send and nothing else, and
// knows no rule but that of duplicates.
type server struct {
	t    *testing.T
	fail func(r *http.Request) (status int, header http.Header) // 0: do not

	notBefore time.Time // no trip starts earlier

	mu     sync.Mutex
	calls  []string // path and body, times replaced
	window [2]time.Time
	fixes  map[time.Time]tracking.LngLat
	onDuty bool
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	if s.fail != nil {
		if status, header := s.fail(r); status != 0 {
			for k, v := range header {
				w.Header()[k] = v
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"message":"This went wrong.","success":false,"error":{"code":"code_%d","request_id":"r"}}`,
				status)
			return
		}
	}
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("%s %s with content type %q", r.Method, r.URL, r.Header.Get("Content-Type"))
	}
	if want := "Bearer the-token"; r.URL.Path != "/v1/driver/join" && r.Header.Get("Authorization") != want {
		s.t.Errorf("%s with authorization %q, want %q", r.URL, r.Header.Get("Authorization"), want)
	}
	s.calls = append(s.calls, r.URL.Path+" "+string(body))
	data := any(struct{}{})
	switch r.URL.Path {
	case "/v1/driver/join":
		data = map[string]any{
			"driver": map[string]any{"driver_id": "anna"}, "token": "the-token", "ingest_url": "http://h/ingest/x",
		}
	case "/v1/driver/availability":
		s.onDuty = string(body) == `{"availability":true}`
	case "/v1/driver/trips":
		s.window[0] = s.at(body)
		began := s.window[0]
		if began.Before(s.notBefore) {
			began = s.notBefore
		}
		data = map[string]any{"trip": map[string]any{"_id": "T 1", "started_at": timestamp(began)}}
	case "/v1/driver/fixes":
		data = map[string]any{"outcomes": s.record(body)}
	case "/v1/driver/trips/T 1/stop":
		s.window[1] = s.at(body)
	default:
		s.t.Errorf("call of %s", r.URL)
	}
	if err := json.NewEncoder(w).Encode(map[string]any{"message": "Fine", "success": true, "data": data}); err != nil {
		s.t.Error(err)
	}
}

func (s *server) at(body []byte) time.Time {
	var v struct{ At string }
	if err := json.Unmarshal(body, &v); err != nil {
		s.t.Error(err)
	}
	return s.time(v.At)
}

func (s *server) time(text string) time.Time {
	t, err := time.Parse("2006-01-02T15:04:05.000Z", text)
	if err != nil {
		s.t.Error(err)
	}
	return t
}

func (s *server) record(body []byte) []tracking.FixOutcome {
	var v struct {
		Fixes []struct {
			LngLat []float64
			Time   string
		}
	}
	if err := json.Unmarshal(body, &v); err != nil {
		s.t.Error(err)
	}
	if s.fixes == nil {
		s.fixes = map[time.Time]tracking.LngLat{}
	}
	var outcomes []tracking.FixOutcome
	for _, f := range v.Fixes {
		t, o := s.time(f.Time), tracking.FixLive
		if _, known := s.fixes[t]; known {
			o = tracking.FixDuplicate
		}
		s.fixes[t] = tracking.LngLat{Lng: f.LngLat[0], Lat: f.LngLat[1]}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// start serves s and returns its address.
func (s *server) start() string {
	ts := httptest.NewServer(s)
	s.t.Cleanup(ts.Close)
	return ts.URL
}

// courier runs the program and returns what it printed.
func courier(t *testing.T, args ...string) (out, log string, err error) {
	t.Helper()
	var o, l strings.Builder
	err = run(t.Context(), args, &o, &l)
	return o.String(), l.String(), err
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "drive.gpx")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const driveGPX = `<gpx version="1.0"><trk><trkseg>
<trkpt lat="45.1" lon="14.1"><time>2010-08-05T14:00:00Z</time><speed>3.5</speed><course>90</course></trkpt>
<trkpt lat="45.2" lon="14.2"></trkpt>
<trkpt lat="45.3" lon="14.3"><time>2010-08-05T14:00:10.5Z</time></trkpt>
</trkseg></trk></gpx>`

func TestRun(t *testing.T) {
	s := &server{t: t}
	url := s.start()
	out, log, err := courier(t, "-server", url+"/", "-code", "123456", "-tracking-id", "van 7", "-fast",
		write(t, driveGPX))
	if err != nil {
		t.Fatal(err)
	}
	stamp := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	nonce := regexp.MustCompile(`"nonce":"[A-Z2-7]{26}"`)
	var calls []string
	for _, c := range s.calls {
		calls = append(calls, nonce.ReplaceAllString(stamp.ReplaceAllString(c, "<time>"), `"nonce":"<nonce>"`))
	}
	want := []string{
		`/v1/driver/join {"invite_code":"123456","nonce":"<nonce>"}`,
		`/v1/driver/availability {"availability":true}`,
		`/v1/driver/trips {"tracking_id":"van 7","at":"<time>"}`,
		`/v1/driver/fixes {"fixes":[{"lnglat":[14.1,45.1],"time":"<time>","speed":3.5,"bearing":90},{"lnglat":[14.3,45.3],"time":"<time>"}]}`,
		`/v1/driver/trips/T 1/stop {"at":"<time>"}`,
		`/v1/driver/availability {"availability":false}`,
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if got := s.window[1].Sub(s.window[0]); got != 10500*time.Millisecond {
		t.Errorf("the trip lasts %v, want 10.5s", got)
	}
	for at := range s.fixes {
		if at.Before(s.window[0]) || at.After(s.window[1]) {
			t.Errorf("a fix at %v is outside of the trip, %v", at, s.window)
		}
	}
	wantOut := `drive.gpx holds 3 points; 2 can be played, over 10.5s.
The trace itself makes unusable: 1 without a time.
Joined as driver anna.
Started trip T 1 with tracking id van 7 at <time>.
Stopped it at <time>.
Sent 2 fixes:
  live           2  kept: it was the live position
`
	if diff := cmp.Diff(wantOut, stamp.ReplaceAllString(out, "<time>")); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if log != "" {
		t.Errorf("it complains: %s", log)
	}
}

func TestInvites(t *testing.T) {
	s := &server{t: t}
	url := s.start()
	for _, tt := range []struct{ code, want string }{
		{"012345", `{"invite_code":"012345",`},
		{"Zm9v-_", `{"invite":"Zm9v-_",`},
		{url + "/base/join/Zm9v", `{"invite":"Zm9v",`},
	} {
		inv := parseInvite(tt.code)
		if _, err := newClient(url, 0, io.Discard).join(t.Context(), inv); err != nil {
			t.Fatal(err)
		}
		if got := s.calls[len(s.calls)-1]; !strings.Contains(got, tt.want) {
			t.Errorf("joining with %q sends %s, want %s", tt.code, got, tt.want)
		}
		if strings.HasPrefix(tt.code, "http") && inv.server != url+"/base" {
			t.Errorf("the link %s leads to %q, want %q", tt.code, inv.server, url+"/base")
		}
	}
	if out, _, err := courier(t, "-code", url+"/join/abc", "-fast", write(t, driveGPX)); err != nil || !s.fixesHold(2) {
		t.Errorf("a link alone is not enough to find its server: %v\n%s", err, out)
	}
}

func (s *server) fixesHold(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.fixes) == n
}

func TestStartMoved(t *testing.T) {
	s := &server{t: t, notBefore: time.Now().Add(-5 * time.Second)}
	out, _, err := courier(t, "-server", s.start(), "-code", "123456", "-fast", write(t, driveGPX))
	if want := "The server has it start at " + timestamp(s.notBefore); err != nil || !strings.Contains(out, want) {
		t.Errorf("error %v; it says\n%swant %q", err, out, want)
	}
}

func TestBusyServer(t *testing.T) {
	failed := map[string]int{}
	s := &server{t: t, fail: func(r *http.Request) (int, http.Header) {
		failed[r.URL.Path]++
		if failed[r.URL.Path] == 1 && r.URL.Path == "/v1/driver/fixes" {
			return http.StatusServiceUnavailable, http.Header{"Retry-After": {"0"}}
		}
		return 0, nil
	}}
	out, log, err := courier(t, "-server", s.start(), "-code", "123456", "-fast", write(t, driveGPX))
	if err != nil || !strings.Contains(out, "Sent 2 fixes") {
		t.Errorf("error %v, output:\n%s", err, out)
	}
	if want := "the server says: This went wrong. (code_503); trying again in 500ms\n"; !strings.HasSuffix(log, want) {
		t.Errorf("it says %q, want %q at the end", log, want)
	}
}

func TestErrors(t *testing.T) {
	good := write(t, driveGPX)
	refusing := func(path string, status int) string {
		s := &server{t: t, fail: func(r *http.Request) (int, http.Header) {
			if r.URL.Path == path {
				return status, http.Header{"Retry-After": {"900"}}
			}
			return 0, nil
		}}
		return s.start()
	}
	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<html>")
	}))
	defer html.Close()
	moved := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusMovedPermanently))
	defer moved.Close()
	gone := httptest.NewServer(nil)
	gone.Close()

	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no file there", []string{"-code", "123456", filepath.Join(t.TempDir(), "none.gpx")}, "no such file"},
		{"not a trace", []string{"-code", "123456", write(t, "lat,lon")}, "neither a GPX file nor"},
		{
			"nothing to send",
			[]string{"-code", "123456", write(t, `<gpx><trk><trkseg><trkpt lat="1" lon="1"/></trkseg></trk></gpx>`)},
			"no point of the file has both",
		},
		{
			"a broken clock", []string{"-code", "123456", write(t, strings.Replace(driveGPX, "2010", "1980", 1))},
			"its clock may be broken",
		},
		{
			"wrong code", []string{"-server", refusing("/v1/driver/join", 404), "-code", "123456", good},
			"joining failed: the server says: This went wrong. (code_404)",
		},
		{
			"too many wrong codes", []string{"-server", refusing("/v1/driver/join", 429), "-code", "123456", good},
			"joining failed: the server says: This went wrong. (code_429)",
		},
		{
			"duty", []string{"-server", refusing("/v1/driver/availability", 401), "-code", "123456", good},
			"going on duty failed: ",
		},
		{
			"trip", []string{"-server", refusing("/v1/driver/trips", 409), "-code", "123456", good},
			"starting the trip failed: ",
		},
		{
			"fixes", []string{"-server", refusing("/v1/driver/fixes", 400), "-code", "123456", "-fast", good},
			"sending 2 fixes failed: ",
		},
		{
			"stop", []string{"-server", refusing("/v1/driver/trips/T 1/stop", 404), "-code", "123456", "-fast", good},
			"stopping the trip failed: ",
		},
		{"another server", []string{"-server", html.URL, "-code", "123456", good}, "it is not a tracking server"},
		{"redirect", []string{"-server", moved.URL, "-code", "123456", good}, "301"},
		{
			"nobody listens", []string{"-server", gone.URL, "-patience", "0s", "-code", "123456", good},
			"the server does not answer",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, _, err := courier(t, tt.args...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that says %q; output:\n%s", err, tt.want, out)
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"drive.gpx"}, "-code is missing"},
		{[]string{"-code", "1"}, "exactly one FILE"},
		{[]string{"-code", "1", "a", "b"}, "exactly one FILE"},
		{[]string{"-code", "1", "-patience", "-1s", "a"}, "-patience cannot be negative"},
		{[]string{"-code", "1", "-offline", "-1s", "a"}, "-offline cannot be negative"},
		{
			[]string{"-code", "1", "-as", "foursquare", "a"},
			"-as must be one of traccar8, traccar9, traccar10, osmand, gpslogger, owntracks, overland",
		},
		{[]string{"-code", "1", "-server", "localhost:8080", "a"}, "http://HOST:PORT"},
		{[]string{"-nonsense"}, "flag provided but not defined"},
	} {
		_, log, err := courier(t, tt.args...)
		hint, sentence, _ := strings.Cut(log, "\n")
		if !errors.Is(err, commandline.ErrWrong) || !strings.HasPrefix(sentence, "courier: ") ||
			!strings.Contains(sentence, tt.want) {
			t.Errorf("courier %v: error %v, says:\n%s", tt.args, err, log)
		}
		if !strings.Contains(hint, "courier -h") || strings.Count(log, "\n") != 2 {
			t.Errorf("courier %v says more than how to see the help and one sentence, which comes last:\n%s", tt.args,
				log)
		}
	}
	_, log, err := courier(t, "-h")
	if !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h gives error %v", err)
	}
	for _, name := range []string{
		"-server URL", "-code CODE", "-tracking-id ID", "-as APP", "-fast", "-offline DURATION", "-twice", "-patience",
	} {
		if !strings.Contains(log, name) {
			t.Errorf("-h does not document %s", name)
		}
	}
}
