package web_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking/httpadapter/web"
	"github.com/seed-8aba7b13/tracking/store/storetest/declared"
)

// TestCheckLinks: what a page could not link to, or would lead elsewhere with another order, is
// refused when the program starts.
func TestCheckLinks(t *testing.T) {
	for _, good := range []string{
		"", "/help", "https://shop.example/help", "http://localhost:8080/{order_id}",
		"/orders/{order_id}/help?t={task_id}",
		"https://shop.example/{order_id}/{order_id}#{task_id}", "https://shop.example?o={order_id}",
		"mailto:help@shop.example", "mailto:help@shop.example?subject=Order%20{order_id}", "tel:+4930123456",
		"sms:+4930123456?body=Order%20{order_id}", "https://shop.example/{task_id}",
	} {
		for _, site := range []web.Site{{ContactURL: good}, {HelpURL: good}, {FeedbackURL: good}} {
			if err := site.Check(); err != nil {
				t.Errorf("%q: %v", good, err)
			}
		}
	}
	for _, c := range []struct{ url, want string }{
		{"javascript:alert(1)", "must be a path"},
		{"JavaScript:alert('{order_id}')", "must be a path"},
		{"data:text/html,{order_id}", "must be a path"},
		{"//evil.example/{order_id}", "must be a path"},
		{"help.html", "must be a path"},
		{"{order_id}", "must be a path"},
		{"{order_id}:x", "must be a path"},
		{"https://", "must be a path"},
		{"mailto:", "must be a path"},
		{"https://shop.example/%zz", "must be a path"},
		{"https://shop.example/\n", "must be a path"},
		{"https://{order_id}.shop.example/", "after the host"},
		{"https://shop.example:{order_id}/", "must be a path"},
		{"https://{order_id}@shop.example/", "after the host"},
		{"https://{task_id}/", "after the host"},
		{"https://shop.example/{order}", "no other braces"},
		{"https://shop.example/{order_id", "no other braces"},
		{"https://shop.example/{}", "no other braces"},
		{"https://shop.example/{{order_id}}", "no other braces"},
	} {
		for name, site := range map[string]web.Site{
			"ContactURL": {ContactURL: c.url}, "HelpURL": {HelpURL: c.url}, "FeedbackURL": {FeedbackURL: c.url},
		} {
			err := site.Check()
			if err == nil || !strings.HasPrefix(err.Error(), name+": ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s %q: %v, want one that says %q", name, c.url, err, c.want)
			}
		}
	}
}

// TestSiteFor: ids stand in URLs percent-encoded, whatever they hold, and never change where a URL
// leads.
func TestSiteFor(t *testing.T) {
	for _, c := range []struct{ url, order, task, want string }{
		{"https://shop.example/o/{order_id}?t={task_id}", "17", "01kk", "https://shop.example/o/17?t=01kk"},
		{"https://shop.example/{order_id}", "#1001 a/b", "", "https://shop.example/%231001%20a%2Fb"},
		{"https://shop.example/?o={order_id}", "a&b=c+d%20", "", "https://shop.example/?o=a%26b%3Dc%2Bd%2520"},
		{"https://shop.example/{order_id}", `"'<>` + "`", "", "https://shop.example/%22%27%3C%3E%60"},
		{"https://shop.example/{order_id}", "größe 👍", "", "https://shop.example/gr%C3%B6%C3%9Fe%20%F0%9F%91%8D"},
		{"https://shop.example/{order_id}", "{task_id}", "x", "https://shop.example/%7Btask_id%7D"},
		{"https://shop.example/{order_id}", "..", "", "https://shop.example/.."},
		{"https://shop.example/o?o={order_id}", "", "", "https://shop.example/o?o="},
		{"mailto:a@b.example?subject={order_id}", "a, b?", "", "mailto:a@b.example?subject=a%2C%20b%3F"},
		{"tel:+4930", "17", "", "tel:+4930"},
		{"", "17", "x", ""},
		{"/{order_id}/evil.example", "17", "", "/17/evil.example"},
		{"/{order_id}/evil.example", "", "", ""}, // it would be //evil.example
		{"/{order_id}", "/evil.example", "", "/%2Fevil.example"},
	} {
		site := web.Site{Name: "n", ContactURL: c.url, HelpURL: c.url, FeedbackURL: c.url}
		if err := site.Check(); err != nil {
			t.Errorf("%q: %v", c.url, err)
		}
		want := web.Site{Name: "n", ContactURL: c.want, HelpURL: c.want, FeedbackURL: c.want}
		if d := cmp.Diff(want, site.For(c.order, c.task)); d != "" {
			t.Errorf("%q with %q, %q (-want +got)\n%s", c.url, c.order, c.task, d)
		}
	}
}

