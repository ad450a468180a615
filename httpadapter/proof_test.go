package httpadapter_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// pictureOf is a small PNG, another one for each n.
func pictureOf(n int) string {
	m := image.NewGray(image.Rect(0, 0, 2, 2))
	m.Set(0, 0, color.Gray{uint8(n)})
	var b bytes.Buffer
	png.Encode(&b, m)
	return b.String()
}

// cameraPhoto is a JPEG as a camera makes it, with a place in it, lying on its side.
func cameraPhoto() string {
	var b bytes.Buffer
	jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 16)), nil)
	const exif = "Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01" +
		"\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"
	segment := func(mark byte, payload string) string {
		return string([]byte{0xff, mark, 0, byte(len(payload) + 2)}) + payload
	}
	plain := b.String()
	return plain[:2] + segment(0xe1, exif+"GPS 80.27 13.08") + segment(0xfe, "<script>made by a camera") + plain[2:] +
		"\x00\x00\x00\x18ftypmp42 a film"
}

// work is a task under way with a driver.
type work struct {
	*server
	task, token string
}

func newWork(t *testing.T, extra string, setups ...setup) work {
	t.Helper()
	return workOn(newServer(t, setups...), extra)
}

func workOn(s *server, extra string) work {
	s.Helper()
	w := work{s, s.newTask(extra), s.newDriver("ravi")}
	s.data(s.app("POST", "/v1/task/assign", `{"task_id":"`+w.task+`","driver_id":"ravi"}`))
	s.data(w.do("start", `{"lnglat":[80.2,13]}`))
	return w
}

// do makes a step of the driver's.
func (w work) do(step, body string) reply {
	w.Helper()
	return w.asDriver(w.token, "POST", "/v1/driver/tasks/"+w.task+"/"+step, body)
}

// give sends a picture; headers are "Name: value".
func (w work) give(kind, picture string, headers ...string) reply {
	w.Helper()
	return w.server.do("PUT", "/v1/driver/tasks/"+w.task+"/proof/"+kind, picture,
		append(headers, "Authorization: Bearer "+w.token)...)
}

func (w work) given() any {
	w.Helper()
	return at(w.data(w.app("GET", "/v1/task?task_id="+w.task, "")), "task", "proofs")
}

