package httpadapter_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// gzipped is a body as some phones send it.
func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPhoneAppsNobodyNamed: what an app sends that we do not know by name moves the driver like any
// other.
func TestPhoneAppsNobodyNamed(t *testing.T) {
	s := newServer(t)
	unix := s.clock.Now().Unix()
	iso := s.clock.Now().Format("2006-01-02T15:04:05Z")
	batch := fmt.Sprintf(`{"locations":[{"coords":{"latitude":13.0,"longitude":80.25,"accuracy":5},"timestamp":%q}]}`,
		iso)
	for i, c := range []struct{ app, body, encoding, answer string }{
		{"root locations", batch, "", `{"result":"ok"}`},
		{"gzip", gzipped(t, batch), "gzip", `{"result":"ok"}`},
		{"GZIP", gzipped(t, batch), "GZIP", `{"result":"ok"}`},
		{"x-gzip", gzipped(t, batch), "x-gzip", `{"result":"ok"}`},
		{
			"a feature",
			fmt.Sprintf(`{"type":"Feature","geometry":{"type":"Point","coordinates":[80.25,13.0]},"properties":{"time":%q}}`, iso),
			"", `{"result":"ok"}`,
		},
		{
			"Colota",
			fmt.Sprintf(`{"_type":"location","lat":13.0,"lon":80.25,"acc":12,"vel":1.4,"batt":85,"bs":2,"tst":%d,"bear":180.5}`, unix),
			"", `[]`,
		},
		{"decimal commas", fmt.Sprintf(`lat=13,0&lon=80,25&timestamp=%d`, unix), "", ""},
		{"microseconds", fmt.Sprintf(`[{"lat":13.0,"lon":80.25,"timestamp":%d000000}]`, unix), "", ""},
		{"nanoseconds", fmt.Sprintf(`[{"lat":13.0,"lon":80.25,"timestamp":%d000000000}]`, unix), "", ""},
	} {
		id := fmt.Sprintf("d%d", i)
		_, ingest := s.phone(id)
		r := s.do("POST", ingest, c.body, "Content-Type: application/json", "Content-Encoding: "+c.encoding)
		if r.status != 200 || r.body != c.answer {
			t.Errorf("%s: %d %q, want %q", c.app, r.status, r.body, c.answer)
		}
		d := s.data(s.app("GET", "/v1/users/driver?driver_id="+id, ""))
		if at(d, "driver", "lnglat", 0) != 80.25 || at(d, "driver", "lnglat", 1) != 13.0 ||
			at(d, "driver", "unread") != nil {
			t.Errorf("%s: %v", c.app, d)
		}
	}
	_, ingest := s.phone("bomb")
	s.check("a bomb", s.do("POST", ingest, gzipped(t, strings.Repeat(" ", 16<<20)), "Content-Encoding: gzip"), 413, "")
	s.check("/v1 takes nothing packed",
		s.app("POST", "/v1/task/create", gzipped(t, `{"type":2,"drop":{"address":"x"}}`), "Content-Encoding: gzip"),
		415, "")
}

// TestUnreadIsNoticed: what cannot be read stands on the driver's record until something is read,
// and once an hour in the log, without its content.
func TestUnreadIsNoticed(t *testing.T) {
	s := newServer(t)
	_, ingest := s.phone("ravi")
	send := func(body string) {
		t.Helper()
		if r := s.do("POST", ingest, body); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	unread := func() any {
		t.Helper()
		return at(s.data(s.app("GET", "/v1/users/driver?driver_id=ravi", "")), "driver", "unread")
	}
	lines := func() (list []string) {
		for line := range strings.Lines(s.log.String()) {
			if strings.Contains(line, "cannot be read") {
				list = append(list, line)
			}
		}
		return list
	}

	for _, known := range []string{
		`{"_type":"waypoints","waypoints":[]}`, `{"_type":"lwt","tst":1}`, "", "id=1&batt=50", `{"locations":[]}`,
	} {
		send(known)
	}
	if unread() != nil || len(lines()) != 0 {
		t.Errorf("signs of life: %v unread, %q", unread(), lines())
	}
	send("s3cret=nonsense")
	send(`{"s3cret":[1,2]}`)
	send(`[{"lat":91,"lon":80,"timestamp":1},{"lat":92,"lon":80,"timestamp":1}]`)
	if unread() != 4.0 {
		t.Errorf("%v unread, want 4", unread())
	}
	got := lines()
	if len(got) != 1 || !strings.Contains(got[0], "bytes=15") || !strings.Contains(got[0], "dialect=unknown") ||
		!strings.Contains(got[0], "driver_id=ravi") {
		t.Fatalf("the log says %q", got)
	}
	if token := ingest[strings.LastIndex(ingest, "/")+1:]; strings.Contains(got[0], "s3cret") ||
		strings.Contains(got[0], token) {
		t.Errorf("the log shows what was sent: %s", got[0])
	}

	s.clock.Advance(time.Hour)
	send(`{"_type":"encrypted","data":"AAAA"}`)
	if got := lines(); len(got) != 2 || !strings.Contains(got[1], "encrypted") || unread() != 5.0 {
		t.Errorf("%v unread, the log says %q", unread(), got)
	}
	s.clock.Advance(-48 * time.Hour) // a line from the future silences nobody
	send("nonsense")
	if got := lines(); len(got) != 3 {
		t.Errorf("the log says %q", got)
	}

	send(fmt.Sprintf(`[{"lat":13,"lon":80,"timestamp":%d}]`, s.clock.Now().Unix()))
	if unread() != nil {
		t.Errorf("%v unread after a fix", unread())
	}
}

// FuzzPhone: whatever a phone sends, it is taken, or it is too large.
func FuzzPhone(f *testing.F) {
	h, driver, _ := fuzzed(f, "POST")
	r := httptest.NewRequest("GET", "/v1/driver/phone", nil)
	r.Header.Set("Authorization", "Bearer "+driver)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var phone struct {
		Data struct {
			URL string `json:"ingest_url"`
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &phone); err != nil {
		f.Fatal(err)
	}
	target := strings.TrimPrefix(phone.Data.URL, "http://example.com")
	f.Add([]byte(`{"locations":[{"coords":{"latitude":13,"longitude":80},"timestamp":1377177267}]}`), "a=1",
		"application/json", "gzip")
	f.Add([]byte("\x1f\x8b\x08\x00\x00"), "lat=1,5&lon=%zz;", "text/plain", "deflate")
	f.Add([]byte(`{"_type":"location","lat":1,"lon":2,"tst":1e300}`), "", "", "")
	f.Fuzz(func(t *testing.T, body []byte, query, contentType, encoding string) {
		r := httptest.NewRequest("POST", target, bytes.NewReader(body))
		r.URL.RawQuery = query
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Content-Encoding", encoding)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 && w.Code != 413 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
