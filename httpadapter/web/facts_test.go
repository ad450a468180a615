package web_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/seed-8aba7b13/tracking"

	"github.com/seed-8aba7b13/tracking/httpadapter/web"
	"github.com/seed-8aba7b13/tracking/store/storetest/declared"
)

// The browser code is held to the same file by test/state.test.ts.
func TestPhases(t *testing.T) {
	data, err := os.ReadFile("testdata/phases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name                 string
		Tracking             json.RawMessage
		Phase, Place, Detail string
		Steps                []string
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	words := web.Words("en")
	at := regexp.MustCompile(`datetime="([^"]*)"`)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			html := visible(track(t, web.Site{}, string(c.Tracking), "en"))
			if !strings.Contains(html, `data-phase="`+c.Phase+`"`) ||
				!strings.Contains(html, ">"+words["track.headline."+c.Phase]+"</h1>") {
				t.Errorf("the page does not show phase %s", c.Phase)
			}
			if c.Detail != "" && !strings.Contains(html, words[c.Detail]) {
				t.Errorf("the page does not say %q", words[c.Detail])
			}
			var got []string
			for _, m := range stepPattern.FindAllStringSubmatch(html, -1) {
				step := m[1] + " " + m[2]
				if d := at.FindStringSubmatch(m[0]); d != nil {
					step += " " + d[1]
				}
				if !strings.Contains(m[0], ">"+words["track.step."+m[1]]+"<") ||
					!strings.Contains(m[0], ", "+words["track.step."+m[2]]+"<") {
					t.Errorf("step %s lacks its words", m[1])
				}
				got = append(got, step)
			}
			if d := cmp.Diff(c.Steps, got); d != "" {
				t.Error(d)
			}
		})
	}
}

const underWay = `{"kind":"task","type":2,"status":"in_progress","outcome":"","order_id":"#1001","driver":{"name":"Ada"},
	"place":{"address":"12 Long Street","lnglat":[10,50]},"time":"2026-03-01T09:00:00.000Z","started_at":"2026-03-01T09:50:00.000Z",
	"position":{"lnglat":[10.01,50.01],"time":"2026-03-01T09:59:30.000Z","live":true},"path":[[10.02,50.02],[10.01,50.01]],
	"eta":{"time":"2026-03-01T10:11:00.000Z"}}`

func TestFactsWithoutScript(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zone database")
	}
	for _, c := range []struct {
		name, accept string
		zone         *time.Location
		want         []string
	}{
		{
			"English, UTC", "en", nil,
			[]string{
				"Your order is on the way", "Ada", "12 Long Street", "#1001", "between 10:10 UTC and 10:15 UTC",
				"Position of 09:59 UTC", `<html lang="en" dir="ltr">`,
			},
		},
		{
			"German, zone of the brand", "fr;q=0.9, de-AT, en;q=0.5", berlin,
			[]string{
				"Ihre Bestellung ist unterwegs", "zwischen 11:10 und 11:15", "Stand der Position: 10:59",
				`<html lang="de" dir="ltr">`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			html := visible(track(t, web.Site{TimeZone: c.zone}, underWay, c.accept))
			for _, w := range c.want {
				if !strings.Contains(html, w) {
					t.Errorf("the page does not say %q", w)
				}
			}
		})
	}
}

func TestExpectedTime(t *testing.T) {
	for eta, want := range map[string]string{
		"10:00:29": "any moment now",
		"10:00:30": "about 10:01 UTC",
		"10:02:10": "about 10:02 UTC",
		"10:09:29": "about 10:09 UTC",
		"10:09:30": "between 10:05 UTC and 10:10 UTC",
		"10:20:00": "between 10:15 UTC and 10:25 UTC",
		"10:58:00": "between 10:45 UTC and 11:10 UTC",
	} {
		if html := visible(track(t, web.Site{}, strings.Replace(underWay, "T10:11:00", "T"+eta, 1),
			"en")); !strings.Contains(html, want) {
			t.Errorf("expected at %s: the page does not say %q", eta, want)
		}
	}
}