// A delivery that asks for everything, by HTTP: what lacks, what is given, and where each of it is
// shown.
func TestProofOfDelivery(t *testing.T) {
	w := newWork(t, `,"proof":["pin","name","photo"]`, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.Site.ShowProof = true
	})
	created := w.data(w.app("GET", "/v1/task/list", ""))
	pin := text(created, "task_list", 0, "pin")
	if len(pin) != 4 || fmt.Sprint(at(created, "task_list", 0, "proof")) != "[photo name pin]" {
		t.Fatalf("created: %v", created)
	}
	link := w.link(w.task)
	state := func() any { return at(w.data(w.server.do("GET", link+"/state", "")), "tracking") }
	if at(state(), "pin") != nil {
		t.Errorf("far away the link shows %v", state())
	}
	w.data(w.do("arrive", ""))
	if text(state(), "pin") != pin {
		t.Errorf("at the door the link shows %v", state())
	}

	// What lacks is named.
	wrong := "0000"
	if pin == wrong {
		wrong = "0001"
	}
	w.check("nothing given", w.do("complete", ""), 409, "proof")
	photo := w.data(w.give("photo", cameraPhoto(), "Content-Type: image/jpeg"))
	w.check("no name", w.do("complete", `{"pin":"`+pin+`"}`), 409, "received_by")
	w.check("no PIN", w.do("complete", `{"received_by":"Priya"}`), 409, "pin")
	r := w.do("complete", `{"received_by":"Priya","pin":"`+wrong+`"}`)
	w.check("a wrong PIN", r, 409, "pin")
	if n := at(w.data(w.app("GET", "/v1/task?task_id="+w.task, "")), "task", "wrong_pins"); n != 1.0 {
		t.Errorf("%v wrong PINs are counted", n)
	}
	w.data(w.do("complete", `{"received_by":"Priya","pin":"`+pin+`","note":"blue door","lnglat":[80.27,13.08]}`))

	// What the application sees.
	task := at(w.data(w.app("GET", "/v1/task?task_id="+w.task, "")), "task")
	if text(task, "received_by") != "Priya" || text(task, "driver_note") != "blue door" || text(task, "pin") != pin ||
		text(task, "completed_lnglat", "source") != "driver" || at(task, "completed_lnglat", "off_by") != 0.0 ||
		fmt.Sprint(at(task, "completed_lnglat", "lnglat")) != "[80.27 13.08]" {
		t.Errorf("the task: %v", task)
	}
	proof := at(task, "proofs", 0)
	if text(proof, "kind") != "photo" || text(proof, "at") != "2026-03-14T09:00:00.000Z" ||
		text(proof, "id") != text(photo, "proof", "id") || text(photo, "task", "proofs", 0, "id") != text(proof, "id") {
		t.Errorf("the proof: %v, when it was given: %v", proof, photo)
	}
	id := text(proof, "id")
	file := w.app("GET", "/v1/task/proof?task_id="+w.task+"&id="+id, "")
	for name, want := range map[string]string{
		"Content-Type": "image/jpeg", "Content-Disposition": "attachment; filename=photo-" + id + ".jpeg",
		"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox",
		"Cache-Control": "no-store", "Content-Length": fmt.Sprint(len(file.body)),
	} {
		if got := file.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, err := jpeg.Decode(strings.NewReader(file.body)); err != nil || file.status != 200 ||
		!strings.Contains(file.body, "\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06") {
		t.Errorf("the photo: %d, %d bytes, error %v", file.status, len(file.body), err)
	}
	for _, word := range []string{"GPS", "script", "camera", "film"} {
		if strings.Contains(file.body, word) {
			t.Errorf("the photo has %q in it", word)
		}
	}
	if head := w.app("HEAD", "/v1/task/proof?task_id="+w.task+"&id="+id, ""); head.status != 200 || head.body != "" {
		t.Errorf("HEAD: %d", head.status)
	}
	if own := w.asDriver(w.token, "GET", "/v1/driver/proof?task_id="+w.task+"&id="+id, ""); own.body != file.body {
		t.Errorf("the driver gets %d, %d bytes", own.status, len(own.body))
	}

	// What the customer sees, and the driver of what is over.
	if v := state(); text(v, "received_by") != "Priya" || fmt.Sprint(at(v, "photos")) != "["+id+"]" ||
		at(v, "pin") != nil || strings.Contains(fmt.Sprint(v), "blue door") {
		t.Errorf("the link shows %v", v)
	}
	shown := w.server.do("GET", link+"/proof/"+id, "")
	if shown.body != file.body || !strings.HasPrefix(shown.header.Get("Content-Disposition"), "inline") ||
		shown.header.Get("X-Robots-Tag") != "noindex, nofollow" || shown.header.Get("Cache-Control") != "no-store" ||
		shown.header.Get("Content-Security-Policy") != "default-src 'none'; sandbox" ||
		shown.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the link's photo: %d %v", shown.status, shown.header)
	}
	own := at(w.data(w.asDriver(w.token, "GET", "/v1/driver/tasks", "")), "task_list", 0)
	if text(own, "received_by") != "" || text(own, "driver_note") != "blue door" {
		t.Errorf("the driver sees of it %v", own)
	}
}

