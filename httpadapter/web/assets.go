package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/gzipped"
)

//go:embed dist
var dist embed.FS

//go:embed templates/*.html
var templateFiles embed.FS

// Fronts renders the pages and serves the files they load. It is safe for concurrent use.
type Fronts struct {
	assets  map[string]asset
	worker  asset
	entries map[string]string // source name → built name
	texts   map[string]map[string]string
	pages   *template.Template
}

// asset is a file as it goes over the wire.
type asset struct {
	contentType string
	plain       []byte
	gzip        []byte // nil when it does not pay
	tag         string
}

// New is the fronts of this process: the embedded files are read and compressed at the first call.
func New() (*Fronts, error) { return load() }

var load = sync.OnceValues(func() (*Fronts, error) {
	f := &Fronts{assets: map[string]asset{}, texts: map[string]map[string]string{}}
	for _, lang := range Languages() {
		f.texts[lang] = Words(lang)
	}
	var err error
	if f.pages, err = template.ParseFS(templateFiles, "templates/*.html"); err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	index, err := dist.ReadFile("dist/entries.json")
	if err != nil {
		return nil, fmt.Errorf("web: the front ends are not built: %w", err)
	}
	if err := json.Unmarshal(index, &f.entries); err != nil {
		return nil, fmt.Errorf("web: dist/entries.json: %w", err)
	}
	err = fs.WalkDir(dist, "dist/assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		a, err := loadAsset(name)
		f.assets[path.Base(name)] = a
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	if f.worker, err = loadAsset("dist/sw.js"); err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	for _, name := range f.entries {
		if _, ok := f.assets[name]; !ok {
			return nil, fmt.Errorf("web: dist/assets lacks %s, which dist/entries.json names", name)
		}
	}
	return f, nil
})

// loadAsset reads a file of dist with all that is sent with it.
func loadAsset(name string) (asset, error) {
	data, err := dist.ReadFile(name)
	if err != nil {
		return asset{}, err
	}
	sum := sha256.Sum256(data)
	a := asset{plain: data, tag: base64.RawURLEncoding.EncodeToString(sum[:12])}
	switch path.Ext(name) { // not by the system's table, which differs from machine to machine
	case ".js":
		a.contentType = "text/javascript; charset=utf-8"
	case ".css":
		a.contentType = "text/css; charset=utf-8"
	case ".svg":
		a.contentType = "image/svg+xml"
	case ".png":
		a.contentType = "image/png"
	case ".txt":
		a.contentType = "text/plain; charset=utf-8"
	default:
		return asset{}, fmt.Errorf("%s: a file of unknown type", name)
	}
	if z := gzipped.Smallest(data); len(z) < len(data)*9/10 {
		a.gzip = z
	}
	return a, nil
}

// ServeAsset serves a built file by its name, to be kept for a year: the name holds a hash of the
// content. An unknown one is 404.
func (f *Fronts) ServeAsset(w http.ResponseWriter, r *http.Request, name string) {
	a, ok := f.assets[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	a.serve(w, r, "public, max-age=31536000, immutable")
}

// ServeWorker serves the service worker of the driver app. It must stand at /driver/sw.js, whose
// folder is its scope.
func (f *Fronts) ServeWorker(w http.ResponseWriter, r *http.Request) {
	f.worker.serve(w, r, "no-cache")
}

func (a asset) serve(w http.ResponseWriter, r *http.Request, cache string) {
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Cache-Control", cache)
	h.Set("X-Content-Type-Options", "nosniff")
	body, tag := a.plain, a.tag
	if a.gzip != nil {
		h.Add("Vary", "Accept-Encoding")
		if gzipped.Accepts(r.Header) {
			h.Set("Content-Encoding", "gzip")
			body, tag = a.gzip, a.tag+"-gzip"
		}
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
