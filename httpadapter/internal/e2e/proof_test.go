package e2e_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

var (
	red, green = color.RGBA{200, 20, 20, 255}, color.RGBA{20, 160, 20, 255}
	blue, grey = color.RGBA{20, 20, 200, 255}, color.RGBA{128, 128, 128, 255}
)

// cameraPhoto is a file as a camera writes it that was held upright: the picture lies on its side,
// and says so. Upright its corners are blue and red above, grey and green below.
func cameraPhoto(t *testing.T) string {
	t.Helper()
	const width, height, corner = 3000, 2000, 400
	random := rand.New(rand.NewPCG(1, 2))
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.RGBA{uint8(random.IntN(256)), uint8(random.IntN(256)), uint8(random.IntN(256)), 255}
			switch left, top := x < corner, y < corner; {
			case left && top:
				c = red
			case x >= width-corner && top:
				c = green
			case left && y >= height-corner:
				c = blue
			case x >= width-corner && y >= height-corner:
				c = grey
			}
			m.SetRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 92}); err != nil {
		t.Fatal(err)
	}
	exif := "Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"
	segment := append([]byte{0xff, 0xe1}, binary.BigEndian.AppendUint16(nil, uint16(len(exif)+2))...)
	data := slices.Concat(b.Bytes()[:2], segment, []byte(exif), b.Bytes()[2:])
	name := filepath.Join(t.TempDir(), "IMG_0001.JPG")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// alike reports whether two colours are, as far as a JPEG keeps them.
func alike(a, b color.Color) bool {
	r1, g1, b1, _ := a.RGBA()
	r2, g2, b2, _ := b.RGBA()
	near := func(x, y uint32) bool { return max(x, y)-min(x, y) < 0x3000 }
	return near(r1, r2) && near(g1, g2) && near(b1, b2)
}

// upright checks that a photo is the camera's, upright and small.
func upright(t *testing.T, data []byte) {
	t.Helper()
	m, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("the photo, of %d bytes: %v", len(data), err)
	}
	if size := m.Bounds().Size(); size != (image.Point{1067, 1600}) || bytes.Contains(data, []byte("Exif")) {
		t.Errorf("the photo is %v, with Exif: %v", size, bytes.Contains(data, []byte("Exif")))
	}
	for corner, want := range map[image.Point]color.Color{
		{60, 60}: blue, {1007, 60}: red, {60, 1540}: grey, {1007, 1540}: green,
	} {
		if got := m.At(corner.X, corner.Y); !alike(got, want) {
			t.Errorf("at %v the photo is %v, want %v", corner, got, want)
		}
	}
}

// proofs reads the files of a task by their kind.
func (s *service) proofs(id tracking.TaskID) map[tracking.ProofKind][][]byte {
	s.Helper()
	files := map[tracking.ProofKind][][]byte{}
	for _, p := range s.status(id).Proofs {
		_, data, err := s.svc.ReadProof(s.Context(), id, p.ID)
		if err != nil {
			s.Fatal(err)
		}
		files[p.Kind] = append(files[p.Kind], data)
	}
	return files
}

// atDoor has dora start a task with a drop alone, and arrive.
func (s *service) atDoor(id tracking.TaskID) tracking.TaskID {
	s.Helper()
	if _, _, err := s.svc.StartTask(s.Context(), "dora", id, tracking.Step{}); err != nil {
		s.Fatal(err)
	}
	if _, err := s.svc.ArriveTask(s.Context(), "dora", id, tracking.Step{}); err != nil {
		s.Fatal(err)
	}
	return id
}

// shoot gives the app a file as if the camera had made it.
func (p *person) shoot(file string) {
	p.Helper()
	p.do("taking a photo", chromedp.SetUploadFiles(chromedp.CSS(".sheet input[type=file]"), []string{file}))
}

// sign draws on the pad with a finger.
func (p *person) sign() {
	p.Helper()
	p.see("the pad", `document.querySelector('.pad canvas') !== null`)
	x, y := p.spot(".pad canvas")
	for i := range 21 {
		typ, points := input.DispatchTouchEventTypeTouchMove, []*input.TouchPoint{
			{X: x - 100 + 10*float64(i), Y: y + float64(i%4)*12 - 20},
		}
		switch i {
		case 0:
			typ = input.DispatchTouchEventTypeTouchStart
		case 20:
			typ, points = input.DispatchTouchEventTypeTouchEnd, nil
		}
		if _, err := chromedp.Call(p.ctx, input.DispatchTouchEvent,
			input.DispatchTouchEventParams{Type: typ, TouchPoints: points}); err != nil {
			p.Fatal(err)
		}
	}
	p.keeps("the signature", `files.getAll()`, `value.some((f) => f.kind === 'signature')`)
}

