// Package picture takes out of an image file what is not the picture: where and when it was taken,
// with what, its thumbnails, comments and colour profile, and the film or the further pictures that
// phones put behind it. The picture itself is copied, not made anew. How it is to be turned is kept.
// A file that is something else too, with a page or an archive behind the picture, is refused.
//
// It walks through the segments of JPEG, the chunks of PNG and those of WebP, and copies the kinds
// that it knows. What is compressed it never looks into, so that no file can make it use more than
// its own length.
package picture

import (
	"encoding/binary"
	"errors"
)

// The media types that Clean knows.
const (
	JPEG = "image/jpeg"
	PNG  = "image/png"
	WebP = "image/webp"
)

// MaxPixels is how large a picture may be, width times height.
const MaxPixels = 40_000_000

// What is wrong with a file.
var (
	ErrType     = errors.New("the bytes are no JPEG, PNG or WebP picture")
	ErrBroken   = errors.New("the picture is not whole, or broken")
	ErrTooLarge = errors.New("the picture has more than 40 million pixels")
	ErrAnimated = errors.New("the picture moves")
	ErrBehind   = errors.New("behind the picture there is something else")
)

// Clean returns a picture without what is not the picture, and its media type, which its content
// says. To clean it again changes nothing. The result shares no memory with b.
func Clean(b []byte) (clean []byte, typ string, err error) {
	switch {
	case len(b) >= 3 && string(b[:3]) == "\xff\xd8\xff":
		clean, err = cleanJPEG(b)
		return clean, JPEG, err
	case len(b) >= len(pngStart) && string(b[:len(pngStart)]) == pngStart:
		clean, err = cleanPNG(b)
		return clean, PNG, err
	case len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		clean, err = cleanWebP(b)
		return clean, WebP, err
	}
	return nil, "", ErrType
}

// checkSize judges width and height.
func checkSize(width, height uint64) error {
	switch {
	case width == 0 || height == 0:
		return ErrBroken
	case width > MaxPixels || height > MaxPixels || width*height > MaxPixels:
		return ErrTooLarge
	}
	return nil
}

// orientation is the tag of TIFF that says how a picture is to be turned: 1 is as it lies, 2 to 8
// are the other ways, 0 is not said.
type orientation uint16

// readOrientation looks for it in the first directory of a TIFF structure, as Exif has it (Exif
// 2.32, section 4.6.4).
func readOrientation(tiff []byte) orientation {
	const tag, short, head, entry = 0x0112, 3, 8, 12
	if len(tiff) < head {
		return 0
	}
	var order binary.ByteOrder
	switch string(tiff[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return 0
	}
	at := uint64(order.Uint32(tiff[4:]))
	if at+2 > uint64(len(tiff)) {
		return 0
	}
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < entry {
			return 0
		}
		if order.Uint16(entries) == tag {
			o := orientation(order.Uint16(entries[8:]))
			if order.Uint16(entries[2:]) != short || order.Uint32(entries[4:]) != 1 || o > 8 {
				return 0
			}
			return o
		}
		entries = entries[entry:]
	}
	return 0
}

// turns reports whether a picture without it would be shown differently.
func (o orientation) turns() bool { return o > 1 }

// tiff is a TIFF structure that holds the orientation and nothing else.
func (o orientation) tiff() []byte {
	b := []byte("MM\x00*\x00\x00\x00\x08" + // the directory is at 8
		"\x00\x01" + // with one entry
		"\x01\x12\x00\x03\x00\x00\x00\x01\x00\x00\x00\x00" + // orientation, a short
		"\x00\x00\x00\x00") // there is no other directory
	binary.BigEndian.PutUint16(b[18:], uint16(o))
	return b
}
