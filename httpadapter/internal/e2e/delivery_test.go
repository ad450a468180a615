package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

const apiKey = "the-key"

// service is the whole of it behind two servers: one for the application and its customers, one
// that drivers reach over a network of their own.
type service struct {
	*testing.T
	origins [2]string // of url and driver
	svc     *tracking.Service
	url     string
	driver  string // the same, over the driver's network
	gate    *gate
	made    int // tasks
}

func newService(t *testing.T, prefix string, setups ...func(*tracking.Options, *httpadapter.Options)) *service {
	t.Helper()
	return newServiceOn(t, memory.New(), prefix, setups...)
}

func newServiceOn(t *testing.T, store tracking.Store, prefix string,
	setups ...func(*tracking.Options, *httpadapter.Options)) *service {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	options := &tracking.Options{Logger: logger}
	over := &httpadapter.Options{Prefix: prefix, Keys: map[string]httpadapter.Principal{apiKey: {}}, Logger: logger}
	for _, set := range setups {
		set(options, over)
	}
	svc, err := tracking.New(store, options)
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpadapter.New(svc, over)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{T: t, svc: svc, gate: &gate{next: h}}
	public := httptest.NewServer(h)
	s.url = public.URL + prefix
	s.gate.server = httptest.NewServer(s.gate)
	s.driver = s.gate.server.URL + prefix
	s.origins = [2]string{public.URL, s.gate.server.URL}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = svc.Run(ctx) // ends with ctx
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := svc.Close(context.Background()); err != nil {
			t.Error(err)
		}
		for _, server := range []*httptest.Server{public, s.gate.server} {
			server.CloseClientConnections()
			server.Close()
		}
	})
	return s
}

// api calls an application route and returns data.
func (s *service) api(method, path string, body any) map[string]any {
	s.Helper()
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			s.Fatal(err)
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, s.url+path, r)
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("X-Api-Key", apiKey)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Message string
		Success bool
		Data    map[string]any
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
	if !answer.Success {
		s.Fatalf("%s %s: %s: %s", method, path, res.Status, answer.Message)
	}
	return answer.Data
}

// invite invites a driver and returns the link, over the driver's network, and the code.
func (s *service) invite(driver, name string) (link, code string) {
	s.Helper()
	data := s.api("POST", "/v1/invite_user", map[string]any{"user_id": driver, "name": name})
	return strings.Replace(data["url"].(string), s.url, s.driver, 1), fmt.Sprintf("%.0f", data["invite_code"])
}