// A PIN is in nothing that its driver is sent, in no event and no webhook; and what the driver
// notes is on no link.
func TestPINStaysWhereItBelongs(t *testing.T) {
	w := newWork(t, `,"proof":["pin","photo"]`, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.Site.ShowProof = true
	})
	pin := `"` + text(w.data(w.app("GET", "/v1/task/list", "")), "task_list", 0, "pin") + `"`
	wrong := `"0000"`
	if pin == wrong {
		wrong = `"0001"`
	}
	w.data(w.app("POST", "/v1/task/update", `{"task_id":"`+w.task+`","notes":"ring"}`))
	seen := map[string]reply{
		"photo": w.give("photo", pictureOf(1)), "tasks": w.asDriver(w.token, "GET", "/v1/driver/tasks", ""),
		"start": w.do("start", ""), "notices": w.asDriver(w.token, "GET", "/v1/driver/notifications", ""),
		"lost notices": w.asDriver(w.token, "GET", "/v1/driver/notifications?after=999", ""),
		"pick up":      w.do("pickup", ""), "arrive": w.do("arrive", ""), "wrong": w.do("complete", `{"pin":`+wrong+`}`),
	}
	seen["complete"] = w.do("complete", `{"pin":`+pin+`,"note":"canary note"}`)
	seen["again"] = w.do("complete", `{"pin":`+pin+`}`)
	seen["tasks at the end"] = w.asDriver(w.token, "GET", "/v1/driver/tasks", "")
	seen["events"] = w.app("GET", "/v1/events", "")
	for what, r := range seen {
		if strings.Contains(r.body, pin) || strings.Contains(r.body, `"pin":"`) ||
			strings.Contains(r.body, "wrong_pins") {
			t.Errorf("%s: %s", what, r.body)
		}
	}
	events, _, err := w.svc.Events(t.Context(), tracking.EventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		filled, err := w.h.Fill(t.Context(), tracking.Notification{App: "a", Event: e})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(filled)
		if err != nil || strings.Contains(string(b), pin) || strings.Contains(string(b), "wrong_pins") {
			t.Errorf("what a webhook is told of %s: %s, error %v", e.Type, b, err)
		}
	}
	link := w.link(w.task)
	for _, path := range []string{link, link + "/state"} {
		if r := w.server.do("GET", path, ""); strings.Contains(r.body, "canary note") || strings.Contains(r.body, pin) {
			t.Errorf("%s: %s", path, r.body)
		}
	}
}

