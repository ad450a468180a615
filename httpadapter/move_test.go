package httpadapter_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// counted counts what is read through it.
type counted struct {
	io.Reader
	n *int
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	*c.n += n
	return n, err
}

// follower is a client that knows state and move, and holds what they say.
type follower struct {
	*viewer
	held   map[string]any
	states int
	moves  int
	bytes  int // on the wire
}

// follow opens a stream that is compressed or is not.
func (s *server) follow(link, encoding string) *follower {
	s.Helper()
	ctx, stop := context.WithTimeout(s.Context(), 2*time.Minute) // only keeps a broken test from hanging
	s.Cleanup(stop)
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+link+"/live", nil)
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", encoding)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { res.Body.Close() })
	f := &follower{}
	body := io.Reader(counted{res.Body, &f.bytes})
	if got := res.Header.Get("Content-Encoding"); (got == "gzip") != (encoding == "gzip") ||
		res.Header.Get("Vary") != "Accept-Encoding" {
		s.Fatalf("asked for %q, Content-Encoding is %q, Vary %q", encoding, got, res.Header.Get("Vary"))
	}
	if encoding == "gzip" {
		if body, err = gzip.NewReader(body); err != nil {
			s.Fatal(err)
		}
	}
	f.viewer = &viewer{s, res, bufio.NewReader(body), stop, ""}
	f.step()
	return f
}

// step takes one event.
func (f *follower) step() {
	f.Helper()
	event, data := f.next()
	var v map[string]any
	if event != "EOF" {
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			f.Fatalf("%s: %v", event, err)
		}
	}
	switch event {
	case "state":
		f.states++
		f.held = v
	case "move":
		f.moves++
		f.held["position"] = v["position"]
		f.held["path"] = append(f.held["path"].([]any), v["path_add"].([]any)...)
		for _, name := range []string{"eta", "stops_before", "phase"} {
			delete(f.held, name)
			if now, ok := v[name]; ok {
				f.held[name] = now
			}
		}
	default:
		f.Fatalf("event %s: %s", event, data)
	}
}

// catchUp takes events until what is held is the state.
func (f *follower) catchUp(state map[string]any) {
	f.Helper()
	for !reflect.DeepEqual(f.held, state) {
		f.step()
	}
}

func (s *server) state(link string) map[string]any {
	s.Helper()
	return at(s.data(s.do("GET", link+"/state", "")), "tracking").(map[string]any)
}

// munich is the recorded drive, from the clock's now on.
func (s *server) munich() []tracking.Fix {
	s.Helper()
	b, err := os.ReadFile(filepath.Join(dataDir(s.T), "barefoot/munich-1hz.json"))
	if err != nil {
		s.Fatal(err)
	}
	var samples []struct{ Point, Time string }
	if err := json.Unmarshal(b, &samples); err != nil {
		s.Fatal(err)
	}
	var fixes []tracking.Fix
	var first time.Time
	for _, sample := range samples {
		at, err := time.Parse("2006-01-02 15:04:05-0700", sample.Time)
		if err != nil {
			s.Fatal(err)
		}
		if first.IsZero() {
			first = at
		}
		f := tracking.Fix{Time: s.clock.Now().Add(at.Sub(first))}
		if _, err := fmt.Sscanf(sample.Point, "POINT(%g %g)", &f.LngLat.Lng, &f.LngLat.Lat); err != nil {
			s.Fatal(err)
		}
		fixes = append(fixes, f)
	}
	return fixes
}

// drives has ravi start a task whose link is returned, and sends his fixes.
func (s *server) drives(drop tracking.LngLat) (link string, send func(...tracking.Fix)) {
	s.Helper()
	token := s.newDriver("ravi")
	task := text(s.data(s.app("POST", "/v1/task/create",
		fmt.Sprintf(`{"type":2,"drop":{"lnglat":[%v,%v],"address":"The customer"}}`, drop.Lng, drop.Lat))), "task",
		"task_id")
	s.data(s.app("POST", "/v1/task/assign", `{"task_id":"`+task+`","driver_id":"ravi"}`))
	s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", ""))
	return s.link(task), func(fixes ...tracking.Fix) {
		s.Helper()
		if _, err := s.svc.RecordFixes(s.Context(), "ravi", fixes); err != nil {
			s.Fatal(err)
		}
	}
}

// What a client holds that applies moves is the state, at each of 15 minutes' fixes; and it costs a
// small part of what states would.
func TestMovesAreTheState(t *testing.T) {
	s := newServer(t)
	drive := s.munich()[:900]
	link, send := s.drives(drive[len(drive)-1].LngLat)
	plain, zipped := s.follow(link, "identity"), s.follow(link, "gzip")
	whole := 0
	for _, fix := range drive {
		s.clock.Advance(fix.Time.Sub(s.clock.Now()))
		send(fix)
		r := s.do("GET", link+"/state", "")
		whole += len(r.body)
		state := at(s.data(r), "tracking").(map[string]any)
		plain.catchUp(state)
		zipped.catchUp(state)
	}
	t.Logf("%d fixes: states alone would be %d bytes; plain %d (%d states, %d moves), compressed %d", len(drive), whole,
		plain.bytes, plain.states, plain.moves, zipped.bytes)
	if plain.moves < 880 || plain.states > 10 {
		t.Errorf("%d states and %d moves for %d fixes", plain.states, plain.moves, len(drive))
	}
	if 10*plain.bytes > whole || 50*zipped.bytes > whole {
		t.Errorf("states alone would be %d bytes; plain it is %d, compressed %d", whole, plain.bytes, zipped.bytes)
	}
}