// embed serves a shop's page, on an origin of its own, that shows an address in a frame.
func embed(t *testing.T, url string) string {
	t.Helper()
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>Shop</title><iframe src="%s" width="380" height="800"></iframe>`, url)
	}))
	t.Cleanup(shop.Close)
	return shop.URL
}

// The whole of a delivery, with one browser as the driver's phone and one as the customer's.
func TestDelivery(t *testing.T) {
	s := newService(t, "")
	chrome := chromium(t)
	link, _ := s.invite("dora", "Dora Example")

	dora := newPerson(t, chrome, "the driver", s.origins[1])
	dora.stand(13.3700, 52.5100)
	dora.open(link)
	dora.click(".join .primary")
	dora.see("the app after joining", `location.pathname === '/driver/' && document.querySelector('.head') !== null`)
	dora.see("that no token is left in the address", `location.href === location.origin + '/driver/'`)
	dora.click(".switch")
	dora.see("that she is on duty, and where",
		`document.querySelector('.switch').getAttribute('aria-checked') === 'true' && document.querySelector('.fact.good') !== null`)

	task := s.api("POST", "/v1/task/create", map[string]any{
		"type": 2, "auto_assign": true, "order_id": "#1001", "notes": "Ring twice",
		"drop": map[string]any{
			"address": "12 River Street", "lnglat": []float64{13.3800, 52.5150},
			"customer": map[string]any{"name": "Ada", "mobile": "+49 170 1"},
		},
	})["task"].(map[string]any)
	id := task["task_id"].(string)
	dora.see("the task that was assigned",
		`document.querySelector('.task .address')?.textContent === '12 River Street'`)
	dora.see("a banner that tells of it", `document.querySelector('.banner.news') !== null`)

	webURL := s.api("GET", "/v1/task/trackingurl/"+id, nil)["webUrl"].(string)
	shop := embed(t, webURL)
	ada := newPerson(t, chrome, "the customer", s.origins[0])
	ada.open(shop)
	ada.seeFramed("that a driver has the order, and not yet who",
		`document.body.dataset.phase === 'assigned' && document.querySelector('#driver').hidden`)

	dora.standing(".task .primary")
	dora.click(".task .primary")
	dora.see("the banner no more", `document.querySelector('.banner.news') === null`)
	ada.seeFramed("that it is on the way, and the driver on a map",
		`document.body.dataset.phase === 'on_the_way' && document.querySelector('#driver-name').textContent === 'Dora' && document.querySelector('.vehicle-icon') !== null`)

	// The phone moves until the customer has seen it move three times.
	const position = `document.querySelector('.vehicle-icon')?.style.transform`
	moved, lng := 0, 13.3700
	before := ""
	for try := 0; moved < 3; try++ {
		if try == 60 {
			t.Fatalf("the marker moved %d times", moved)
		}
		lng += 0.0004
		dora.stand(lng, 52.5100)
		expression := fmt.Sprintf(`%s !== %q && (window.seen = %s)`, position, before, position)
		if ada.framed(expression, 2*time.Second) == nil {
			moved++
			before = frameText(ada, "window.seen")
		}
	}
	ada.seeFramed("when it is expected",
		`!document.querySelector('#eta').hidden && document.querySelector('#eta-main').textContent !== ''`)

	// The customer writes to the driver.
	ada.seeFramed("where to write", `!document.querySelector('#note').hidden && (document.querySelector('#note-text').value = 'Ring twice') !== ''`)
	ada.seeFramed("that it is sent, and stands there", `(document.querySelector('#note-state').textContent === '' && document.querySelector('#note').requestSubmit(),
		document.querySelector('#note-state').textContent === 'Sent. The driver can see it.' && document.querySelector('#note-text').value === 'Ring twice')`)
	if now, err := s.svc.Task(t.Context(), tracking.TaskID(id)); err != nil || now.CustomerNote != "Ring twice" {
		t.Errorf("the task has the note %q: %v", now.CustomerNote, err)
	}

	// The network goes. The app can even be opened anew, and what the driver does is kept.
	s.gate.set(true)
	dora.eval(`document.querySelector('.task .card-link').click()`)
	dora.arrive(".bar")
	dora.press(".bar .primary.good")
	dora.see("that her word waits to be sent",
		`[...document.querySelectorAll('.chip')].some((c) => c.classList.contains('pending'))`)
	dora.see("that she is offline", `document.querySelector('.fact.warn:not(.sound)') !== null`)
	dora.open(s.driver + "/driver/")
	dora.see("the app, and her word still waiting",
		`document.querySelector('.chip.pending') !== null && document.querySelector('.chip.succeeded') !== null`)
	if now, err := s.svc.Task(t.Context(), tracking.TaskID(id)); err != nil || now.Status != tracking.StatusInProgress {
		t.Fatalf("the task is %s while the driver is offline: %v", now.Status, err)
	}

	s.gate.set(false)
	dora.eval(`window.dispatchEvent(new Event('online'))`)
	ada.seeFramed("that it is delivered, without a map",
		`document.body.dataset.phase === 'delivered' && document.querySelector('#map-area').hidden && !document.querySelector('.vehicle-icon')`)
	dora.see("that everything was sent",
		`document.querySelector('.chip.pending') === null && document.querySelector('.fact.warn:not(.sound)') === null`)

	done, err := s.svc.Task(t.Context(), tracking.TaskID(id))
	if err != nil || done.Outcome != tracking.OutcomeSucceeded {
		t.Errorf("the task ended as %q: %v", done.Outcome, err)
	}
	if res, err := http.Get(webURL + "/state"); err != nil {
		t.Error(err)
	} else {
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if bytes.Contains(body, []byte(`"position"`)) || !bytes.Contains(body, []byte(`"path":[]`)) {
			t.Errorf("after the end the state has a position or a path: %s", body)
		}
	}

	// It was the wrong door: the page that was left open shows it as soon as it is looked at again.
	s.api("POST", "/v1/task/reopen", map[string]any{"task_id": id})
	ada.seeFramed("that it is not over", `document.dispatchEvent(new Event('visibilitychange')), document.body.dataset.phase === 'assigned'`)
	dora.onlyFrom(s.origins[1])
	ada.onlyFrom(s.origins[0], shop)
}

// A token that is revoked leads back to joining; what was not sent is sent once the driver has
// joined again.
func TestRevoked(t *testing.T) {
	s := newService(t, "/delivery")
	chrome := chromium(t)
	_, code := s.invite("dora", "Dora")
	dora := newPerson(t, chrome, "the driver", s.origins[1])
	dora.stand(13.37, 52.51)
	dora.open(s.driver + "/driver/")
	join := func(code string) {
		dora.see("where to enter the code", `document.querySelector('input[name=code]') !== null`)
		dora.eval(`document.querySelector('input[name=code]').value = '` + code +
			`'; document.querySelector('form').requestSubmit()`)
		dora.see("the app", `document.querySelector('.head') !== null`)
	}
	join(code)
	task := s.api("POST", "/v1/task/create", map[string]any{
		"type": 2, "drop": map[string]any{"address": "12 River Street"},
	})["task"].(map[string]any)
	id := task["task_id"].(string)
	s.api("POST", "/v1/task/assign", map[string]any{"task_id": id, "driver_id": "dora"})
	dora.see("the task", `document.querySelector('.task .primary') !== null`)

	s.gate.set(true)
	dora.press(".task .primary")
	dora.see("that her word waits", `document.querySelector('.chip.pending') !== null`)
	dora.expected = append(dora.expected, "status of 401")
	s.api("POST", "/v1/users/driver/revoke", map[string]any{"driver_id": "dora"})
	s.gate.set(false)
	dora.eval(`window.dispatchEvent(new Event('online'))`)
	dora.see("that she was signed out, and that an entry is kept",
		`document.querySelector('.join .note.warn')?.textContent.includes('Unsent entries')`)
	if now, err := s.svc.Task(t.Context(), tracking.TaskID(id)); err != nil || now.Status != tracking.StatusAssigned {
		t.Fatalf("the task is %s: %v", now.Status, err)
	}

	_, code = s.invite("dora", "Dora")
	join(code)
	dora.see("the task under way, and nothing waiting",
		`document.querySelector('.task.in_progress') !== null && document.querySelector('.chip.pending') === null`)
	if now, err := s.svc.Task(t.Context(), tracking.TaskID(id)); err != nil || now.Status != tracking.StatusInProgress {
		t.Fatalf("the task is %s: %v", now.Status, err)
	}
	dora.onlyFrom(s.origins[1])
}