// What is no picture, or too much of one, is refused, and nothing of it is kept.
func TestProofRefuses(t *testing.T) {
	w := newWork(t, "")
	good, html := pictureOf(1), "<!DOCTYPE html>"+cameraPhoto()
	const svg, gif = `<svg xmlns="http://www.w3.org/2000/svg"/>`, "GIF89a\x01\x00\x01\x00\x00\x00\x00;"
	for what, c := range map[string]struct {
		kind, body string
		headers    []string
		status     int
		field      string
	}{
		"another kind":       {"name", good, nil, 400, "kind"},
		"PIN as a file":      {"pin", good, nil, 400, "kind"},
		"kind in capitals":   {"Photo", good, nil, 400, "kind"},
		"nothing":            {"photo", "", nil, 415, ""},
		"a text":             {"photo", "hello", nil, 415, ""},
		"JSON":               {"photo", `{"photo":"x"}`, []string{"Content-Type: application/json"}, 415, ""},
		"SVG":                {"photo", svg, []string{"Content-Type: image/svg+xml"}, 415, ""},
		"SVG as PNG":         {"photo", svg, []string{"Content-Type: image/png"}, 415, ""},
		"GIF":                {"photo", gif, []string{"Content-Type: image/gif"}, 415, ""},
		"HTML":               {"photo", html, []string{"Content-Type: image/jpeg"}, 415, ""},
		"HTML behind it":     {"photo", good + "<script>alert(1)</script>", nil, 400, ""},
		"a ZIP behind it":    {"photo", good + "PK\x03\x04", nil, 400, ""},
		"HTML within":        {"photo", "\xff\xd8\xff<html><script>alert(1)</script>", nil, 400, ""},
		"half of it":         {"photo", good[:len(good)/2], nil, 400, ""},
		"a form":             {"photo", good, []string{"Content-Type: multipart/form-data; boundary=x"}, 415, ""},
		"a text by its name": {"photo", good, []string{"Content-Type: text/html"}, 415, ""},
		"a broken name":      {"photo", good, []string{"Content-Type: image/png; ="}, 415, ""},
		"two names":          {"photo", good, []string{"Content-Type: image/png", "Content-Type: image/jpeg"}, 415, ""},
		"compressed":         {"photo", good, []string{"Content-Encoding: gzip"}, 415, ""},
		"50,000 squared":     {"photo", sized(50_000), nil, 413, ""},
		"over 40 megapixels": {"photo", sized(6325), nil, 413, ""},
		"over 2 MiB":         {"photo", good + strings.Repeat("\x00", tracking.MaxProofSize), nil, 413, ""},
	} {
		w.check(what, w.give(c.kind, c.body, c.headers...), c.status, c.field)
	}
	if p := w.given(); p != nil {
		t.Errorf("there are proofs: %v", p)
	}
	for what, headers := range map[string][]string{
		"a name that is wrong":     {"Content-Type: image/heic"},
		"a name that says nothing": {"Content-Type: application/octet-stream"},
		"no name":                  nil, "capitals": {"Content-Type: IMAGE/PNG"},
	} {
		w.check(what, w.give("photo", good, headers...), 200, "")
	}
	if list, _ := w.given().([]any); len(list) != 1 {
		t.Errorf("the same four times: %v", list)
	}
	w.check("zeros up to 2 MiB", w.give("photo", good+strings.Repeat("\x00", tracking.MaxProofSize-len(good))), 200, "")
	w.check("40 megapixels", w.give("signature", sized(6324)), 200, "")
	for n := range 8 {
		w.check("up to ten", w.give("signature", pictureOf(n)), 200, "")
	}
	w.check("the eleventh", w.give("signature", pictureOf(100)), 409, "")
	w.check("the tenth again", w.give("signature", pictureOf(7)), 200, "")

	other := w.newDriver("meena")
	w.check("another driver", w.asDriver(other, "PUT", "/v1/driver/tasks/"+w.task+"/proof/photo", good), 404, "task_id")
	w.check("no such task", w.asDriver(other, "PUT", "/v1/driver/tasks/nothing/proof/photo", good), 404, "task_id")
	assigned := w.newTask("")
	w.data(w.app("POST", "/v1/task/assign", `{"task_id":"`+assigned+`","driver_id":"meena"}`))
	w.check("not started", w.asDriver(other, "PUT", "/v1/driver/tasks/"+assigned+"/proof/photo", good), 409, "")
	w.check("POST", w.asDriver(other, "POST", "/v1/driver/tasks/"+assigned+"/proof/photo", good), 405, "")
	w.data(w.do("complete", ""))
	w.clock.Advance(23 * time.Hour)
	w.check("what is there already", w.give("signature", pictureOf(7)), 200, "")
	for _, target := range []string{"/v1/task/proof", "/v1/task/proof?task_id=x", "/v1/task/proof?task_id=x&id="} {
		field := "task_id"
		if strings.Contains(target, "task_id") {
			field = "id"
		}
		w.check(target, w.app("GET", target, ""), 400, field)
	}
}

// sized is a PNG that says it has a side of n pixels.
func sized(n uint32) string {
	b := []byte(pictureOf(1))
	binary.BigEndian.PutUint32(b[16:], n)
	binary.BigEndian.PutUint32(b[20:], n)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29])) // of the head, IHDR
	return string(b)
}

