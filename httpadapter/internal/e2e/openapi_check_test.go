package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// exchange is one call and its answer, as the adapter's own tests note them.
type exchange struct {
	Test          string
	Method, URL   string // the path and its query
	RequestHeader http.Header
	RequestBody   []byte
	Status        int
	Header        http.Header
	Body          []byte
	Cut           bool // a body was longer than what is kept of it
}

func (e exchange) String() string {
	return fmt.Sprintf("%s: %s %.200s: %d", e.Test, e.Method, e.URL, e.Status)
}

// checker holds exchanges to a description of the interface.
type checker struct {
	doc   *openapi3.T
	paths map[string][]string // the segments of each path
}

func newChecker(file string) (*checker, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(b)
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(loader.Context); err != nil {
		return nil, err
	}
	c := &checker{doc: doc, paths: map[string][]string{}}
	for path := range doc.Paths.Map() {
		c.paths[path] = strings.Split(path, "/")
	}
	return c, nil
}

// match finds the described paths that a request's path has the form of, those with the fewest
// parameters first, and the values of their parameters.
func (c *checker) match(escaped string) (found []string, values map[string]map[string]string) {
	segments := strings.Split(escaped, "/")
	values = map[string]map[string]string{}
	for path, want := range c.paths {
		if len(want) != len(segments) {
			continue
		}
		v, fits := map[string]string{}, true
		for i, w := range want {
			s, err := url.PathUnescape(segments[i])
			switch name, isParameter := strings.CutPrefix(w, "{"); {
			case err != nil, isParameter && s == "", !isParameter && s != w:
				fits = false
			case isParameter:
				v[strings.TrimSuffix(name, "}")] = s
			}
		}
		if fits {
			found, values[path] = append(found, path), v
		}
	}
	slices.SortFunc(found, func(a, b string) int { return len(values[a]) - len(values[b]) })
	return found, values
}

// check says which operation answered, as its method and path ("" for answers that any path may
// give), and what is wrong with the answer, or with the request if that was answered 200.
func (c *checker) check(e exchange) (operation string, err error) {
	u, err := url.ParseRequestURI(e.URL)
	if err != nil {
		return "", err
	}
	found, values := c.match(u.EscapedPath())
	if len(found) == 0 {
		return "", c.common(e, u, "NotFound", http.StatusNotFound)
	}
	method := e.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	allow := map[string]bool{http.MethodOptions: true}
	var path string
	for _, p := range found {
		for m := range c.doc.Paths.Value(p).Operations() {
			allow[m] = true
			if m == http.MethodGet {
				allow[http.MethodHead] = true
			}
			if m == method && path == "" {
				path = p
			}
		}
	}
	if e.Method == http.MethodOptions {
		return "", options(e, allow)
	}
	if path == "" {
		if err := sameMethods(e.Header.Get("Allow"), allow); err != nil {
			return "", err
		}
		return "", c.common(e, u, "MethodNotAllowed", http.StatusMethodNotAllowed)
	}
	item := c.doc.Paths.Value(path)
	route := &routers.Route{
		Spec: c.doc, Path: path, PathItem: item, Method: method, Operation: item.GetOperation(method),
	}
	return method + " " + path, c.answer(e, u, route, values[path])
}

// common checks an answer of paths and methods that the document does not have.
func (c *checker) common(e exchange, u *url.URL, response string, status int) error {
	op := &openapi3.Operation{
		Responses: openapi3.NewResponses(openapi3.WithStatus(status, c.doc.Components.Responses[response])),
	}
	return c.answer(e, u, &routers.Route{
		Spec: c.doc, Path: u.Path, PathItem: &openapi3.PathItem{Get: op}, Method: e.Method, Operation: op,
	}, nil)
}

func options(e exchange, allow map[string]bool) error {
	if e.Status != http.StatusNoContent || len(e.Body) > 0 {
		return fmt.Errorf("OPTIONS is answered %d with %d bytes", e.Status, len(e.Body))
	}
	return sameMethods(e.Header.Get("Allow"), allow)
}

func sameMethods(header string, allow map[string]bool) error {
	named := strings.Split(header, ", ")
	for _, m := range named {
		if !allow[m] {
			return fmt.Errorf("header Allow: %q names what is not described", header)
		}
	}
	if len(named) != len(allow) {
		return fmt.Errorf("header Allow: %q misses one of the methods described", header)
	}
	return nil
}

