// Package gzipped compresses answers for those who take gzip (RFC 1952), whole ones and streams.
//
// A stream of events that many watch at once is compressed once for all: [Deflate] makes a part
// that may stand in many streams, and a [Stream] puts parts together. A compressor for each watcher
// would hold 800 KB for as long as he watches.
//
// Compression tells the length of what is compressed. That gives a secret away only where an
// attacker who does not know it can have text of his own in the same answer, again and again
// (BREACH, CVE-2013-3587). The answers here repeat nothing of a request, and what they hold belongs
// to whoever has their address.
package gzipped

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Accepts reads Accept-Encoding (RFC 9110, 12.5.3); a weight of zero is a refusal.
func Accepts(h http.Header) bool {
	for _, line := range h.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(line, ",") {
			coding, params, _ := strings.Cut(part, ";")
			if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
				continue
			}
			q := strings.TrimRight(strings.ReplaceAll(params, " ", ""), "0.")
			return q != "q="
		}
	}
	return false
}

// Whole is data as a gzip file of its own.
func Whole(data []byte) []byte {
	var buf bytes.Buffer
	s := NewStream(&buf)
	err := s.Write(Deflate(nil, data), data)
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		panic(err) // a bytes.Buffer does not fail
	}
	return buf.Bytes()
}

// Smallest is Whole for what is kept and sent many times: it takes longer, and saves a little more.
func Smallest(data []byte) []byte {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(data)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err) // a bytes.Buffer does not fail
	}
	return buf.Bytes()
}

// switched is a writer that writes to another one from some moment on.
type switched struct{ io.Writer }

// compressor is a DEFLATE compressor and what it writes to.
type compressor struct {
	*flate.Writer
	to *switched
}

var compressors = sync.Pool{New: func() any {
	to := &switched{io.Discard}
	w, err := flate.NewWriter(to, flate.DefaultCompression)
	if err != nil {
		panic(err) // there is that level
	}
	return &compressor{w, to}
}}

// Deflate is text as a part of a DEFLATE stream (RFC 1951): it begins and ends at a whole byte, and
// a reader who has it has all of the text. The part refers to nothing but itself and, when that is
// given, to before, which is the text that then has to stand right in front of it in every stream.
func Deflate(before, text []byte) []byte {
	var buf bytes.Buffer
	c := compressors.Get().(*compressor)
	defer compressors.Put(c)
	write := func(to io.Writer, text []byte) {
		c.to.Writer = to
		_, err := c.Write(text)
		if err == nil {
			err = c.Flush()
		}
		if err != nil {
			panic(err) // neither of these writers fails
		}
	}
	c.Reset(c.to)
	if len(before) > 0 {
		write(io.Discard, before)
	}
	write(&buf, text)
	return buf.Bytes()
}

// Stream is a gzip stream that is put together from parts that others have deflated.
type Stream struct {
	w     io.Writer
	begun bool
	sum   uint32
	size  uint32
}

// NewStream begins a stream that goes to w.
func NewStream(w io.Writer) *Stream { return &Stream{w: w} }

// Write adds text, of which deflated is what [Deflate] made.
func (s *Stream) Write(deflated, text []byte) error {
	if !s.begun {
		s.begun = true
		// Magic number, DEFLATE, no flags, no time, nothing said of the compressor, system unknown.
		deflated = append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}, deflated...)
	}
	s.sum = crc32.Update(s.sum, crc32.IEEETable, text)
	s.size += uint32(len(text))
	_, err := s.w.Write(deflated)
	return err
}

// Close ends the stream: with an empty last block, and what a reader can check the whole by.
func (s *Stream) Close() error {
	if !s.begun {
		if err := s.Write(nil, nil); err != nil {
			return err
		}
	}
	end := []byte{0x03, 0x00}
	end = binary.LittleEndian.AppendUint32(end, s.sum)
	end = binary.LittleEndian.AppendUint32(end, s.size)
	_, err := s.w.Write(end)
	return err
}
