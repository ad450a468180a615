package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"
)

// Map is a map of streets in one file: a PMTiles archive, version 3, of vector tiles in the schema
// of Protomaps, such as "pmtiles extract" cuts from a build of theirs. Browsers read of it what they
// show, from this server alone. [OpenMap] makes one. It is safe for concurrent use.
type Map struct {
	// Attribution is a plain text on the maps that says whose the data is, and AttributionURL where
	// it leads, "" nowhere. OpenMap takes them from the file.
	Attribution, AttributionURL string

	file    *os.File
	size    int64
	name    string
	maxZoom int
}

// The header of a PMTiles file, as far as it is looked at here.
const (
	mapHeader   = 127
	metadataAt  = 24 // where it begins, and 8 bytes on its length
	mapSquash   = 97 // what metadata and directories are compressed with
	mapTileKind = 99
	mapMaxZoom  = 101
)

// mapMetadata is the most that the metadata of a file may be.
const mapMetadata = 1 << 20

// OpenMap opens a file for [Site.Map]. It stays open until Close. A file that is replaced, by renaming
// another one to its name, is read anew only by a new OpenMap.
func OpenMap(name string) (m *Map, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("the map %s: %w", name, err), file.Close())
			m = nil
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	head := make([]byte, mapHeader)
	if _, err := file.ReadAt(head, 0); err != nil || !bytes.HasPrefix(head, []byte("PMTiles\x03")) {
		return nil, errors.New("it is no PMTiles file of version 3")
	}
	if head[mapTileKind] != 1 {
		return nil, errors.New("its tiles are no vector tiles")
	}
	m = &Map{file: file, size: info.Size(), maxZoom: int(head[mapMaxZoom])}
	if m.maxZoom > 24 {
		return nil, errors.New("its header names a zoom over 24")
	}
	from, length := binary.LittleEndian.Uint64(head[metadataAt:]), binary.LittleEndian.Uint64(head[metadataAt+8:])
	if from > uint64(m.size) || length > uint64(m.size)-from || length > mapMetadata {
		return nil, errors.New("it is not whole")
	}
	if err := m.attribute(io.NewSectionReader(file, int64(from), int64(length)), head[mapSquash]); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(fmt.Appendf(head, "%d %d", m.size, info.ModTime().UnixNano()))
	m.name = base64.RawURLEncoding.EncodeToString(sum[:12]) + ".pmtiles"
	return m, nil
}

// attribute reads whose the data is. Files without a word on it are taken for OpenStreetMap's, as
// nearly all are.
func (m *Map) attribute(metadata io.Reader, squash byte) error {
	switch squash {
	case 1:
	case 2:
		z, err := gzip.NewReader(metadata)
		if err != nil {
			return errors.New("its metadata cannot be read")
		}
		metadata = io.LimitReader(z, mapMetadata)
	default:
		return errors.New("it is compressed by something else than gzip")
	}
	var found struct{ Attribution string }
	if data, err := io.ReadAll(metadata); err != nil || json.Unmarshal(data, &found) != nil {
		return errors.New("its metadata cannot be read")
	}
	text := html.UnescapeString(htmlTag.ReplaceAllString(found.Attribution, ""))
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		text = "© OpenStreetMap"
	}
	m.Attribution = text
	if strings.Contains(text, "OpenStreetMap") {
		m.AttributionURL = "https://www.openstreetmap.org/copyright"
	}
	return nil
}

var htmlTag = regexp.MustCompile(`<[^>]*>`)

// Name is the last part of the map's address. It is another one for another file.
func (m *Map) Name() string { return m.name }

// ServeHTTP serves the file or the part of it that is asked for, to be kept for a year.
func (m *Map) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/vnd.pmtiles")
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", `"`+m.name+`"`)
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(m.file, 0, m.size))
}

// Close closes the file.
func (m *Map) Close() error { return m.file.Close() }