// Each new field has its limits.
func TestProofFieldsRefuse(t *testing.T) {
	w := newWork(t, "")
	n := func(n int) string { return strings.Repeat("ü", n) }
	const drop = `"type":2,"drop":{"address":"x"}`
	rows := []bad{}
	for _, v := range []string{
		`"photo"`, `{}`, `1`, `["video"]`, `["photo","photo"]`, `["Photo"]`, `[""]`, `[1]`, `[null]`, `[["photo"]]`,
		`["photo","signature","name","pin","photo"]`, `["pin\u0000"]`, `["\ud800"]`,
	} {
		rows = append(rows, bad{"POST", "/v1/task/create", `{` + drop + `,"proof":` + v + `}`, 400, "proof"},
			bad{"POST", "/v1/task/update", `{"task_id":"` + w.task + `","proof":` + v + `}`, 400, "proof"})
	}
	for body, field := range map[string]string{
		`"received_by":"` + n(201) + `"`: "received_by", `"received_by":7`: "received_by",
		`"received_by":"a\u0000"`:  "received_by",
		`"note":"` + n(1001) + `"`: "note", `"note":[]`: "note",
	} {
		rows = append(rows, bad{"POST", "/v1/task/complete", `{"task_id":"` + w.task + `",` + body + `}`, 400, field})
		w.check(body, w.do("complete", "{"+body+"}"), 400, field)
	}
	for _, v := range []string{`"123"`, `"12345"`, `"12a4"`, `1234`, `"１２３４"`, `" 123"`} {
		w.check("pin "+v, w.do("complete", `{"pin":`+v+`}`), 400, "pin")
	}
	rows = append(rows,
		bad{"POST", "/v1/task/update", `{"task_id":"` + w.task + `","proof":["photo"]}`, 409, ""}, // in progress
		bad{"POST", "/v1/task/create", `{` + drop + `,"proof":[]}`, 200, ""},
		bad{"POST", "/v1/task/create", `{` + drop + `,"proof":null}`, 200, ""})
	w.checkAll(rows)
	w.check("at the limits", w.do("complete",
		`{"received_by":"`+n(200)+`","note":"`+n(1000)+`","pin":""}`), 200, "")

	// What is asked for can be changed, and asked for no more.
	id := w.newTask(`,"proof":["pin"]`)
	update := func(proof string) any {
		return at(w.data(w.app("POST", "/v1/task/update", `{"task_id":"`+id+`","proof":`+proof+`}`)), "task")
	}
	pin := text(w.data(w.app("GET", "/v1/task?task_id="+id, "")), "task", "pin")
	if v := update(`["photo","pin"]`); text(v, "pin") != pin || fmt.Sprint(at(v, "proof")) != "[photo pin]" {
		t.Errorf("more: %v, the PIN was %q", v, pin)
	}
	if v := update(`null`); text(v, "pin") != pin {
		t.Errorf("absent: %v", v)
	}
	if v := update(`[]`); at(v, "pin") != nil || at(v, "proof") != nil {
		t.Errorf("nothing: %v", v)
	}

	// The same key with other proof is other content.
	key := "Idempotency-Key: k"
	w.check("with a key", w.app("POST", "/v1/task/create", `{`+drop+`,"proof":["photo","pin"]}`, key), 200, "")
	w.check("the same", w.app("POST", "/v1/task/create", `{`+drop+`,"proof":["pin","photo"]}`, key), 200, "")
	w.check("another", w.app("POST", "/v1/task/create", `{`+drop+`,"proof":["pin"]}`, key), 409, "Idempotency-Key")
	w.check("none", w.app("POST", "/v1/task/create", `{`+drop+`}`, key), 409, "Idempotency-Key")
}

// After ten wrong PINs the dispatcher has to complete the task.
func TestManyWrongPINs(t *testing.T) {
	w := newWork(t, `,"proof":["pin"]`)
	pin := text(w.data(w.app("GET", "/v1/task/list", "")), "task_list", 0, "pin")
	wrong := 0
	for n := 0; wrong < 10; n++ {
		if try := fmt.Sprintf("%04d", n); try != pin {
			w.check(try, w.do("complete", `{"pin":"`+try+`"}`), 409, "pin")
			wrong++
		}
	}
	r := w.do("complete", `{"pin":"`+pin+`"}`)
	if w.check("the right one", r, 409, "pin"); !strings.Contains(r.body, "dispatcher") {
		t.Errorf("%s", r.body)
	}
	if n := at(w.data(w.app("GET", "/v1/task?task_id="+w.task, "")), "task", "wrong_pins"); n != 10.0 {
		t.Errorf("%v are counted", n)
	}
	done := w.app("POST", "/v1/task/complete", `{"task_id":"`+w.task+`","received_by":"Priya"}`)
	w.check("the dispatcher", done, 200, "")
}