func (c *checker) answer(e exchange, u *url.URL, route *routers.Route, pathValues map[string]string) error {
	request := &openapi3filter.RequestValidationInput{
		Request: &http.Request{
			Method: e.Method, URL: u, Header: e.RequestHeader.Clone(),
			Body: io.NopCloser(bytes.NewReader(e.RequestBody)),
		},
		PathParams: pathValues,
		Route:      route,
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true, SkipSettingDefaults: true, MultiError: true,
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, // what the caller may do is the adapter's to say
		},
	}
	request.Options.WithCustomSchemaErrorFunc(brief)
	described := route.Operation.Responses.Status(e.Status)
	if described == nil {
		return fmt.Errorf("status %d is not described: %.300s", e.Status, e.Body)
	}
	if err := headers(e, described.Value); err != nil {
		return err
	}
	switch {
	case e.Method == http.MethodHead:
		if len(e.Body) > 0 {
			return errors.New("HEAD is answered with a body")
		}
	case e.Status == http.StatusNoContent:
		if len(e.Body) > 0 {
			return errors.New("204 has a body")
		}
	case strings.HasPrefix(e.Header.Get("Content-Type"), "text/event-stream"):
		if err := c.events(e); err != nil {
			return err
		}
	default:
		response := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: request, Status: e.Status, Header: e.Header,
			Body: io.NopCloser(bytes.NewReader(e.Body)), Options: request.Options,
		}
		response.Options.ExcludeResponseBody = e.Cut || !isJSON(e.Header)
		if err := openapi3filter.ValidateResponse(context.Background(), response); err != nil {
			return fmt.Errorf("%w\n%.600s", err, e.Body)
		}
	}
	if e.Status != http.StatusOK || e.Cut || toleratesInput(route, e) {
		return nil
	}
	if request.Request.Header == nil {
		request.Request.Header = http.Header{}
	}
	missing := "application/json"
	if body := route.Operation.RequestBody; body != nil && body.Value.Content["image/*"] != nil {
		missing, request.Options.ExcludeRequestBody = "application/octet-stream", true // it has no schema to speak of
	}
	if len(e.RequestBody) > 0 && request.Request.Header.Get("Content-Type") == "" {
		request.Request.Header.Set("Content-Type", missing)
	}
	if err := openapi3filter.ValidateRequest(context.Background(), request); err != nil {
		return fmt.Errorf("answered 200, but the request is not as described: %w\n%.300s", err, e.RequestBody)
	}
	return nil
}

// eventData are the schemas of server-sent events by their names; of those of an application, below.
var eventData = map[string]string{
	"state": "Tracking", "move": "TrackingMove", "notice": "Notice", "reset": "NoticesAnew",
}

var liveData = map[string]string{
	"task": "Task", "driver": "Driver", "position": "LivePosition", "gone": "LiveGone", "ready": "LiveReady",
	"reset": "LiveReset",
}

// events checks the data of server-sent events, as far as the stream was noted.
func (c *checker) events(e exchange) error {
	whole, schemas := string(e.Body), eventData
	if strings.HasPrefix(e.URL, "/v1/live") {
		schemas = liveData
	}
	for event := range strings.SplitSeq(whole[:strings.LastIndex(whole, "\n\n")+1], "\n\n") {
		var name, data string
		for line := range strings.Lines(event) {
			line = strings.TrimSuffix(line, "\n")
			if v, ok := strings.CutPrefix(line, "event: "); ok {
				name = v
			}
			if v, ok := strings.CutPrefix(line, "data: "); ok {
				data = v
			}
		}
		if name == "" && data == "" || name == "end" && data == "{}" {
			continue // a comment, or the time to wait
		}
		schema := c.doc.Components.Schemas[schemas[name]]
		if schema == nil {
			return fmt.Errorf("event %q is not described", name)
		}
		var v any
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			return fmt.Errorf("event %s: %w", name, err)
		}
		if err := schema.Value.VisitJSON(v, openapi3.VisitAsResponse(),
			openapi3.SetSchemaErrorMessageCustomizer(brief)); err != nil {
			return fmt.Errorf("event %s: %w\n%.600s", name, err, data)
		}
	}
	return nil
}

// brief says what is wrong without the whole schema.
func brief(err *openapi3.SchemaError) string {
	s := "/" + strings.Join(err.JSONPointer(), "/") + ": " + err.Reason
	if err.Origin != nil {
		s += " (" + err.Origin.Error() + ")"
	}
	return s
}

// toleratesInput reports whether the operation answers 200 to what is not as described, by its own
// description.
func toleratesInput(route *routers.Route, e exchange) bool {
	switch {
	case !strings.HasPrefix(route.Path, "/v1/"):
		return true // the query is ignored, and phone apps send what they like
	case route.Path == "/v1/driver/fixes": // a wrong fix has its outcome
		return bytes.Contains(e.Body, []byte(`"invalid"`))
	case route.Path == "/v1/task/batch": // a wrong task has its error
		return bytes.Contains(e.Body, []byte(`"error"`))
	}
	return false
}

func isJSON(hd http.Header) bool { return hd.Get("Content-Type") == "application/json; charset=utf-8" }

// headers checks the content type, and what every answer has.
func headers(e exchange, described *openapi3.Response) error {
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"} {
		if got := e.Header.Get(name); got != want && !(name == "Cache-Control" && described.Content.Get("*/*") != nil) {
			return fmt.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	got := e.Header.Get("Content-Type")
	if len(described.Content) == 0 {
		if got != "" {
			return fmt.Errorf("content type %q, without content", got)
		}
		return nil
	}
	for typ := range described.Content {
		if typ == "*/*" || got == typ+"; charset=utf-8" || got == typ && strings.HasPrefix(typ, "image/") {
			return nil
		}
	}
	return fmt.Errorf("content type %q is not described", got)
}

// readExchanges gives each line of the folder's files to yield.
func readExchanges(dir string, yield func(exchange)) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		file, err := os.Open(dir + "/" + f.Name())
		if err != nil {
			return err
		}
		defer file.Close()
		d := json.NewDecoder(file)
		for {
			var e exchange
			err := d.Decode(&e)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("%s: %w", f.Name(), err)
			}
			yield(e)
		}
	}
	return nil
}