// What a phone has kept of a driver who was erased is nothing of the next one's who has the id.
func TestPhoneOfAnErasedDriver(t *testing.T) {
	s := newService(t, "")
	_, code := s.invite("dora", "Dora")
	phone := newPerson(t, chromium(t), "the driver", s.origins[1])
	phone.stand(13.37, 52.51)
	phone.open(s.driver + "/driver/")
	join := func(code string) {
		phone.see("where to enter the code", `document.querySelector('input[name=code]') !== null`)
		phone.eval(`document.querySelector('input[name=code]').value = '` + code +
			`'; document.querySelector('form').requestSubmit()`)
		phone.see("the app", `document.querySelector('.head') !== null`)
	}
	join(code)
	phone.standing(".switch")
	s.gate.set(true)
	phone.click(".switch")
	phone.see("that she is on duty for herself", `document.querySelector('.switch').getAttribute('aria-checked') === 'true'`)
	phone.expected = append(phone.expected, "status of 401")
	if err := s.svc.ForceDeleteDriver(t.Context(), "dora"); err != nil {
		t.Fatal(err)
	}
	s.gate.set(false)
	phone.eval(`window.dispatchEvent(new Event('online'))`)
	phone.see("that she was signed out, and that an entry is kept",
		`document.querySelector('.join .note.warn')?.textContent.includes('Unsent entries')`)
	_, code = s.invite("dora", "Doris")
	join(code)
	phone.see("that Doris is off duty, and nothing waits",
		`document.querySelector('.switch').getAttribute('aria-checked') === 'false' && document.querySelector('.chip.pending') === null`)
	// One step of her own, after which what was before it would have been sent.
	phone.standing(".switch")
	phone.click(".switch")
	phone.see("that she is on duty", `document.querySelector('.switch').getAttribute('aria-checked') === 'true' && document.querySelector('.fact.good') !== null`)
	d, err := s.svc.Driver(t.Context(), "dora")
	if err != nil || d.Name != "Doris" || !d.Available {
		t.Errorf("the driver is %+v: %v", d, err)
	}
	events, _, err := s.svc.Events(t.Context(), tracking.EventFilter{
		Subject: tracking.Subject{Kind: tracking.KindDriver, ID: "dora"}, Limit: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	on := 0
	for _, e := range events {
		if e.Type == tracking.EventDriverAvailable {
			on++
		}
	}
	if on != 1 {
		t.Errorf("%d times somebody went on duty, want once: %+v", on, events)
	}
}
