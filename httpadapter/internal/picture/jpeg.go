package picture

import (
	"bytes"
	"encoding/binary"
)

// Markers of JPEG (ITU-T T.81, table B.1).
const (
	markSOF0 = 0xc0 // baseline
	markSOF2 = 0xc2 // progressive
	markDHT  = 0xc4
	markRST0 = 0xd0
	markRST7 = 0xd7
	markSOI  = 0xd8
	markEOI  = 0xd9
	markSOS  = 0xda
	markDQT  = 0xdb
	markDRI  = 0xdd
	markAPP0 = 0xe0
	markAPP1 = 0xe1
	markAPPE = 0xee
	markAPPF = 0xef
	markCOM  = 0xfe
)

const (
	jfifStart  = "JFIF\x00"
	jfifLen    = 14 // without a thumbnail
	adobeStart = "Adobe"
	adobeLen   = 12
	exifStart  = "Exif\x00\x00"
)

// jpegFile is what is read of one.
type jpegFile struct {
	jfif, adobe []byte // payloads, as they are kept
	turn        orientation
	exif        bool   // there was one already: the first counts
	frame       bool   // there was a SOF
	scanned     bool   // there was a SOS after it
	body        []byte // what is copied: tables, frame and scans
}

// cleanJPEG keeps the tables, the frame and its scans, JFIF without its thumbnail, Adobe's segment,
// which says how colours are coded, and of Exif the orientation. What phones put behind the end is
// cut off.
func cleanJPEG(b []byte) ([]byte, error) {
	var f jpegFile
	rest := b[2:]
	for {
		// Some pad with zeros before a marker, and any number of 0xff begins one.
		rest = trimLeft(rest, 0)
		if len(rest) == 0 || rest[0] != 0xff {
			return nil, ErrBroken
		}
		rest = trimLeft(rest, 0xff)
		if len(rest) == 0 {
			return nil, ErrBroken
		}
		mark := rest[0]
		rest = rest[1:]
		if mark == markEOI {
			break
		}
		if mark < markSOF0 || mark >= markRST0 && mark <= markSOI || len(rest) < 2 {
			return nil, ErrBroken
		}
		n := int(binary.BigEndian.Uint16(rest))
		if n < 2 || n > len(rest) {
			return nil, ErrBroken
		}
		payload := rest[2:n]
		rest = rest[n:]
		if err := f.segment(mark, payload); err != nil {
			return nil, err
		}
		if mark == markSOS {
			end := scanEnd(rest)
			f.body = append(f.body, rest[:end]...)
			rest = rest[end:]
		}
	}
	if !f.scanned {
		return nil, ErrBroken
	}
	if !isTail(rest) {
		return nil, ErrBehind
	}
	return f.bytes(), nil
}

// isTail reports whether this is what phones put behind a picture: further pictures, as of the same
// in another size, a film, what Samsung knows of it (which ends so), or nothing but zeros.
func isTail(b []byte) bool {
	zeros := trimLeft(b, 0)
	return len(zeros) == 0 || bytes.HasPrefix(zeros, []byte("\xff\xd8\xff")) ||
		bytes.Contains(zeros[:min(len(zeros), 8)], []byte("ftyp")) || bytes.HasSuffix(b, []byte("SEFT"))
}

// trimLeft takes away bytes that are c. The cutsets of package bytes are of characters.
func trimLeft(b []byte, c byte) []byte {
	for len(b) > 0 && b[0] == c {
		b = b[1:]
	}
	return b
}

// segment takes in one segment.
func (f *jpegFile) segment(mark byte, payload []byte) error {
	switch {
	case mark == markSOF0 || mark == markSOF0+1 || mark == markSOF2:
		if f.frame || len(payload) < 6 {
			return ErrBroken
		}
		f.frame = true
		height, width := binary.BigEndian.Uint16(payload[1:]), binary.BigEndian.Uint16(payload[3:])
		if err := checkSize(uint64(width), uint64(height)); err != nil {
			return err
		}
	case mark == markSOS:
		if !f.frame {
			return ErrBroken
		}
		f.scanned = true
	case mark == markDHT || mark == markDQT || mark == markDRI:
	case mark >= markAPP0 && mark <= markAPPF:
		f.app(mark, payload)
		return nil
	case mark == markCOM:
		return nil
	case mark < markSOS: // lossless, hierarchical or arithmetic: no browser shows it
		return ErrType
	default:
		return ErrBroken
	}
	f.body = appendSegment(f.body, mark, payload)
	return nil
}

// app takes what is wanted of an application's segment.
func (f *jpegFile) app(mark byte, payload []byte) {
	has := func(start string, n int) bool { return len(payload) >= n && string(payload[:len(start)]) == start }
	switch {
	case mark == markAPP0 && f.jfif == nil && has(jfifStart, jfifLen):
		f.jfif = bytes.Clone(payload[:jfifLen])
		f.jfif[12], f.jfif[13] = 0, 0 // the thumbnail's width and height
	case mark == markAPPE && f.adobe == nil && has(adobeStart, adobeLen):
		f.adobe = payload[:adobeLen]
	case mark == markAPP1 && !f.exif && has(exifStart, len(exifStart)):
		f.exif, f.turn = true, readOrientation(payload[len(exifStart):])
	}
}

func (f *jpegFile) bytes() []byte {
	out := []byte{0xff, markSOI}
	if f.jfif != nil {
		out = appendSegment(out, markAPP0, f.jfif)
	}
	if f.turn.turns() {
		out = appendSegment(out, markAPP1, append([]byte(exifStart), f.turn.tiff()...))
	}
	if f.adobe != nil {
		out = appendSegment(out, markAPPE, f.adobe)
	}
	out = append(out, f.body...)
	return append(out, 0xff, markEOI)
}

func appendSegment(out []byte, mark byte, payload []byte) []byte {
	out = append(out, 0xff, mark)
	out = binary.BigEndian.AppendUint16(out, uint16(len(payload)+2))
	return append(out, payload...)
}

// scanEnd is where the compressed data of a scan ends: before the first marker that is not one of
// its own.
func scanEnd(b []byte) int {
	for i := 0; ; i++ {
		at := bytes.IndexByte(b[i:], 0xff)
		if at < 0 || i+at+1 >= len(b) {
			return len(b)
		}
		i += at
		next := i + 1
		for next < len(b)-1 && b[next] == 0xff {
			next++
		}
		if m := b[next]; m != 0 && (m < markRST0 || m > markRST7) {
			return i
		}
		i = next
	}
}
