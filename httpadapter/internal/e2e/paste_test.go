package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// spreadsheet is 40 rows of a spreadsheet, of which three cannot be tasks.
func spreadsheet() string {
	rows := []string{"Auftrag\tEmpfänger\tStraße\tPLZ\tOrt\tTelefon\tZeitfenster\tHinweis"}
	for i := 1; i <= 40; i++ {
		street, window := fmt.Sprintf("Hauptstraße %d", i), "2026-03-01 14:00-16:00"
		switch i {
		case 7:
			street = "" // and no town
		case 19:
			window = "bald"
		case 33:
			window = "2026-03-02 16:00 – 2026-03-01 14:00"
		}
		town := "10115\tBerlin"
		if i == 7 {
			town = "\t"
		}
		rows = append(rows, fmt.Sprintf("A-%d\tAnna Ott %d\t%s\t%s\t+49 151 %07d\t%s\t%s",
			i, i, street, town, i, window, `"2. OG; ""links"""`))
	}
	return strings.Join(rows, "\r\n")
}

// Forty rows with three mistakes: each mistake is told in its row, the others are made, and pasting
// them again makes nothing twice. What the server refuses is told in its row, and never as done.
func TestBoardPaste(t *testing.T) {
	s := onFile(t)
	p := s.atPanels()
	paste := func(text string) {
		t.Helper()
		p.see("where to paste", `document.activeElement?.id === 'paste'`)
		p.insert(text)
	}
	p.keys("p")
	paste(spreadsheet())
	p.reads("40 rows: 37 can be created, 3 cannot.")
	for line, fault := range map[int]string{8: "No address and no place.", 20: "No time.", 34: "Ends before it begins."} {
		p.see("what is wrong with row "+fmt.Sprint(line), fmt.Sprintf(
			`[...document.querySelectorAll('.preview tr.bad')].some((r) => r.cells[0].textContent === '%d' && r.cells[1].textContent === %q)`, line, fault))
	}
	if n := len(s.tasks("")); n != 0 {
		t.Fatalf("%d tasks before anything was sent", n)
	}
	p.eval(`(() => { window.flashed = 0; new MutationObserver(() => (window.flashed += document.querySelectorAll('.fresh').length))
		.observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ['class'] }); })()`)
	p.hit("Create 37 tasks")
	p.said("37 created · 3 left out")
	p.see("them in the list, none as news of somebody else's",
		`document.querySelectorAll('.needs [data-row^="task "]').length === 37 && window.flashed === 0`)
	p.see("37 rows that say so", `document.querySelectorAll('.preview tr.made').length === 37 && document.querySelectorAll('.preview tr.bad').length === 3`)
	made := s.tasks("")
	if len(made) != 37 {
		t.Fatalf("%d tasks, want 37", len(made))
	}
	first := made[slices.IndexFunc(made, func(t map[string]any) bool { return t["order_id"] == "A-1" })]
	drop := first["drop"].(map[string]any)
	if got := fmt.Sprint(drop["address"], drop["customer"], first["notes"]); got !=
		`Hauptstraße 1, 10115 Berlinmap[mobile:+49 151 0000001 name:Anna Ott 1]2. OG; "links"` {
		t.Errorf("the first row became %s", got)
	}

	p.hit("Paste more")
	paste(spreadsheet())
	p.hit("Create 37 tasks")
	p.said("37 were there already · 3 left out")
	p.see("37 rows that say so", `document.querySelectorAll('.preview tr.there').length === 37`)
	if n := len(s.tasks("")); n != 37 {
		t.Errorf("%d tasks after pasting twice, want 37", n)
	}

	p.hit("Paste more")
	paste(strings.Replace(spreadsheet(), "Hauptstraße 5\t", "Nebenstraße 5\t", 1))
	p.hit("Create 37 tasks")
	p.said("36 were there already · 1 refused · 3 left out")
	p.see("which one it is", `(() => {
		const rows = [...document.querySelectorAll('.preview tr.bad')].filter((r) => r.textContent.includes('was pasted before'));
		return rows.length === 1 && rows[0].textContent.includes('Nebenstraße 5');
	})()`)
	p.keys("\x1b")
	p.see("no panel, and all of them on the board",
		`document.querySelector('.panel') === null && document.querySelector('.facts').textContent.includes('37')`)
	p.onlyFrom(s.origins[0])
}

// A network that breaks off in the middle of a paste leaves nothing said to be done, and what is sent
// again is made once.
func TestBoardPasteBrokenOff(t *testing.T) {
	s := onFile(t)
	p := s.atPanels()
	// The first answer is lost, as when a proxy gives up: the rows are made, and nobody has heard so.
	p.eval(`(() => {
		const real = window.fetch;
		let lost = false;
		window.fetch = async (...a) => {
			const r = await real(...a);
			if (String(a[0]).endsWith('/v1/task/batch') && !lost) { lost = true; throw new TypeError('lost'); }
			return r;
		};
	})()`)
	p.keys("p")
	p.see("where to paste", `document.activeElement?.id === 'paste'`)
	p.insert("Address\tName\nWeg 1\tAnna\nWeg 2\tBo\nWeg 1\tAnna")
	p.hit("Create 3 tasks")
	p.said("3 without an answer")
	p.hit("Send 3 again")
	p.said("3 created")
	if n := len(s.tasks("")); n != 3 {
		t.Errorf("%d tasks, want 3", n)
	}
}

// Tasks one after the other without a mouse; a mistake is told where it is; a click on the map is a
// place.
func TestBoardNewTasks(t *testing.T) {
	s := onFile(t)
	p := s.atPanels()
	at := func(name string) {
		t.Helper()
		p.see("the focus in "+name, `document.activeElement?.name === '`+name+`'`)
	}
	p.keys("n")
	at("drop-address")
	p.keys("\r")
	p.see("what is missing", `document.activeElement?.name === 'drop-address' && document.activeElement.getAttribute('aria-invalid') === 'true'`)
	p.keys("12 Beach Road\tnowhere\tAnna\t+49 151 1\r")
	p.see("which place is none", `document.activeElement?.name === 'drop-point' && document.activeElement.getAttribute('aria-invalid') === 'true'`)
	p.eval(`document.activeElement.select()`)
	p.keys("13.0039, 80.2628\r")
	p.reads("12 Beach Road was created.")
	at("drop-address")
	p.keys("7 Anna Salai\r")
	p.reads("7 Anna Salai was created.")
	at("drop-address")
	p.keys("Somewhere")
	x, y := p.spot(".leaflet-container")
	p.mouse(x-80, y-90) // in the middle is the task before
	p.see("the place that was clicked", `/^-?[\d.]+, -?[\d.]+$/.test(document.querySelector('[name=drop-point]').value)`)
	p.eval(`document.querySelector('[name=drop-address]').focus()`)
	p.keys("\r")
	p.reads("Somewhere was created.")
	p.keys("\x1b")
	p.see("all three, the last one selected",
		`document.querySelector('.panel') === null && document.querySelector('.row-main[aria-pressed=true]')?.textContent.includes('Somewhere')`)
	list := s.tasks("")
	if len(list) != 3 {
		t.Fatalf("%d tasks, want 3", len(list))
	}
	drop := list[2]["drop"].(map[string]any)
	if got := fmt.Sprint(drop["lnglat"], drop["customer"]); got != "[80.2628 13.0039] map[mobile:+49 151 1 name:Anna]" {
		t.Errorf("the first task goes to %s", got)
	}
	if list[0]["drop"].(map[string]any)["lnglat"] == nil {
		t.Error("the last task has no place")
	}
	p.onlyFrom(s.origins[0])
}
