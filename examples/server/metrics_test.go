package main

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page reads an address as somebody without a key.
func page(t *testing.T, address string) (status int, body string) {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

var (
	sample = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? (?:[0-9.e+-]+|\+Inf)$`)
	label  = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
)

// names are the metrics of a page of /metrics, each with its labels.
func names(t *testing.T, text string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("the line %q is none of the format", line)
			continue
		}
		labels := found[m[1]]
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, l[1])
		}
		slices.Sort(labels)
		found[m[1]] = slices.Compact(labels)
	}
	return found
}

// /metrics is at an address of its own, has the metrics that are promised, with what has happened, and
// tells of nobody.
func TestMetrics(t *testing.T) {
	s := start(t, "-key", "secret-key", "-metrics-addr", "127.0.0.1:0",
		"-webhook", "http://127.0.0.1:1/hook", "-webhook-allow-private")
	address := s.await(s.log, regexp.MustCompile(`metrics are served" url=(\S+)`))[1]
	if u, err := url.Parse(address); err != nil || u.Host == strings.TrimPrefix(s.base, "http://") {
		t.Errorf("%s is at %s too, %v", address, s.base, err)
	}
	if status, _ := page(t, s.base+"/metrics"); status != http.StatusNotFound {
		t.Errorf("the public address answers /metrics %d", status)
	}
	s.call("", "/v1/task/create", `{"type":2,"drop":{"address":"12 Anna Salai"}}`)
	page(t, s.base+"/track/secret-token/state?apikey=secret-key")

	status, text := page(t, address)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	for _, want := range []string{
		`tracking_tasks{tracking_task_status="created"} 1`, "tracking_tasks_waiting 0", "tracking_drivers 0",
		`tracking_events_undelivered{tracking_outbox="webhook"} 1`,
		`tracking_operation_duration_seconds_count{tracking_operation="CreateTask"} 1`,
		`tracking_operation_duration_seconds_bucket{tracking_operation="CreateTask",le="+Inf"} 1`,
		`http_request_method="GET",http_response_status_code="404",http_route="/track/{token}/state"`,
		`http_server_request_duration_seconds_count{http_request_method="POST",http_response_status_code="200",` +
			`http_route="/v1/task/create",url_scheme="http"} 1`,
		`tracking_operation_duration_seconds_count{error_type="not_found",tracking_operation="Tracking"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(text, "secret") || strings.Contains(text, "Salai") {
		t.Error("the page tells a secret")
	}

	want := promised(t)
	found := names(t, text)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		for _, l := range found[name] {
			if !slices.Contains(want[name], l) {
				t.Errorf("%s has the label %s, which is not promised", name, l)
			}
		}
		if _, ok := found[name]; !ok {
			t.Errorf("there is no %s", name)
		}
	}
	for name := range found {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is not promised", name)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// promised are the metrics that this program and package httpadapter/otel have.
func promised(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	list := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		list[words[0]] = words[1:]
	}
	return list
}

var (
	identifier = regexp.MustCompile(`[A-Za-z_:][A-Za-z0-9_:]*`)
	matchers   = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	grouping   = regexp.MustCompile(`\b(?:by|without) \(([^)]*)\)`)
	inQuotes   = regexp.MustCompile(`"[^"]*"`)
	span       = regexp.MustCompile(`\[[^]]*\]`)
	legend     = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)
	call       = regexp.MustCompile(`[a-z0-9_]+\s*\(`)
)

// The dashboard asks for nothing that there is not: each name in its queries is a metric, and each
// label one of these has.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	known := promised(t)
	asked := map[string]bool{}
	for _, p := range board.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%q asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			var labels []string
			for _, g := range grouping.FindAllStringSubmatch(target.Expr, -1) {
				labels = append(labels, identifier.FindAllString(g[1], -1)...)
			}
			for _, l := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				labels = append(labels, l[1])
			}
			plain := inQuotes.ReplaceAllString(target.Expr, "")
			for _, m := range matchers.FindAllStringSubmatch(plain, -1) {
				labels = append(labels, identifier.FindAllString(m[2], -1)...)
			}
			plain = matchers.ReplaceAllString(plain, "$1")
			plain = span.ReplaceAllString(grouping.ReplaceAllString(plain, ""), "")
			plain = call.ReplaceAllString(plain, "(")
			metrics := identifier.FindAllString(plain, -1)
			if len(metrics) == 0 {
				t.Errorf("%q asks for no metric: %s", p.Title, target.Expr)
			}
			for _, name := range metrics {
				if _, ok := known[name]; !ok {
					t.Errorf("%q asks for %s, which there is not: %s", p.Title, name, target.Expr)
				}
				asked[name] = true
				for _, l := range labels {
					if !slices.Contains(known[name], l) {
						t.Errorf("%q goes by %s, which %s has not: %s", p.Title, l, name, target.Expr)
					}
				}
			}
		}
	}
	if len(asked) < 14 {
		t.Errorf("the dashboard shows only %d metrics", len(asked))
	}
}

// Grafana takes the file as it is: the panels lie beside each other on its 24 columns, and each asks
// the data source that is chosen above them.
func TestDashboardLayout(t *testing.T) {
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	type place struct{ X, Y, W, H int }
	var board struct {
		UID, Title    string
		SchemaVersion int
		Templating    struct {
			List []struct{ Name, Type, Query string }
		}
		Panels []struct {
			ID          int
			Type, Title string
			Datasource  struct{ Type, UID string }
			GridPos     place
			Targets     []struct{ RefID string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	if board.UID == "" || len(board.UID) > 40 || board.Title == "" || board.SchemaVersion != 39 { // Grafana 11
		t.Errorf("uid %q, title %q, schema %d", board.UID, board.Title, board.SchemaVersion)
	}
	if v := board.Templating.List; len(v) != 1 || v[0].Name != "datasource" || v[0].Type != "datasource" ||
		v[0].Query != "prometheus" {
		t.Errorf("variables %+v", v)
	}
	ids, taken := map[int]bool{}, map[place]string{}
	for _, p := range board.Panels {
		if p.ID <= 0 || ids[p.ID] {
			t.Errorf("%q has the id %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Datasource.Type != "prometheus" || p.Datasource.UID != "${datasource}" {
			t.Errorf("%q asks %+v", p.Title, p.Datasource)
		}
		if !slices.Contains([]string{"stat", "timeseries"}, p.Type) {
			t.Errorf("%q is a %q", p.Title, p.Type)
		}
		at := p.GridPos
		if at.X < 0 || at.Y < 0 || at.W < 1 || at.H < 1 || at.X+at.W > 24 {
			t.Errorf("%q lies at %+v", p.Title, at)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				cell := place{X: x, Y: y}
				if other := taken[cell]; other != "" {
					t.Fatalf("%q lies on %q", p.Title, other)
				}
				taken[cell] = p.Title
			}
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if target.RefID == "" || refs[target.RefID] {
				t.Errorf("%q has two queries %q", p.Title, target.RefID)
			}
			refs[target.RefID] = true
		}
	}
}
