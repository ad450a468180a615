package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// record notes each call of the driver's that reaches the server and changes something, as "verb
// order"; fixes are none.
type record struct {
	next   http.Handler
	orders map[tracking.TaskID]string

	mu    sync.Mutex
	calls []string
}

func (c *record) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, own := strings.CutPrefix(r.URL.Path, "/v1/driver/")
	if own && r.Method != http.MethodGet && path != "fixes" && path != "join" {
		c.mu.Lock()
		call := path
		if id, verb, ok := strings.Cut(strings.TrimPrefix(path, "tasks/"), "/"); ok {
			call = verb + " " + c.orders[tracking.TaskID(id)]
		}
		c.calls = append(c.calls, call)
		c.mu.Unlock()
	}
	c.next.ServeHTTP(w, r)
}

func (c *record) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// next takes the next step of the stop that fills the screen, by the words on its button.
func (p *person) next(words string) {
	p.Helper()
	p.pressWords(".task.next .reach button.primary", words)
}

// at waits until a stop fills the screen.
func (p *person) at(address string) {
	p.Helper()
	p.see("the stop "+address,
		`document.querySelector('.task.next .address')?.textContent === '`+address+`'`)
}

// A driver's day, most of it without a network: a pickup, a delivery with all proof, the order of
// the stops changed, a failure by one of the application's reasons, two parcels for one house, a
// wrong PIN, and the app opened anew in between. Then it all reaches the server, in order and each
// once, and the PIN is put right.
func TestWorkingDay(t *testing.T) {
	s := newService(t, "", func(o *tracking.Options, over *httpadapter.Options) {
		o.Reasons = []tracking.ReasonCode{"gate_locked"}
		over.Site = web.Site{ShowProof: true, Reasons: map[string]string{"gate_locked": "The gate was locked"}}
	})
	calls := &record{next: s.gate.next, orders: map[tracking.TaskID]string{}}
	s.gate.next = calls
	dora := s.driving()
	dora.phone(844)
	dora.expected = append(dora.expected, "status of 409")
	dora.click(".switch")
	dora.see("that she is on duty", `document.querySelector('.switch').getAttribute('aria-checked') === 'true'`)

	task := func(order string, typ int, address string, proof ...string) tracking.TaskID {
		body := map[string]any{"type": typ, "order_id": order, "proof": proof, "drop": map[string]any{
			"address": address, "customer": map[string]any{"name": "Customer of " + order},
		}}
		if typ == 3 {
			body["pickup"] = map[string]any{"address": "Bakery, Mill Lane 3"}
		}
		id := s.api("POST", "/v1/task/create", body)["task"].(map[string]any)["task_id"].(string)
		s.api("POST", "/v1/task/assign", map[string]any{"task_id": id, "driver_id": "dora"})
		calls.orders[tracking.TaskID(id)] = order
		return tracking.TaskID(id)
	}
	cake := task("#1", 3, "1 River Street", "photo", "signature", "name", "pin")
	book := task("#2", 2, "5 Lake Road")
	lamp := task("#3", 2, "5 Lake Road", "name")
	shut := task("#4", 2, "9 Park Lane")
	ring := task("#5", 2, "12 Hill Street", "pin")
	link := s.api("GET", "/v1/task/trackingurl/"+string(cake), nil)["webUrl"].(string)

	dora.at("Bakery, Mill Lane 3")
	dora.see("five stops", `document.querySelectorAll('.task').length === 5`)
	dora.next("Start")
	dora.next("Arrived")
	dora.next("Picked up")
	dora.at("1 River Street")
	s.until("picked up", cake, func(now tracking.Task) bool { return !now.PickedUpAt.IsZero() })

	// The network goes. A delivery with all proof.
	s.gate.set(true)
	dora.next("Arrived")
	dora.next("Delivered")
	dora.see("what is needed", sheet)
	dora.shoot(cameraPhoto(t))
	dora.see("the photo", anyPhotos)
	dora.sign()
	dora.enter("name", "Ada Lovelace")
	dora.enter("pin", s.pin(cake))
	dora.press(".sheet .primary")
	dora.see("an Undo", noSheet+` && document.querySelector('.task.next .undo') !== null`)
	dora.at("5 Lake Road")
	dora.see("that she is offline", `document.querySelector('.fact.warn:not(.sound)') !== null`)

	// Another order.
	dora.eval(`location.hash = '#order'`)
	const row = `document.querySelectorAll('.order-row')`
	dora.see("the order", row+`.length === 3`)
	dora.eval(row + `[1].querySelector('.up').click()`)
	dora.see("another one", row+`[0].textContent.includes('9 Park Lane')`)
	dora.see("that it can be saved", `document.querySelector('.bar .primary`+ready+`') !== null`)
	dora.standing(".bar .primary")
	dora.press(".bar .primary")
	dora.at("9 Park Lane")
	dora.next("Start")
	dora.next("Arrived")
	dora.see("that it can be ended", `document.querySelector('.task.next .reach .primary`+ready+`')?.textContent === 'Delivered'`)
	dora.see("what to do where something is wrong", `document.querySelector('.task.next .reach .button')?.textContent === 'Problem'`)
	dora.press(".task.next .reach .button")
	dora.see("the reasons", `document.querySelector('.sheet input[value=gate_locked]')?.parentElement.textContent === 'The gate was locked'`)
	dora.eval(`document.querySelector('.sheet input[value=gate_locked]').click()`)
	dora.see("that it can be sent", `!document.querySelector('.sheet .primary').disabled`)
	dora.press(".sheet .primary")

	// The app is opened anew.
	dora.at("5 Lake Road")
	dora.open("about:blank")
	dora.open(s.driver + "/driver/")
	dora.at("5 Lake Road")
	dora.see("two parcels for one house", `document.querySelectorAll('.parcel').length === 2`)
	dora.next("Start (2)")
	dora.next("Arrived (2)")
	dora.next("Delivered (2)")
	dora.see("that one is done, the other asks for more",
		`document.querySelector('.task.next .undo') !== null || document.querySelector('.task.next .parcel') === null`)
	dora.see("the other one by itself", `document.querySelector('.task.next .reach .primary`+ready+`')?.textContent === 'Delivered' && document.querySelector('.parcel') === null`)
	dora.next("Delivered")
	dora.see("who took it", sheet)
	dora.enter("name", "Mr Neighbour")
	dora.press(".sheet .primary")
	dora.at("12 Hill Street")
	dora.next("Start")
	dora.next("Arrived")
	dora.next("Delivered")
	dora.see("the PIN", sheet)
	dora.enter("pin", s.wrongPIN(ring))
	dora.press(".sheet .primary")
	dora.see("that all is done, and waits", `document.querySelector('.empty') !== null && document.querySelectorAll('.chip.pending').length >= 5`)
	if now := s.status(cake); now.Status != tracking.StatusInProgress || len(now.Proofs) > 0 {
		t.Fatalf("offline the server knows %+v", now)
	}

	// The network comes back.
	s.gate.set(false)
	dora.eval(`window.dispatchEvent(new Event('online'))`)
	dora.see("which PIN was refused",
		`(() => { const text = document.querySelector('.banner.refused')?.textContent; return text?.includes('#5') && text.includes('The PIN is not right'); })()`)
	dora.see("nothing else refused", `document.querySelectorAll('.banner.refused').length === 1`)
	for id, is := range map[tracking.TaskID]func(tracking.Task) bool{
		cake: func(now tracking.Task) bool {
			return succeeded(now) && now.ReceivedBy == "Ada Lovelace" && len(now.Proofs) == 2
		},
		book: succeeded,
		lamp: func(now tracking.Task) bool { return succeeded(now) && now.ReceivedBy == "Mr Neighbour" },
		shut: func(now tracking.Task) bool {
			return now.Outcome == tracking.OutcomeFailed && now.ReasonCode == "gate_locked"
		},
		ring: func(now tracking.Task) bool { return now.Status == tracking.StatusInProgress && now.WrongPINs == 1 },
	} {
		if now := s.status(id); !is(now) {
			t.Errorf("%s is %+v", calls.orders[id], now)
		}
	}
	upright(t, s.proofs(cake)[tracking.ProofPhoto][0])
	ends := []time.Time{
		s.status(cake).CompletedAt, s.status(shut).CompletedAt, s.status(book).CompletedAt, s.status(lamp).CompletedAt,
	}
	if !slices.IsSortedFunc(ends, time.Time.Compare) {
		t.Errorf("the tasks were done one after the other, and ended at %v", ends)
	}

	dora.press(".banner.refused .small")
	dora.see("the PIN again", sheet)
	dora.enter("pin", s.pin(ring))
	dora.press(".sheet .primary")
	s.until("succeeded", ring, succeeded)
	dora.see("nothing refused", `document.querySelector('.banner.refused') === null`)
	dora.keeps("no picture", `files.count()`, `value === 0`)
	want := []string{
		"availability", "start #1", "arrive #1", "pickup #1",
		"arrive #1", "proof/photo #1", "proof/signature #1", "complete #1", "route",
		"start #4", "arrive #4", "complete #4", "start #2", "start #3", "arrive #2", "arrive #3",
		"complete #2", "complete #3", "start #5", "arrive #5", "complete #5", "stuck #5", "complete #5", "settle #5",
	}
	for began := time.Now(); !slices.Equal(calls.list(), want); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Errorf("the server was told\n%v, want\n%v", calls.list(), want)
			break
		}
	}
	res, err := http.Get(link + "/state")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if state, _ := io.ReadAll(res.Body); !strings.Contains(string(state), `"received_by":"Ada Lovelace"`) ||
		strings.Count(string(state), fmt.Sprint(s.status(cake).Proofs[0].ID)) != 1 {
		t.Errorf("the customer is shown %s", state)
	}
}