// A link shows proof only where its site says so, each application's its own.
func TestShowProof(t *testing.T) {
	for name, c := range map[string]struct {
		site  web.Site
		sites map[tracking.AppID]web.Site
		shown bool
	}{
		"not unless it is said":            {web.Site{}, nil, false},
		"said of all":                      {web.Site{ShowProof: true}, nil, true},
		"said of this one":                 {web.Site{}, map[tracking.AppID]web.Site{"a": {ShowProof: true}}, true},
		"said of all others":               {web.Site{ShowProof: true}, map[tracking.AppID]web.Site{"a": {}}, false},
		"said of another one, not of this": {web.Site{}, map[tracking.AppID]web.Site{"b": {ShowProof: true}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t, "", func(_ *tracking.Options, ho *httpadapter.Options) {
				ho.Site, ho.Sites = c.site, c.sites
			})
			link := w.link(w.task)
			photo := text(w.data(w.give("photo", pictureOf(1))), "proof", "id")
			signed := text(w.data(w.give("signature", pictureOf(1))), "proof", "id")
			get := func(id string) reply { return w.server.do("GET", link+"/proof/"+id, "") }
			w.check("under way", get(photo), 404, "")
			v := w.watch(link)
			w.data(w.do("complete", `{"received_by":"Priya Canary"}`))
			var last string
			for event, data := v.next(); event != "end" && event != "EOF"; event, data = v.next() {
				last = data
			}
			status := 404
			if c.shown {
				status = 200
			}
			if r := get(photo); r.status != status {
				t.Errorf("the photo: %d", r.status)
			}
			w.check("a signature", get(signed), 404, "")
			w.check("nothing", get("nothing"), 404, "")
			w.check("no link", w.server.do("GET", "/track/nobody/proof/"+photo, ""), 404, "")
			for what, body := range map[string]string{
				"the page": w.server.do("GET", link, "").body, "the state": w.server.do("GET", link+"/state", "").body,
				"the stream": last,
			} {
				by, has := strings.Contains(body, "Priya Canary"), strings.Contains(body, photo)
				if by != c.shown || has != c.shown || strings.Contains(body, signed) ||
					!strings.Contains(body, "completed") {
					t.Errorf("%s: %s", what, body)
				}
			}
			w.data(w.app("POST", "/v1/task/trackingurl/revoke", `{"task_id":"`+w.task+`"}`))
			w.check("revoked", get(photo), 404, "")
		})
	}
}

// noRoom is a store whose files cannot be kept.
type noRoom struct{ tracking.Store }

func (noRoom) Files() tracking.Files { return fullFiles{} }

type fullFiles struct{ tracking.Files }

var errNoRoom = errors.New("no room on /dev/secret")

func (fullFiles) Put(context.Context, tracking.AppID, string, tracking.File) error { return errNoRoom }

func (fullFiles) Delete(context.Context, tracking.AppID, string) error { return errNoRoom }

// Storage that fails is a 503 that says nothing of it, and the phone comes again.
func TestProofWithoutRoom(t *testing.T) {
	w := workOn(newServerOn(t, noRoom{memory.New()}), "")
	r := w.give("photo", pictureOf(1))
	w.check("no room", r, 503, "")
	if r.header.Get("Retry-After") == "" || strings.Contains(r.body, "secret") || w.given() != nil {
		t.Errorf("%v %s, given %v", r.header, r.body, w.given())
	}
}

// A web page of another origin may send a picture where that is allowed.
func TestProofFromAnotherOrigin(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.CORSOrigins = []string{"https://app.example"}
	})
	r := s.do(http.MethodOptions, "/v1/driver/tasks/x/proof/photo", "", "Origin: https://app.example",
		"Access-Control-Request-Method: PUT")
	if r.status != 204 || r.header.Get("Allow") != "OPTIONS, PUT" ||
		r.header.Get("Access-Control-Allow-Methods") != "OPTIONS, PUT" {
		t.Errorf("%d %v", r.status, r.header)
	}
}