// pageConfig is what a page hands to its script.
type pageConfig struct {
	Reasons map[string]string
	Links   map[string]string
}

var configPattern = regexp.MustCompile(`(?s)<script type="application/json" id="config">(.*?)</script>`)

func configOf(t *testing.T, p web.Page) (c pageConfig) {
	t.Helper()
	m := configPattern.FindSubmatch(p.HTML)
	if m == nil {
		t.Fatal("the page has no configuration")
	}
	if err := json.Unmarshal(m[1], &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConfigHasLinksAndReasons: both pages get the words of reasons, those of the Site first, and the
// tracking page the URLs.
func TestConfigHasLinksAndReasons(t *testing.T) {
	site := web.Site{
		ContactURL: "sms:+4930?body={order_id}", HelpURL: "https://shop.example/?o={order_id}&t={task_id}",
		Words:   map[string]map[string]string{"de": {"reason.closed": "Zu", "reason.refused": "Abgelehnt"}},
		Reasons: map[string]string{"refused": "You said no", "too_late": "", "dog_outside": "<b>A dog</b> & \"more\""},
	}
	if err := site.Check(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"not_home": "Niemand war zu Hause", "refused": "You said no", "wrong_address": "Die Adresse stimmte nicht",
		"damaged": "Die Ware war beschädigt", "closed": "Zu", "other": "Ein anderer Grund",
		"dog_outside": "<b>A dog</b> & \"more\"",
	}
	page := track(t, site.For("#1", "t1"), underWay, "de")
	driver, err := newFronts(t).Driver(site, "de", now)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]pageConfig{"tracking": configOf(t, page), "driver": configOf(t, driver)} {
		if d := cmp.Diff(want, got.Reasons); d != "" {
			t.Errorf("%s: reasons (-want +got)\n%s", name, d)
		}
	}
	if d := cmp.Diff(map[string]string{
		"contact": "sms:+4930?body=%231", "help": "https://shop.example/?o=%231&t=t1",
	}, configOf(t, page).Links); d != "" {
		t.Errorf("links (-want +got)\n%s", d)
	}
	if !strings.Contains(visible(page), `href="https://shop.example/?o=%231&amp;t=t1"`) {
		t.Error("the page without script has no link to the help")
	}
	if got := configOf(t, driver).Links; got != nil {
		t.Errorf("the driver app has links: %v", got)
	}
	if strings.Contains(string(page.HTML), "<b>A dog") {
		t.Error("words are markup")
	}

	// Where nobody has said for whom, nothing stands in the places.
	bare := track(t, site, underWay, "en")
	if got := configOf(t, bare); got.Links["help"] != "https://shop.example/?o=&t=" ||
		got.Reasons["closed"] != "The place was closed" {
		t.Errorf("%v", got)
	}
	gone, err := newFronts(t).Gone(site, "en")
	if err != nil || !strings.Contains(string(gone.HTML), `href="https://shop.example/?o=&amp;t="`) {
		t.Errorf("the page of a link that is gone: %v %s", err, gone.HTML)
	}
	if got := configOf(t, track(t, web.Site{}, underWay, "en")); got.Links != nil || len(got.Reasons) != 7 {
		t.Errorf("the zero Site: %v", got)
	}
}

func TestCheckReasons(t *testing.T) {
	for code, good := range map[string]bool{
		"not_home": true, "dog_2": true, strings.Repeat("x", 32): true, "": false, strings.Repeat("x", 33): false,
		"Dog": false, "dog outside": false, "größe": false, "dog-outside": false,
	} {
		err := web.Site{Reasons: map[string]string{code: "x"}}.Check()
		if (err == nil) != good || err != nil && !strings.HasPrefix(err.Error(), "Reasons: ") {
			t.Errorf("%q: %v", code, err)
		}
	}
}

// TestNoReasonIsForgotten: every usual word has its text in each language, and there is no other.
func TestNoReasonIsForgotten(t *testing.T) {
	codes := declared.Values(t, "../..", "ReasonCode")
	for _, lang := range web.Languages() {
		words, n := web.Words(lang), 0
		for key := range words {
			if strings.HasPrefix(key, "reason.") {
				n++
			}
		}
		for _, code := range codes {
			if words["reason."+code] == "" {
				t.Errorf("%s has no text for the reason %s", lang, code)
			}
		}
		if n != len(codes) {
			t.Errorf("%s has texts for %d reasons, there are %d", lang, n, len(codes))
		}
	}
}
