package picture

import (
	"bytes"
	"encoding/binary"
)

// Flags of the chunk VP8X (WebP Container Specification).
const (
	webpAnimated = 0x02
	webpExif     = 0x08
	webpAlpha    = 0x10
)

// cleanWebP keeps the bitstream, its transparency and the orientation. Colour profile, Exif, XMP
// and what is not known are left out. Behind the end there may be zeros.
func cleanWebP(b []byte) ([]byte, error) {
	size := uint64(binary.LittleEndian.Uint32(b[4:])) + 8
	if size > uint64(len(b)) || size < 12 {
		return nil, ErrBroken
	}
	if len(trimLeft(b[size:], 0)) > 0 {
		return nil, ErrBehind
	}
	var extended, alpha, image []byte // as chunks
	var turn orientation
	exif := false
	for rest := b[12:size]; len(rest) > 0; {
		if len(rest) < 8 {
			return nil, ErrBroken
		}
		n := uint64(binary.LittleEndian.Uint32(rest[4:]))
		whole := 8 + n + n&1 // padded to an even length
		if 8+n > uint64(len(rest)) {
			return nil, ErrBroken
		}
		typ, payload := string(rest[:4]), rest[8:8+n]
		rest = rest[min(whole, uint64(len(rest))):]
		switch typ {
		case "VP8X":
			if extended != nil || image != nil || len(payload) != 10 {
				return nil, ErrBroken
			}
			if payload[0]&webpAnimated != 0 {
				return nil, ErrAnimated
			}
			extended = bytes.Clone(payload)
			if err := checkSize(uint64(uint24(payload[4:]))+1, uint64(uint24(payload[7:]))+1); err != nil {
				return nil, err
			}
		case "ALPH":
			if extended == nil || alpha != nil || image != nil {
				return nil, ErrBroken
			}
			alpha = appendRIFF(nil, typ, payload)
		case "VP8 ", "VP8L":
			width, height, ok := webpSize(typ, payload)
			if image != nil || !ok {
				return nil, ErrBroken
			}
			if err := checkSize(width, height); err != nil {
				return nil, err
			}
			image = appendRIFF(nil, typ, payload)
		case "EXIF":
			if !exif {
				exif, turn = true, readOrientation(bytes.TrimPrefix(payload, []byte(exifStart)))
			}
		case "ANIM", "ANMF":
			return nil, ErrAnimated
		}
	}
	if image == nil {
		return nil, ErrBroken
	}
	out := []byte("RIFF\x00\x00\x00\x00WEBP")
	if extended != nil {
		extended[0] &= webpAlpha
		if turn.turns() {
			extended[0] |= webpExif
		}
		extended[1], extended[2], extended[3] = 0, 0, 0 // reserved
		out = appendRIFF(out, "VP8X", extended)
	}
	out = append(append(out, alpha...), image...)
	if extended != nil && turn.turns() {
		out = appendRIFF(out, "EXIF", turn.tiff())
	}
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return out, nil
}

// webpSize reads width and height from the beginning of a bitstream (RFC 6386, section 9.1; WebP
// Lossless Bitstream Specification, section 3).
func webpSize(typ string, b []byte) (width, height uint64, ok bool) {
	if typ == "VP8L" {
		if len(b) < 5 || b[0] != 0x2f {
			return 0, 0, false
		}
		bits := uint64(binary.LittleEndian.Uint32(b[1:]))
		return bits&0x3fff + 1, bits>>14&0x3fff + 1, true
	}
	if len(b) < 10 || b[0]&1 != 0 || string(b[3:6]) != "\x9d\x01\x2a" {
		return 0, 0, false
	}
	return uint64(binary.LittleEndian.Uint16(b[6:]) & 0x3fff), uint64(binary.LittleEndian.Uint16(b[8:]) & 0x3fff), true
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

func appendRIFF(out []byte, typ string, payload []byte) []byte {
	out = append(out, typ...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(payload)))
	out = append(out, payload...)
	if len(payload)&1 != 0 {
		out = append(out, 0)
	}
	return out
}
