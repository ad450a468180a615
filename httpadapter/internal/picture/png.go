package picture

import (
	"encoding/binary"
	"hash/crc32"
)

const pngStart = "\x89PNG\r\n\x1a\n"

// pngKept are the chunks that are copied besides IHDR, IDAT and IEND, with the longest that each can
// be (W3C PNG, third edition, section 11). Each is there once at most, before IDAT.
var pngKept = map[string]int{
	"PLTE": 3 * 256, "tRNS": 256, "gAMA": 4, "cHRM": 32, "sRGB": 1, "sBIT": 4, "bKGD": 6, "pHYs": 9,
}

// cleanPNG keeps what is needed to show the picture, and the orientation. Texts, times, colour
// profiles and further frames are left out. Behind the end there may be zeros.
func cleanPNG(b []byte) ([]byte, error) {
	var head, kept, data []byte
	var turn orientation
	seen := map[string]bool{}
	rest := b[len(pngStart):]
	for !seen["IEND"] {
		if len(rest) < 12 {
			return nil, ErrBroken
		}
		n := binary.BigEndian.Uint32(rest)
		if uint64(n) > uint64(len(rest)-12) {
			return nil, ErrBroken
		}
		chunk, payload := rest[:n+12], rest[8:n+8]
		typ := string(rest[4:8])
		rest = rest[n+12:]
		if crc32.ChecksumIEEE(chunk[4:n+8]) != binary.BigEndian.Uint32(chunk[n+8:]) || (typ == "IHDR") != (head == nil) {
			return nil, ErrBroken
		}
		most, known := pngKept[typ]
		switch {
		case typ == "IHDR":
			if n != 13 {
				return nil, ErrBroken
			}
			width, height := binary.BigEndian.Uint32(payload), binary.BigEndian.Uint32(payload[4:])
			if err := checkSize(uint64(width), uint64(height)); err != nil {
				return nil, err
			}
			head = chunk
		case typ == "IDAT":
			data = append(data, chunk...)
		case typ == "IEND":
			if n != 0 {
				return nil, ErrBroken
			}
		case typ == "eXIf" && !seen[typ]:
			turn = readOrientation(payload)
		case known && !seen[typ] && !seen["IDAT"] && int(n) <= most:
			kept = append(kept, chunk...)
		case typ[0]&0x20 == 0: // what is critical cannot be left out
			return nil, ErrBroken
		}
		seen[typ] = true
	}
	if len(data) == 0 {
		return nil, ErrBroken
	}
	if len(trimLeft(rest, 0)) > 0 {
		return nil, ErrBehind
	}
	out := append([]byte(pngStart), head...)
	if turn.turns() {
		out = appendChunk(out, "eXIf", turn.tiff())
	}
	out = append(append(out, kept...), data...)
	return appendChunk(out, "IEND", nil), nil
}

func appendChunk(out []byte, typ string, payload []byte) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(payload)))
	from := len(out)
	out = append(append(out, typ...), payload...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[from:]))
}
