package ingest

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
)

// MaxBody is the longest body in bytes that [Read] takes, as it comes and unpacked. A point of
// Overland is about 600 bytes, and its largest batch has 1,000.
const MaxBody = 1 << 20

// Read reads r to the end, and unpacks a body that is packed by gzip or deflate. A body of more
// than [MaxBody] bytes, packed or unpacked, gives an *[http.MaxBytesError].
//
// What a body begins with decides, and Content-Encoding only where that leaves it open: there are
// proxies that unpack and leave the header, and apps that pack and do not say so. What cannot be
// unpacked stays as it came.
func Read(w http.ResponseWriter, r *http.Request) (Request, error) {
	req := Request{Method: r.Method, Query: r.URL.RawQuery, Header: r.Header}
	if r.Body == nil {
		return req, nil
	}
	var err error
	if req.Body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody)); err != nil {
		return req, err
	}
	unpacked, ok := unpack(req.Body, r.Header)
	if len(unpacked) > MaxBody {
		return req, &http.MaxBytesError{Limit: MaxBody}
	}
	if ok {
		req.Body = unpacked
	}
	return req, nil
}

// unpack is what b holds packed; not ok if that cannot be told. It ends one byte after [MaxBody],
// however much follows.
func unpack(b []byte, h http.Header) (unpacked []byte, ok bool) {
	packed := bufio.NewReader(bytes.NewReader(b))
	var plain io.Reader
	var err error
	switch begin, _ := packed.Peek(2); {
	case string(begin) == "\x1f\x8b":
		plain, err = gzip.NewReader(packed)
	case !saysDeflate(h), len(begin) < 2:
		return nil, false
	case begin[0]&0x0f == 8 && (uint(begin[0])<<8|uint(begin[1]))%31 == 0: // RFC 1950, section 2.2
		plain, err = zlib.NewReader(packed)
	default:
		plain = flate.NewReader(packed)
	}
	if err != nil {
		return nil, false
	}
	unpacked, err = io.ReadAll(io.LimitReader(plain, MaxBody+1))
	return unpacked, err == nil
}

// saysDeflate reports whether a body is said to be packed so. Text can begin like a deflated one.
func saysDeflate(h http.Header) bool {
	for _, v := range h.Values("Content-Encoding") {
		if strings.EqualFold(strings.TrimSpace(v), "deflate") {
			return true
		}
	}
	return false
}