// enter types into a field of the sheet.
func (p *person) enter(kind, text string) {
	p.Helper()
	p.eval(fmt.Sprintf(`(() => {
		const e = document.querySelector('.sheet [data-kind=%s] input, .sheet [data-kind=%[1]s] textarea');
		e.value = %q;
		e.dispatchEvent(new Event('input', { bubbles: true }));
	})()`, kind, text))
}

// end says on a task's page that it has succeeded.
func (p *person) end(id tracking.TaskID) {
	p.Helper()
	p.eval(`location.hash = '#task/` + string(id) + `'; window.dispatchEvent(new Event('online'))`)
	p.press(`.main .primary.good`)
}

const (
	sheet     = `document.querySelector('dialog.sheet[open]') !== null`
	noSheet   = `document.querySelector('dialog.sheet[open]') === null`
	allSent   = `document.querySelector('.chip.pending') === null && document.querySelector('.undo') === null`
	anyPhotos = `document.querySelector('.sheet .thumb.photo') !== null`
)

// until waits until the server's state of a task is as wanted.
func (s *service) until(what string, id tracking.TaskID, is func(tracking.Task) bool) {
	s.Helper()
	for began := time.Now(); !is(s.status(id)); {
		if time.Since(began) > patience {
			s.Fatalf("the task is never %s: %+v", what, s.status(id))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func succeeded(t tracking.Task) bool { return t.Outcome == tracking.OutcomeSucceeded }

// pin is a task's PIN, and wrongPIN another one.
func (s *service) pin(id tracking.TaskID) string { return string(s.status(id).PIN) }

func (s *service) wrongPIN(id tracking.TaskID) string {
	if s.pin(id) == "0000" {
		return "1111"
	}
	return "0000"
}

// What a task asks for is asked at its end: what lacks is said, a photo comes upright and small,
// and a file that is none is refused in words.
func TestProofIsAsked(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	dora.phone(844)
	id := s.atDoor(s.newTask(2, "#1001", "photo", "signature", "name", "pin"))
	dora.end(id)
	dora.see("what is needed", sheet)
	dora.press(".sheet .primary")
	dora.see("what lacks", `document.querySelector('.sheet .problem').textContent === 'Still needed: photo, signature, name, and PIN.'`)

	text := filepath.Join(t.TempDir(), "photo.jpg")
	if err := os.WriteFile(text, []byte("no photo"), 0o600); err != nil {
		t.Fatal(err)
	}
	dora.shoot(text)
	dora.see("that this is none", `document.querySelector('.sheet .problem').textContent.includes('no picture')`)
	dora.shoot(cameraPhoto(t))
	dora.see("the photo", anyPhotos)
	dora.sign()
	dora.enter("name", "  Ada Lovelace ")
	dora.enter("pin", "x"+s.pin(id))
	dora.see("that nothing lacks, and of the PIN its digits alone",
		`document.querySelector('.sheet .problem').textContent === '' && document.querySelector('.sheet .digits').value === '`+s.pin(id)+`'`)
	dora.press(".sheet .primary")
	dora.see("an Undo", noSheet+` && document.querySelector('.undo') !== null`)
	s.until("succeeded", id, succeeded)
	now, files := s.status(id), s.proofs(id)
	if now.ReceivedBy != "Ada Lovelace" || len(files[tracking.ProofPhoto]) != 1 || len(files[tracking.ProofSignature]) != 1 {
		t.Fatalf("received by %q, with the files %v", now.ReceivedBy, now.Proofs)
	}
	upright(t, files[tracking.ProofPhoto][0])
	signature, err := png.Decode(bytes.NewReader(files[tracking.ProofSignature][0]))
	if err != nil || len(files[tracking.ProofSignature][0]) > 20<<10 {
		t.Fatalf("the signature, of %d bytes: %v", len(files[tracking.ProofSignature][0]), err)
	}
	ink := 0
	for y := range signature.Bounds().Dy() {
		for x := range signature.Bounds().Dx() {
			if r, _, _, _ := signature.At(x, y).RGBA(); r < 0x4000 {
				ink++
			}
		}
	}
	if size := signature.Bounds().Size(); size != (image.Point{600, 300}) || ink < 500 {
		t.Errorf("the signature is %v, with %d points of ink", size, ink)
	}

	// After the end a photo can still be given.
	dora.see("that the task is done", `document.querySelector('.proof-card') !== null && `+allSent)
	dora.press(".proof-card .button")
	dora.see("where to give it", sheet)
	other := filepath.Join(t.TempDir(), "later.png")
	file, err := os.Create(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(file, image.NewGray(image.Rect(0, 0, 20, 10))); err != nil {
		t.Fatal(err)
	}
	file.Close()
	dora.shoot(other)
	dora.see("it", anyPhotos)
	dora.press(".sheet .primary")
	s.until("with two photos", id, func(now tracking.Task) bool { return len(now.Proofs) == 3 })
}

// All of it works without a network: what was given outlives the app, is sent in order and each
// once, and a PIN that was wrong can be put right.
func TestProofOffline(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	dora.phone(844)
	dora.expected = append(dora.expected, "status of 409")
	id := s.atDoor(s.newTask(2, "#1001", "photo", "signature", "name", "pin"))
	dora.see("the task", `document.querySelector('.main .primary.good`+ready+`') !== null`)
	s.gate.set(true)
	dora.end(id)
	dora.see("the sheet", sheet)
	dora.shoot(cameraPhoto(t))
	dora.see("the photo", anyPhotos)
	dora.enter("name", "Ada")
	dora.keeps("the name", `kept.get('written')`, `value?.['`+string(id)+`']?.received_by === 'Ada'`)

	// The app is closed with the sheet half filled in.
	dora.open("about:blank")
	dora.open(s.driver + "/driver/#task/" + string(id))
	dora.end(id)
	dora.see("what was given before",
		anyPhotos+` && document.querySelector('.sheet [data-kind=name] input').value === 'Ada'`)
	dora.sign()
	dora.enter("pin", s.wrongPIN(id))
	dora.see("that the PIN is checked later", `document.querySelector('[data-kind=pin] .sub').textContent.includes('later')`)
	dora.press(".sheet .primary")
	dora.see("that it waits", noSheet+` && document.querySelector('.undo') === null && document.querySelector('.chip.pending') !== null`)
	dora.open("about:blank")
	dora.open(s.driver + "/driver/")
	dora.see("that it waits still", `document.querySelector('.chip.succeeded') !== null`)
	if now := s.status(id); now.Status != tracking.StatusInProgress || len(now.Proofs) > 0 {
		t.Fatalf("offline the server knows %+v", now)
	}

	s.gate.set(false)
	dora.eval(`window.dispatchEvent(new Event('online'))`)
	dora.see("that the PIN was refused, of which order",
		`(() => { const text = document.querySelector('.banner.refused')?.textContent; return text?.includes('#1001') && text.includes('The PIN is not right'); })()`)
	if now := s.status(id); now.Status != tracking.StatusInProgress || len(now.Proofs) != 2 || now.WrongPINs != 1 {
		t.Errorf("after a wrong PIN the task is %+v", now)
	}
	dora.press(".banner.refused .small")
	dora.see("all but the PIN, and why",
		sheet+` && document.querySelector('.sheet .note.warn').textContent.includes('not right') && document.querySelector('.sheet [data-kind=name] input').value === 'Ada' && document.querySelectorAll('.sheet .given').length === 2`)
	dora.enter("pin", s.pin(id))
	dora.press(".sheet .primary")
	dora.see("no refusal any more", `document.querySelector('.banner.refused') === null`)
	s.until("succeeded", id, succeeded)
	now, files := s.status(id), s.proofs(id)
	if now.ReceivedBy != "Ada" || len(now.Proofs) != 2 || len(files[tracking.ProofPhoto]) != 1 {
		t.Errorf("the task ended as %+v", now)
	}
	upright(t, files[tracking.ProofPhoto][0])
	dora.keeps("no picture", `files.count()`, `value === 0`)
}

// keeps waits until what the phone has kept is as wanted: value is what the request brings.
func (p *person) keeps(what, request, is string) {
	p.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		kept, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](`new Promise((done, fail) => {
			const open = indexedDB.open('tracking-driver');
			open.onerror = fail;
			open.onsuccess = () => {
				const tx = open.result.transaction(['files', 'kept']);
				const files = tx.objectStore('files'), kept = tx.objectStore('kept');
				const r = `+request+`;
				tx.oncomplete = () => { const value = r.result; open.result.close(); done(`+is+`); };
			};
		})`, chromedp.EvalAwaitPromise))
		if err != nil {
			p.Fatal(err)
		}
		if kept {
			return
		}
		if time.Since(began) > patience {
			p.Fatalf("%s's phone never keeps %s", p.name, what)
		}
	}
}

// room is a place for files that may be full.
type room struct {
	tracking.Files
	full atomic.Bool
}

func (r *room) Put(ctx context.Context, app tracking.AppID, id string, f tracking.File) error {
	if r.full.Load() {
		return errors.New("no room")
	}
	return r.Files.Put(ctx, app, id, f)
}

// Where the server has no room for a photo the task waits with it, nothing else does, and nothing
// is told as refused.
func TestNoRoomForPhotos(t *testing.T) {
	files := &room{Files: memory.New().Files()}
	s := newService(t, "", func(o *tracking.Options, _ *httpadapter.Options) { o.Files = files })
	files.full.Store(true)
	dora := s.driving()
	dora.phone(844)
	dora.expected = append(dora.expected, "status of 503")
	id := s.atDoor(s.newTask(2, "#1001", "photo"))
	dora.end(id)
	dora.see("the sheet", sheet)
	dora.shoot(cameraPhoto(t))
	dora.see("the photo", anyPhotos)
	dora.press(".sheet .primary")
	dora.see("that it is done", noSheet)
	other := s.atDoor(s.newTask(2, "#1002"))
	dora.end(other)
	s.until("succeeded", other, succeeded)
	if now := s.status(id); now.Status != tracking.StatusInProgress || len(now.Proofs) > 0 {
		t.Errorf("without room the task is %+v", now)
	}
	dora.see("nothing refused", `document.querySelector('.banner.refused') === null`)
	files.full.Store(false)
	s.until("succeeded", id, succeeded)
	if now := s.status(id); len(now.Proofs) != 1 {
		t.Errorf("the task has the files %v", now.Proofs)
	}
	dora.keeps("no picture", `files.count()`, `value === 0`)
}

// A phone without room says so, and takes nothing for done that it cannot keep.
func TestPhoneWithoutRoom(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	dora.phone(844)
	id := s.atDoor(s.newTask(2, "#1001", "name"))
	dora.end(id)
	dora.see("the sheet", sheet)
	dora.enter("name", "Ada")
	dora.keeps("the name", `kept.get('written')`, `value?.['`+string(id)+`']?.received_by === 'Ada'`)
	dora.eval(`window.add = IDBObjectStore.prototype.add;
		IDBObjectStore.prototype.add = () => { throw new DOMException('full', 'QuotaExceededError'); }`)
	const full = `.includes('storage is full')`
	dora.shoot(cameraPhoto(t))
	dora.see("that there is no room for a photo", `document.querySelector('.sheet .problem').textContent`+full)
	dora.press(".sheet .primary")
	dora.see("that nothing was done", `document.querySelector('.banner')?.textContent`+full+
		` && document.querySelector('.undo') === null && document.querySelector('.main .primary.good`+ready+`') !== null`)
	dora.eval(`IDBObjectStore.prototype.add = window.add`)
	dora.end(id)
	dora.see("what was written before", sheet+` && document.querySelector('.sheet [data-kind=name] input').value === 'Ada'`)
	dora.press(".sheet .primary")
	s.until("succeeded", id, succeeded)
}

// Where ten PINs were wrong, only the dispatcher can end the task, and the app says so.
func TestLockedPIN(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	dora.phone(844)
	dora.expected = append(dora.expected, "status of 409")
	id := s.atDoor(s.newTask(2, "#1001", "pin"))
	for range 10 {
		if _, err := s.svc.FinishTask(t.Context(), "dora", id, tracking.Completion{PIN: tracking.Secret(s.wrongPIN(id))},
			tracking.Step{}); err == nil {
			t.Fatal("a wrong PIN was taken")
		}
	}
	dora.end(id)
	dora.see("the sheet", sheet)
	dora.enter("pin", s.pin(id))
	dora.press(".sheet .primary")
	dora.see("that only the dispatcher can",
		`document.querySelector('.banner.refused')?.textContent.includes('Only your dispatcher')`)
	s.api("POST", "/v1/task/complete", map[string]any{"task_id": string(id)})
	dora.see("nothing to put right",
		`document.querySelector('.banner.refused') !== null && document.querySelector('.banner.refused .small') === null`)
}

// The sheets pass the rules of axe, in light and dark, empty, filled in, and with what lacks.
func TestAccessibilityOfSheets(t *testing.T) {
	axe, photo := readAxe(t), cameraPhoto(t)
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			s := newService(t, "")
			dora := s.driving()
			dora.phone(844)
			dora.prefers(scheme)
			dora.expected = append(dora.expected, "status of 409")
			id := s.newTask(2, "#1001", "photo", "signature", "name", "pin")
			dora.see("the task", `document.querySelector('.main .primary`+ready+`') !== null`)
			dora.eval(`location.hash = '#task/` + string(id) + `'`)
			dora.press(".bar .button")
			dora.see("the reasons to decline", sheet)
			dora.accessible(axe, "declining")
			dora.press(".sheet .dialog-actions .button")
			dora.press(".bar .primary")
			dora.arrive(".bar")
			dora.end(id)
			dora.see("the sheet", sheet)
			dora.accessible(axe, "proof, empty")
			dora.press(".sheet .primary")
			dora.see("what lacks", `document.querySelector('.sheet .problem').textContent !== ''`)
			dora.accessible(axe, "proof that lacks")
			dora.shoot(photo)
			dora.see("the photo", anyPhotos)
			dora.sign()
			dora.enter("name", "Ada")
			dora.enter("pin", s.wrongPIN(id))
			dora.accessible(axe, "proof, filled in")
			dora.press(".sheet .primary")
			dora.see("the refusal", `document.querySelector('.banner.refused .small`+ready+`') !== null`)
			dora.accessible(axe, "a PIN refused")
			dora.press(".banner.refused .small")
			dora.see("why", `document.querySelector('.sheet .note.warn') !== null`)
			dora.accessible(axe, "a PIN to put right")
			dora.press(".sheet .dialog-actions .button")
			dora.see("a button that takes a step", noSheet+` && document.querySelector('.bar .primary`+ready+`') !== null`)
			dora.press(".bar .button")
			dora.see("the reasons", sheet)
			dora.eval(`document.querySelector('.sheet .choice input').click()`)
			dora.accessible(axe, "failing")
		})
	}
}