// An estimate of days is none to tell, as from a first position that is wrong; one worked out by
// roads is told with its day.
func TestExpectedTimeOfDays(t *testing.T) {
	at := func(source string) string {
		return visible(track(t, web.Site{},
			strings.Replace(underWay, `"2026-03-01T10:11:00.000Z"`, `"2026-03-03T10:00:00.000Z","source":"`+source+`"`,
				1), "en"))
	}
	if html := at("estimate"); strings.Contains(html, "between ") || !strings.Contains(html, "Follow the journey live") {
		t.Error("the page tells a time that is days away, by an estimate")
	}
	if html := at("router"); !strings.Contains(html, "2026-03-03, between 00:25 UTC and 19:35 UTC") {
		t.Error("the page does not tell the day of a time that is worked out")
	}
}

func TestExpectedTimeThatHasPassed(t *testing.T) {
	html := visible(track(t, web.Site{}, strings.Replace(underWay, "T10:11:00", "T09:58:00", 1), "en"))
	if !strings.Contains(html, "any moment now") || strings.Contains(html, "about ") {
		t.Error("the page names a time in the past")
	}
}

func TestAgreedTimes(t *testing.T) {
	waiting := func(more string) string {
		return visible(track(t, web.Site{}, `{"kind":"task","type":2,"status":"assigned","phase":"assigned","path":[]`+
			more+`}`, "en"))
	}
	const late = "Later than promised: was "
	for _, c := range []struct{ name, more, want, not string }{
		{
			"window", `,"window":{"from":"2026-03-01T14:00:00.000Z","to":"2026-03-01T16:00:00.000Z"}`,
			"between 14:00 UTC and 16:00 UTC", late,
		},
		{
			"window on another day", `,"window":{"from":"2026-03-02T14:00:00.000Z","to":"2026-03-02T16:00:00.000Z"}`,
			"2026-03-02, between 14:00 UTC and 16:00 UTC", late,
		},
		{"from", `,"window":{"from":"2026-03-01T14:00:00.000Z"}`, "from 14:00 UTC", late},
		{"promise", `,"promised":"2026-03-01T16:00:00.000Z"`, "by 16:00 UTC", late},
		{"passed", `,"promised":"2026-03-01T09:30:00.000Z"`, late + "09:30 UTC<", "by 09:30"},
	} {
		t.Run(c.name, func(t *testing.T) {
			html := waiting(c.more)
			if !strings.Contains(html, c.want) || strings.Contains(html, c.not) {
				t.Errorf("the page does not say %q, or says %q", c.want, c.not)
			}
		})
	}
	moving := strings.Replace(underWay, `"eta"`, `"promised":"2026-03-01T10:10:59.000Z","stops_before":3,"eta"`, 1)
	if there := visible(track(t, web.Site{}, strings.NewReplacer(`"eta"`, `"phase":"at_drop","promised":"2026-03-01T09:30:00.000Z","eta"`).
		Replace(underWay), "en")); strings.Contains(there, late) || !strings.Contains(there, "at your door") {
		t.Error("a driver who is there is late")
	}
	html := visible(track(t, web.Site{}, moving, "en"))
	for _, want := range []string{late + "10:10 UTC", "between 10:10 UTC and 10:15 UTC", "3 stops before you"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// Why it failed is said in the words of the site, or not at all, and never the code.
func TestReasons(t *testing.T) {
	site := web.Site{Reasons: map[string]string{"dog_loose": "A dog was loose", "refused": "", "closed": "Your shop was shut"}}
	if err := site.Check(); err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]string{
		"not_home": "Nobody was at home", "closed": "Your shop was shut", "dog_loose": "A dog was loose",
		"refused": "", "rain": "", "": "",
	} {
		html := visible(track(t, site, `{"kind":"task","type":2,"status":"completed","outcome":"failed","reason_code":"`+
			code+`","path":[]}`, "en"))
		detail := `<p id="detail" class="detail">` + want + `</p>`
		if want == "" {
			detail = `<p id="detail" class="detail" hidden></p>`
		}
		if !strings.Contains(html, detail) || code != "" && strings.Contains(html, code) {
			t.Errorf("%s: the page does not say %q", code, want)
		}
	}
}

func TestProofOnThePage(t *testing.T) {
	site := web.Site{Prefix: "/x", FeedbackURL: "https://shop.example/f", ContactURL: "tel:+4930"}
	near := visible(track(t, site, strings.Replace(underWay, `"eta"`, `"pin":"0471","eta"`, 1), "en"))
	for _, want := range []string{
		">0\u00a04\u00a07\u00a01</strong>", `href="tel:&#43;4930"`, `href="https://shop.example/f" target="_top" rel="noopener" hidden`,
	} {
		if !strings.Contains(near, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	over := visible(track(t, site, `{"kind":"task","type":2,"status":"completed","outcome":"succeeded","path":[],
		"received_by":"Mr <b>","photos":["p/1","p2"]}`, "en"))
	for _, want := range []string{
		"Mr &lt;b&gt;", `src="/x/track/TOKEN/proof/p%2F1" alt="Photo of the delivery"`, `src="/x/track/TOKEN/proof/p2"`,
		`href="https://shop.example/f" target="_top" rel="noopener">`,
	} {
		if !strings.Contains(over, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for outcome, want := range map[string]string{"failed": "Nobody was at home", "cancelled": "Cancelled"} {
		reason := map[string]string{"failed": "not_home"}[outcome]
		html := visible(track(t, site, `{"kind":"task","type":2,"status":"created","path":[],"earlier":{"outcome":"`+outcome+
			`","reason_code":"`+reason+`","ended_at":"2026-03-01T09:10:00.000Z"}}`, "en"))
		if !strings.Contains(html, ">09:10 UTC · "+want+"</span>") {
			t.Errorf("the page does not say how the first try ended: %s", want)
		}
	}
}

func TestNothingAfterTheEnd(t *testing.T) {
	html := visible(track(t, web.Site{},
		`{"kind":"task","type":2,"status":"completed","outcome":"succeeded","ended_at":"2026-02-28T09:40:00.000Z","path":[]}`, "en"))
	for _, no := range []string{"Position", `http-equiv="refresh"`, "modulepreload"} {
		if strings.Contains(html, no+" of") || no != "Position" && strings.Contains(html, no) {
			t.Errorf("a page of something that is over has %q", no)
		}
	}
	if !strings.Contains(html, "2026-02-28 09:40 UTC") {
		t.Error("the page does not say when it ended")
	}
}

// The digits by which a customer is found and erased are those that the board has for a number.
func TestDigits(t *testing.T) {
	data, err := os.ReadFile("testdata/digits.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases [][2]string
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		task := tracking.Task{Drop: &tracking.Place{Customer: &tracking.Contact{Mobile: c[0]}}}
		_, tails := task.SearchTerms()
		if got := strings.Join(tails, " "); got != c[1] {
			t.Errorf("%q has the digits %q, want %q", c[0], got, c[1])
		}
	}
}

// Each state and outcome that there is has a phase in testdata/phases.json, to which the page and
// the browser code are held.
func TestNoPhaseIsForgotten(t *testing.T) {
	data, err := os.ReadFile("testdata/phases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Tracking struct{ Kind, Status, Outcome string }
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, c := range cases {
		shown[c.Tracking.Kind+" "+c.Tracking.Status] = true
		shown[c.Tracking.Kind+" completed "+c.Tracking.Outcome] = true
	}
	for prefix, typ := range map[string]string{
		"task ": "TaskStatus", "task completed ": "Outcome", "trip ": "TripStatus",
	} {
		for _, word := range declared.Values(t, "../..", typ) {
			if !shown[prefix+word] {
				t.Errorf("testdata/phases.json has no case of a %s%s", prefix, word)
			}
		}
	}
}