// What changes the past, or anything but where the driver is, comes as a state; the rest does not.
func TestWhatIsAMove(t *testing.T) {
	s := newServer(t)
	home := tracking.LngLat{Lng: 80.27, Lat: 13.08}
	link, send := s.drives(home)
	f := s.follow(link, "gzip")
	from := s.clock.Now()
	fix := func(second int, lat float64) tracking.Fix {
		return tracking.Fix{
			LngLat: tracking.LngLat{Lng: 80.26, Lat: lat}, Time: from.Add(time.Duration(second) * time.Second),
		}
	}
	for _, c := range []struct {
		second int
		what   string
		do     func()
		moves  bool
	}{
		{10, "the first position", func() { send(fix(10, 13)) }, false},
		{20, "a position", func() { send(fix(20, 13.001)) }, true},
		{50, "several at once", func() { send(fix(30, 13.002), fix(40, 13.003), fix(50, 13.004)) }, true},
		{55, "a late one", func() { send(fix(45, 13.0035)) }, false},
		{60, "a position again", func() { send(fix(60, 13.005)) }, true},
		// which it is by mere time: something else has to wake the reader
		{361, "the position is not live any more", func() {
			if _, err := s.svc.SaveDriver(t.Context(),
				tracking.DriverUpdate{ID: "ravi", Mobile: new("1")}); err != nil {
				t.Fatal(err)
			}
		}, true},
		{400, "the driver is heard of again", func() { send(fix(400, 13.006)) }, true},
		{410, "the same place again", func() { send(fix(410, 13.006)) }, true},
		{800, "at the door", func() { send(tracking.Fix{LngLat: home, Time: from.Add(800 * time.Second)}) }, true},
		{801, "another name", func() {
			if _, err := s.svc.SaveDriver(t.Context(),
				tracking.DriverUpdate{ID: "ravi", Name: new("Asha")}); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		s.clock.Advance(from.Add(time.Duration(c.second) * time.Second).Sub(s.clock.Now()))
		states, moves := f.states, f.moves
		c.do()
		state := s.state(link)
		if reflect.DeepEqual(f.held, state) {
			t.Errorf("%s: nothing has changed", c.what)
		}
		f.catchUp(state)
		if moved, stated := f.moves > moves, f.states > states; moved != c.moves || stated == c.moves {
			t.Errorf("%s: move %v, state %v", c.what, moved, stated)
		}
		if eta, live := state["eta"], at(state, "position", "live"); (eta != nil) != (live == true) {
			t.Errorf("%s: live %v, expected %v", c.what, live, eta)
		}
	}
}

// Who comes later, or is slow, is given the whole state and then the moves after it.
func TestMovesForLatecomers(t *testing.T) {
	s := newServer(t)
	link, send := s.drives(tracking.LngLat{Lng: 80.27, Lat: 13.08})
	var all []*follower
	for i := range 40 {
		s.clock.Advance(time.Second)
		send(tracking.Fix{LngLat: tracking.LngLat{Lng: 80.26, Lat: 13 + float64(i)/1e4}, Time: s.clock.Now()})
		if i%10 == 5 {
			all = append(all, s.follow(link, []string{"gzip", "identity"}[len(all)%2]))
		}
		if i%3 == 0 { // the others have it waiting, as far as it was not passed over
			for _, f := range all {
				f.catchUp(s.state(link))
			}
		}
	}
	s.data(s.app("POST", "/v1/task/cancel",
		`{"task_id":"`+text(s.data(s.app("GET", "/v1/task/list", "")), "task_list", 0, "task_id")+`"}`))
	for i, f := range all {
		f.catchUp(s.state(link))
		if event, _ := f.next(); event != "end" {
			t.Errorf("follower %d: %s", i, event)
		}
		if _, err := f.r.ReadByte(); err != io.EOF { // of a gzip stream that is whole: length and checksum are right
			t.Errorf("follower %d: the stream ends with %v", i, err)
		}
	}
}

// The state is compressed for those who take it, and says that it depends.
func TestStateCompressed(t *testing.T) {
	s := newServer(t)
	link := s.link(s.newTask(""))
	plain, zipped := s.do("GET", link+"/state", "", "Accept-Encoding: identity"), s.do("GET", link+"/state", "",
		"Accept-Encoding: gzip")
	if plain.header.Get("Content-Encoding") != "" || plain.header.Get("Vary") != "Accept-Encoding" ||
		zipped.header.Get("Content-Encoding") != "gzip" || zipped.header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("plain: %v\ncompressed: %v", plain.header, zipped.header)
	}
	z, err := gzip.NewReader(strings.NewReader(zipped.body))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(z); err != nil || string(body) != plain.body ||
		zipped.header.Get("Content-Type") != plain.header.Get("Content-Type") {
		t.Errorf("%s, %v", body, err)
	}
	if r := s.do("HEAD", link+"/state", "", "Accept-Encoding: gzip"); r.body != "" ||
		r.header.Get("Content-Encoding") != "gzip" ||
		r.header.Get("Content-Length") != zipped.header.Get("Content-Length") {
		t.Errorf("HEAD: %v", r.header)
	}
}