// Why a task failed is said by the application's reasons, in its words, with a photo; and why one
// was declined.
func TestReasonsOfTheApplication(t *testing.T) {
	s := newService(t, "", func(o *tracking.Options, over *httpadapter.Options) {
		o.Reasons = []tracking.ReasonCode{"gate_locked", "no_lift"}
		over.Site = web.Site{Reasons: map[string]string{"gate_locked": "The gate was locked", "damaged": ""}}
	})
	dora := s.driving()
	dora.phone(844)
	id := s.atDoor(s.newTask(2, "#1001", "photo"))
	dora.eval(`location.hash = '#task/` + string(id) + `'; window.dispatchEvent(new Event('online'))`)
	dora.see("that it is under way", `document.querySelector('.main .primary.good`+ready+`') !== null`)
	dora.press(`.bar .button`)
	dora.see("the reasons", `[...document.querySelectorAll('.sheet .choice')].map((e) => e.textContent).join() ===
		'Nobody was at home,It was refused,The address was wrong,The place was closed,It was too late,The gate was locked,no lift,Another reason'`)
	dora.eval(`document.querySelector('.sheet input[value=gate_locked]').click()`)
	dora.shoot(cameraPhoto(t))
	dora.see("the photo", anyPhotos)
	dora.eval(`(() => { const e = document.querySelector('.sheet textarea'); e.value = 'Rang twice'; e.dispatchEvent(new Event('input', { bubbles: true })); })()`)
	dora.press(".sheet .primary")
	s.until("failed", id, func(now tracking.Task) bool { return now.Outcome == tracking.OutcomeFailed })
	if now := s.status(id); now.ReasonCode != "gate_locked" || now.Reason != "Rang twice" || len(now.Proofs) != 1 {
		t.Errorf("the task failed as %+v", now)
	}
	dora.see("why", `document.querySelector('.main .note')?.textContent === 'The gate was locked · Rang twice'`)

	id = s.newTask(2, "#1002")
	dora.eval(`location.hash = '#task/` + string(id) + `'`)
	dora.see("that it can be started", `document.querySelector('.main .primary`+ready+`') !== null`)
	dora.press(`.bar .button`)
	dora.see("the reasons", `document.querySelector('.sheet input[value=no_lift]') !== null && document.querySelector('.sheet input[value=not_home]') === null`)
	dora.eval(`document.querySelector('.sheet input[value=no_lift]').click()`)
	dora.press(".sheet .primary")
	s.until("declined", id, func(now tracking.Task) bool { return now.DriverID == "" })
	res, err := http.Get(s.url + "/v1/events?apikey=" + apiKey + "&task_id=" + string(id))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if events, _ := io.ReadAll(res.Body); !strings.Contains(string(events), `"reason_code":"no_lift"`) {
		t.Errorf("declined as %s", events)
	}
}
