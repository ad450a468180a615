package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

// No text of a task or a driver, be it pasted, found or listed, becomes anything but text.
func TestVectorsBoard(t *testing.T) {
	s := onFile(t)
	line := func(v string) string { // as the API takes it in ids
		v = strings.Map(func(r rune) rune {
			if r < 0x20 || r >= 0x7f && r < 0xa0 {
				return -1
			}
			return r
		}, v)
		return string([]rune(v)[:min(200, len([]rune(v)))])
	}
	var tasks []map[string]any
	var cells []string
	for _, v := range vectors(t) {
		v = strings.ReplaceAll(v, "\x00", "")
		if v == "" || len([]rune(v)) > 200 {
			continue
		}
		mobile := string([]rune(v)[:min(32, len([]rune(v)))])
		place := map[string]any{"address": v, "customer": map[string]any{"name": v, "mobile": mobile}}
		tasks = append(tasks, map[string]any{
			"type": 3, "order_id": line(v), "notes": v, "pickup": place, "drop": place, "window": agreed(),
			"properties": map[string]any{"a": v},
		})
		cells = append(cells, `"`+strings.ReplaceAll(v, `"`, `""`)+`"`)
	}
	for part := range slices.Chunk(tasks, 200) {
		for _, r := range s.api("POST", "/v1/task/batch", map[string]any{"tasks": part})["results"].([]any) {
			if e := r.(map[string]any)["error"]; e != nil {
				t.Fatal(e)
			}
		}
	}
	for i, v := range vectors(t) {
		if v = line(v); i%20 == 0 && v != "" {
			s.api("POST", "/v1/users/driver", map[string]any{
				"driver_id": fmt.Sprint("d", i), "name": v, "availability": true, "properties": map[string]any{"a": v},
			})
		}
	}
	var ids []string
	for _, task := range s.tasks("") {
		ids = append(ids, task["task_id"].(string))
	}

	p := newPerson(t, chromium(t), "the dispatcher", s.origins[0])
	p.desk(1280, 900)
	p.beforeScripts(`document.addEventListener('DOMContentLoaded', () => {` + watch + `})`)
	p.signIn(s, tracking.RoleDispatch)
	clean := func(where string) {
		t.Helper()
		p.see("nothing but text in "+where,
			`(() => { const h = window.hits.filter((x) => x !== 'element form'); if (h.length) throw new Error(h.slice(0, 5).join('; ')); return true; })()`)
	}
	clean("the columns")
	if os.Getenv("TRACKING_LONG") != "1" { // a panel each takes its time; the lists above and below hold all of them
		var some []string
		for i := 0; i < len(ids); i += 8 {
			some = append(some, ids[i])
		}
		ids = some
	}
	list, err := json.Marshal(ids)
	if err != nil {
		t.Fatal(err)
	}
	p.eval(`(async () => {
		const frames = () => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)));
		for (const id of ` + string(list) + `) {
			location.hash = '#task/' + encodeURIComponent(id);
			await frames();
		}
	})()`)
	p.see("the last of the tasks", `document.querySelector('.panel-task .history li') !== null`)
	clean("tasks")
	p.eval(`location.hash = '#edit/' + encodeURIComponent(` + string(list) + `[0])`)
	p.see("the form", `document.querySelector('.panel-edit [name=notes]') !== null`)
	clean("a form")
	p.eval(`location.hash = '#people'`)
	p.see("the drivers", `document.querySelectorAll('.people a').length > 10`)
	clean("drivers")
	p.day()
	p.see("the day", `document.querySelectorAll('.found a').length > 100`)
	clean("the day")
	p.keys("\x1b")
	p.see("no panel", `document.querySelector('.panel') === null`)
	p.keys("p")
	p.see("where to paste", `document.activeElement?.id === 'paste'`)
	p.insert("Address\tName\n" + strings.Join(cells, "\tAnna\n"))
	p.see("the preview", `document.querySelectorAll('.preview tbody tr').length > 90`)
	clean("a paste")
	p.onlyFrom(s.origins[0])
}

// Each panel passes the rules of axe, in light and dark, on a desk and on a phone.
func TestBoardPanelsAccessible(t *testing.T) {
	axe := readAxe(t)
	s := onFile(t)
	s.invite("dora", "Dora Example")
	s.api("POST", "/v1/users/driver", map[string]any{
		"driver_id": "dora", "availability": true, "lnglat": []float64{13.4, 52.5},
	})
	s.api("POST", "/v1/users/driver", map[string]any{"driver_id": "eli", "availability": true})
	open := s.newTask(3, "#1", "pin")
	ended := s.newTask(2, "#2")
	s.api("POST", "/v1/task/update", map[string]any{"task_id": string(open), "window": agreed()})
	s.api("POST", "/v1/task/cancel", map[string]any{"task_id": string(ended), "reason_code": "refused"})
	p := newPerson(t, chromium(t), "the dispatcher", s.origins[0])
	for _, look := range []struct {
		scheme        string
		width, height int64
	}{{"light", 1280, 900}, {"dark", 390, 844}} {
		p.prefers(look.scheme)
		p.desk(look.width, look.height)
		if look.scheme == "light" {
			p.signIn(s, tracking.RoleDispatch)
		}
		at := func(hash, ready string, then ...string) {
			t.Helper()
			p.eval(`location.hash = '#` + hash + `'`)
			p.see(hash, `document.querySelector('`+ready+`') !== null`)
			for _, words := range then {
				p.hit(words)
			}
			p.accessible(axe, look.scheme+", "+hash)
		}
		at("task/"+string(open), ".panel-task .history li",
			"Show the link", "QR code", "Complete for the driver…", "Cancel delivery")
		at("task/"+string(ended), ".panel-task .history li", "Delete the task")
		at("edit/"+string(open), ".panel-edit [name=notes]")
		at("new", ".panel-new [name=notes]", "Save")
		p.eval(`document.querySelectorAll('.mark-box input:not(:checked)').forEach((e) => e.click())`)
		at("several/of:dora", ".panel-several .several input")
		at("assign/"+string(open), ".panel-assign [name=at]")
		at("people", ".panel-people .people a", "Invite a driver")
		at("driver/dora", ".panel-driver .facts-list", "Invite again")
		p.day()
		at("day", ".panel-day .found a")
		at("search", ".panel-search input")
		p.see("where to search", `document.activeElement?.name === 'q'`)
		p.keys("river")
		p.see("what is found", `document.querySelector('.found a') !== null`)
		p.accessible(axe, look.scheme+", found")
		p.eval(`location.hash = '#paste'`)
		p.see("where to paste", `document.activeElement?.id === 'paste'`)
		p.insert(spreadsheet())
		p.see("the preview", `document.querySelector('.preview tr.bad') !== null`)
		p.accessible(axe, look.scheme+", paste")
		p.see("no wider than the window", `document.documentElement.scrollWidth <= innerWidth`)
	}
}
