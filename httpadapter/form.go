package httpadapter

import (
	"bytes"
	"mime/multipart"
	"slices"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

// textsBody is an endpoint whose parameters, all of them texts, are in the body, as JSON or as a
// form, or in the query. One that is in both has to be the same.
func textsBody[T any](handle func(*request, T) (answer, error)) *endpoint {
	shape := strict.ShapeOf[T]()
	return &endpoint{fields: shape.Fields(), optional: true, texts: true, handle: func(r *request) (answer, error) {
		texts, err := textsOfBody(r, shape)
		if err != nil {
			return nil, err
		}
		if err := addQuery(texts, &r.query, shape.Fields()); err != nil {
			return nil, err
		}
		return handle(r, shape.Of(texts))
	}}
}

// addQuery adds the parameters of the query to those of the body.
func addQuery(texts strict.Texts, q *strict.Query, fields []strict.Field) error {
	for _, f := range fields {
		v, given := f.In(q)
		if given && v == "" && !f.Required {
			q.Fail(f.Name, "must not be empty; leave it out instead")
		}
		if inBody, both := texts[f.Name]; given && both && v != inBody {
			q.Fail(f.Name, "is in the query and in the body with different values")
		}
		if given {
			texts[f.Name] = v
		}
	}
	for _, f := range fields {
		if f.Required && texts[f.Name] == "" {
			q.Fail(f.Name, "is required")
		}
	}
	return q.Err()
}

// textsOfBody reads the texts of a JSON or form body. There may be no body.
func textsOfBody[T any](r *request, shape strict.Shape[T]) (strict.Texts, error) {
	typ, params, err := mediaType(r)
	if err == nil && !slices.Contains([]string{"", typeJSON, typeForm, typeMultipart}, typ) {
		err = &tracking.Error{Code: codeMediaType, Message: "The body must be JSON or a form."}
	}
	if err != nil && r.ContentLength > 0 {
		return nil, err
	}
	b, readErr := r.readBody(nil, maxBody)
	switch {
	case readErr != nil:
		return nil, readErr
	case len(b) == 0:
		return strict.Texts{}, nil
	case err != nil:
		return nil, err
	}
	switch typ {
	case typeForm:
		var form strict.Query
		if err := form.ParseForm(string(b)); err != nil {
			return nil, err
		}
		return shape.TextsIn(&form)
	case typeMultipart:
		return multipartTexts(b, params["boundary"], shape.Fields())
	}
	o, err := strict.ParseObject(b)
	if err != nil {
		return nil, err
	}
	return shape.TextsOf(o)
}

func multipartTexts(body []byte, boundary string, fields []strict.Field) (strict.Texts, error) {
	malformed := &tracking.Error{Code: tracking.ErrInvalid, Message: "The body is not a valid form."}
	form, err := multipart.NewReader(bytes.NewReader(body), boundary).ReadForm(maxBody)
	if err != nil {
		return nil, malformed
	}
	defer form.RemoveAll()
	texts := strict.Texts{}
	for name, values := range form.Value {
		if len(values) > 1 {
			return nil, &tracking.Error{Code: tracking.ErrInvalid, Message: "The form gives a parameter twice."}
		}
		if slices.ContainsFunc(fields, func(f strict.Field) bool { return f.Name == name }) {
			texts[name] = values[0]
		}
	}
	return texts, nil
}
