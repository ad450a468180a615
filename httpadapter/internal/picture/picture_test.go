package picture_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/picture"
)

// canary stands wherever a file can hold what is not the picture.
const canary = "CANARY at 48.137N 11.575E"

func noise(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, color.RGBA{uint8(7 * x), uint8(11 * y), uint8(x * y), 255})
		}
	}
	return m
}

func plainJPEG(t testing.TB) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, noise(24, 16), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func plainPNG(t testing.TB) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, noise(24, 16)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func webp(t testing.TB, name string) []byte {
	b, err := os.ReadFile(filepath.Join("testdata", name+".webp"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// exif is a TIFF structure as cameras write it: make, orientation, place, and a text.
func exif(order binary.ByteOrder, turn uint16) []byte {
	b := []byte("MM\x00*")
	if order == binary.LittleEndian {
		b = []byte("II*\x00")
	}
	add := func(values ...any) {
		for _, v := range values {
			b, _ = binary.Append(b, order, v) // they have sizes
		}
	}
	add(uint32(8), uint16(3))
	add(uint16(0x010f), uint16(2), uint32(len(canary)), uint32(50))
	add(uint16(0x0112), uint16(3), uint32(1), turn, uint16(0))
	add(uint16(0x8825), uint16(4), uint32(1), uint32(50), uint32(0))
	return append(b, canary...)
}

func segment(mark byte, payload string) string {
	return "\xff" + string([]byte{mark, byte((len(payload) + 2) >> 8), byte(len(payload) + 2)}) + payload
}

// photo is a JPEG with all that phones put into one.
func photo(t testing.TB, tiff []byte) []byte {
	plain := string(plainJPEG(t))
	jfif := "JFIF\x00\x01\x01\x01\x00\x48\x00\x48\x03\x01" + canary[:9] // a thumbnail of 3 × 1
	return []byte(plain[:2] +
		segment(0xe0, jfif) + segment(0xe0, "JFXX\x00"+canary) +
		segment(0xe1, "Exif\x00\x00"+string(tiff)) + segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00"+canary) +
		segment(0xe1, "Exif\x00\x00"+string(exif(binary.BigEndian, 8))) +
		segment(0xe2, "ICC_PROFILE\x00\x01\x01"+canary) + segment(0xe2, "MPF\x00"+canary) +
		segment(0xeb, "JP"+canary) + segment(0xed, "Photoshop 3.0\x00"+canary) +
		segment(0xee, "Adobe\x00\x64\x00\x00\x00\x00\x01"+canary) +
		segment(0xfe, "<script>"+canary) + "\xff\xff\xff" + plain[3:])
}

func chunk(typ, payload string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
	b = append(b, typ+payload...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:])))
}

// drawing is a PNG with all that programs put into one.
func drawing(t testing.TB, tiff []byte) []byte {
	plain := string(plainPNG(t))
	const afterHead = 8 + 25
	end := len(plain) - 12
	return []byte(plain[:afterHead] + chunk("gAMA", "\x00\x00\xb1\x8f") + chunk("sRGB", "\x00") +
		chunk("pHYs", "\x00\x00\x0b\x13\x00\x00\x0b\x13\x01") + chunk("iCCP", "x\x00\x00"+canary) +
		chunk("tEXt", "Comment\x00"+canary) + chunk("zTXt", canary) + chunk("iTXt", "XML:com.adobe.xmp"+canary) +
		chunk("eXIf", string(tiff)) + chunk("tIME", "\x07\xea\x01\x01\x00\x00\x00") + chunk("sBIT", canary) +
		chunk("acTL", "\x00\x00\x00\x02\x00\x00\x00\x00") + chunk("prVt", canary) + plain[afterHead:end] +
		chunk("fdAT", canary) + chunk("tEXt", canary) + chunk("eXIf", string(exif(binary.BigEndian, 8))) + plain[end:])
}

func riff(chunks ...string) []byte {
	all := "WEBP" + strings.Join(chunks, "")
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(all))), all...)
}

func part(typ, payload string) string {
	b := binary.LittleEndian.AppendUint32([]byte(typ), uint32(len(payload)))
	return string(b) + payload + strings.Repeat("\x00", len(payload)%2)
}

// parts are the chunks of a WebP, by type.
func parts(b []byte) map[string]string {
	list := map[string]string{}
	for rest := b[12:]; len(rest) >= 8; {
		n := int(binary.LittleEndian.Uint32(rest[4:]))
		list[string(rest[:4])] = string(rest[8 : 8+n])
		rest = rest[8+n+n%2:]
	}
	return list
}

// snapshot is a WebP with all that there may be in one.
func snapshot(t testing.TB, name string, tiff []byte) []byte {
	was := parts(webp(t, name))
	flags := []byte(was["VP8X"])
	flags[0] |= 0x20 | 0x08 | 0x04
	list := []string{part("VP8X", string(flags)), part("ICCP", canary)}
	for _, typ := range []string{"ALPH", "VP8 ", "VP8L"} {
		if was[typ] != "" {
			list = append(list, part(typ, was[typ]))
		}
	}
	return riff(append(list, part("EXIF", "Exif\x00\x00"+string(tiff)), part("EXIF", string(exif(binary.BigEndian, 8))),
		part("XMP ", canary), part("what", canary))...)
}

func clean(t testing.TB, b []byte, typ string) []byte {
	t.Helper()
	was := bytes.Clone(b)
	got, is, err := picture.Clean(b)
	if err != nil || is != typ {
		t.Fatalf("%q, error %v; want %s", is, err, typ)
	}
	if !bytes.Equal(b, was) {
		t.Error("what was passed in is another now")
	}
	for i := range b {
		b[i] = 0 // it is the caller's again
	}
	if again, _, err := picture.Clean(bytes.Clone(got)); err != nil || !bytes.Equal(again, got) {
		t.Errorf("cleaned again: %d bytes of %d, error %v", len(again), len(got), err)
	}
	copy(b, was)
	return got
}

func samePixels(t testing.TB, a, b []byte) {
	t.Helper()
	x, _, err := image.Decode(bytes.NewReader(a))
	if err != nil {
		t.Fatal(err)
	}
	y, _, err := image.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if x.Bounds() != y.Bounds() {
		t.Fatalf("it was %v, and is %v", x.Bounds(), y.Bounds())
	}
	for py := range x.Bounds().Dy() {
		for px := range x.Bounds().Dx() {
			if x.At(px, py) != y.At(px, py) {
				t.Fatalf("another colour at %d, %d", px, py)
			}
		}
	}
}

// What is not the picture goes, the picture stays as it is to the last bit, and how it is to be
// turned is kept, whichever way round the camera writes its numbers.
func TestClean(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		for turn := range uint16(10) {
			t.Run(fmt.Sprint(order, turn), func(t *testing.T) {
				tiff := exif(order, turn)
				for what, c := range map[string]struct {
					typ         string
					full, plain []byte
				}{
					"jpeg": {picture.JPEG, photo(t, tiff), plainJPEG(t)}, "png": {picture.PNG, drawing(t, tiff), plainPNG(t)},
				} {
					got := clean(t, c.full, c.typ)
					samePixels(t, got, c.plain)
					checkLeft(t, what, got, len(c.plain)+120, turn)
				}
				for _, name := range []string{"lossy", "lossless", "alpha", "lossless-alpha"} {
					was := webp(t, name)
					got := clean(t, snapshot(t, name, tiff), picture.WebP)
					checkLeft(t, name, got, len(was)+50, turn)
					before, after := parts(was), parts(got)
					for _, typ := range []string{"VP8 ", "VP8L", "ALPH"} {
						if before[typ] != after[typ] {
							t.Errorf("%s: another %s", name, typ)
						}
					}
					flags := before["VP8X"][0] & 0x10
					if turn > 1 && turn < 9 {
						flags |= 0x08
					}
					if after["VP8X"][0] != flags || after["VP8X"][1:] != before["VP8X"][1:] ||
						int(binary.LittleEndian.Uint32(got[4:])) != len(got)-8 {
						t.Errorf("%s: %x after %x", name, after["VP8X"], before["VP8X"])
					}
				}
			})
		}
	}
}

// checkLeft looks for what has to be gone, and for the orientation.
func checkLeft(t testing.TB, what string, got []byte, most int, turn uint16) {
	t.Helper()
	for _, word := range []string{"CANARY", canary[:9], "ICC", "Comment", "XML", "script", "MPF", "JFXX", "EXIF\x00\x00II"} {
		if bytes.Contains(got, []byte(word)) {
			t.Errorf("%s: %q is still there", what, word)
		}
	}
	if len(got) > most {
		t.Errorf("%s: %d bytes, want %d at most", what, len(got), most)
	}
	want := string(binary.BigEndian.AppendUint16([]byte("\x01\x12\x00\x03\x00\x00\x00\x01"), turn))
	if n := bytes.Count(got, []byte(want)); n != 1 && turn > 1 && turn < 9 || n != 0 && (turn < 2 || turn > 8) {
		t.Errorf("%s: turned %d, and that is there %d times", what, turn, n)
	}
}

// A picture that has nothing but itself stays as it is.
func TestCleanPlain(t *testing.T) {
	if b := plainJPEG(t); !bytes.Equal(clean(t, b, picture.JPEG), b) {
		t.Error("a plain JPEG is another now")
	}
	if b := plainPNG(t); !bytes.Equal(clean(t, b, picture.PNG), b) {
		t.Error("a plain PNG is another now")
	}
	simple := riff(part("VP8L", parts(webp(t, "lossless"))["VP8L"]))
	if !bytes.Equal(clean(t, simple, picture.WebP), simple) {
		t.Error("a plain WebP is another now")
	}
	scans := []byte("\xff\xd8" + segment(0xc2, "\x08\x00\x10\x00\x18\x01\x01\x11\x00") + segment(0xc4, "table") +
		segment(0xda, "first") + "data\xff\x00data\xff\xd0data" + segment(0xdd, "\x00\x01") + segment(0xda, "second") +
		"data\xff\x00" + "\xff\xd9")
	if !bytes.Equal(clean(t, scans, picture.JPEG), scans) {
		t.Error("a JPEG of several scans is another now")
	}
}

// What phones put behind a picture is cut off; anything else there makes it something else too.
func TestBehind(t *testing.T) {
	jpg, pngs, web := plainJPEG(t), plainPNG(t), webp(t, "lossy")
	for _, tail := range []string{
		"\x00", strings.Repeat("\x00", 5000), string(jpg), "\x00\x00" + string(jpg), "\x00\x00\x00\x18ftypmp42" + canary,
		"\x00\x00\x00\x00\x00\x0a" + canary + "SEFT",
	} {
		if got := clean(t, append(bytes.Clone(jpg), tail...), picture.JPEG); !bytes.Equal(got, jpg) {
			t.Errorf("behind it %.20q: %d bytes, want %d", tail, len(got), len(jpg))
		}
	}
	for _, b := range [][]byte{pngs, web} {
		got, typ, err := picture.Clean(append(bytes.Clone(b), 0, 0, 0))
		want, _, _ := picture.Clean(b)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s with zeros behind it: %v", typ, err)
		}
	}
	for _, tail := range []string{"<html><script>alert(1)</script>", "PK\x03\x04", "%PDF-1.7", "\n", "GIF89a", "x\x00"} {
		for _, b := range [][]byte{jpg, pngs, web} {
			if _, typ, err := picture.Clean(append(bytes.Clone(b), tail...)); !errors.Is(err, picture.ErrBehind) {
				t.Errorf("%s, behind it %q: error %v", typ, tail, err)
			}
		}
	}
	for _, b := range [][]byte{pngs, web} {
		if _, typ, err := picture.Clean(append(bytes.Clone(b), jpg...)); !errors.Is(err, picture.ErrBehind) {
			t.Errorf("%s, behind it a JPEG: error %v", typ, err)
		}
	}
}

// No beginning of a picture is a picture, and no part of one that lacks a byte.
func TestTruncated(t *testing.T) {
	tiff := exif(binary.BigEndian, 6)
	for what, b := range map[string][]byte{
		"jpeg": photo(t, tiff), "png": drawing(t, tiff), "webp": snapshot(t, "alpha", tiff), "lossless": snapshot(t, "lossless", tiff),
	} {
		for n := range b {
			if got, _, err := picture.Clean(b[:n]); err == nil || got != nil {
				t.Errorf("%s: %d of %d bytes are taken for a picture", what, n, len(b))
			}
		}
		for i := range b { // and whatever is changed, it does not panic
			spoilt := bytes.Clone(b)
			spoilt[i] ^= 0xff
			picture.Clean(spoilt)
			picture.Clean(slices.Delete(bytes.Clone(b), i, i+1))
		}
	}
}

func sizedJPEG(w, h int) []byte {
	size := string([]byte{byte(h >> 8), byte(h), byte(w >> 8), byte(w)})
	return []byte("\xff\xd8" + segment(0xc0, "\x08"+size+"\x01\x01\x11\x00") + segment(0xda, "x") + "\xff\xd9")
}

func sizedPNG(w, h uint32) []byte {
	size := string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h))
	return []byte("\x89PNG\r\n\x1a\n" + chunk("IHDR", size+"\x08\x02\x00\x00\x00") + chunk("IDAT", "x") + chunk("IEND", ""))
}

func sizedLossless(w, h int) string {
	return "\x2f" + string(binary.LittleEndian.AppendUint32(nil, uint32(w-1)|uint32(h-1)<<14)) + "x"
}

func sizedLossy(w, h int) string {
	return "\x10\x00\x00\x9d\x01\x2a" + string([]byte{byte(w), byte(w >> 8), byte(h), byte(h >> 8)}) + "x"
}

func canvas(w, h int) string {
	return "\x10\x00\x00\x00" + string([]byte{
		byte(w - 1), byte((w - 1) >> 8), byte((w - 1) >> 16), byte(h - 1), byte((h - 1) >> 8), byte((h - 1) >> 16),
	})
}

func TestSizes(t *testing.T) {
	small := part("VP8L", sizedLossless(2, 2))
	for what, c := range map[string]struct {
		b   []byte
		err error
	}{
		"jpeg":                {sizedJPEG(8000, 5000), nil},
		"jpeg, a line more":   {sizedJPEG(8000, 5001), picture.ErrTooLarge},
		"jpeg 50,000²":        {sizedJPEG(50_000, 50_000), picture.ErrTooLarge},
		"jpeg without height": {sizedJPEG(10, 0), picture.ErrBroken},
		"jpeg without width":  {sizedJPEG(0, 10), picture.ErrBroken},
		"png":                 {sizedPNG(8000, 5000), nil},
		"png, a line more":    {sizedPNG(8000, 5001), picture.ErrTooLarge},
		"png 50,000²":         {sizedPNG(50_000, 50_000), picture.ErrTooLarge},
		"png 2³²−1":           {sizedPNG(1<<32-1, 1<<32-1), picture.ErrTooLarge},
		"png of nothing":      {sizedPNG(0, 5), picture.ErrBroken},
		"lossless":            {riff(part("VP8L", sizedLossless(8000, 5000))), nil},
		"lossless, more":      {riff(part("VP8L", sizedLossless(8000, 5001))), picture.ErrTooLarge},
		"lossless, most":      {riff(part("VP8L", sizedLossless(16384, 16384))), picture.ErrTooLarge},
		"lossy":               {riff(part("VP8 ", sizedLossy(8000, 5000))), nil},
		"lossy, more":         {riff(part("VP8 ", sizedLossy(8000, 5001))), picture.ErrTooLarge},
		"lossy of nothing":    {riff(part("VP8 ", sizedLossy(0, 1))), picture.ErrBroken},
		"canvas":              {riff(part("VP8X", canvas(8000, 5000)), small), nil},
		"canvas, more":        {riff(part("VP8X", canvas(8000, 5001)), small), picture.ErrTooLarge},
		"canvas 50,000²":      {riff(part("VP8X", canvas(50_000, 50_000)), small), picture.ErrTooLarge},
		"canvas, most":        {riff(part("VP8X", canvas(1<<24, 1<<24)), small), picture.ErrTooLarge},
	} {
		if _, _, err := picture.Clean(c.b); !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", what, err, c.err)
		}
	}
}

func TestRefused(t *testing.T) {
	jpg, pngs := string(plainJPEG(t)), string(plainPNG(t))
	lossless := part("VP8L", sizedLossless(2, 2))
	frame := segment(0xc0, "\x08\x00\x02\x00\x02\x01\x01\x11\x00")
	badCRC := []byte(pngs)
	badCRC[40] ^= 1
	for what, c := range map[string]struct {
		b   string
		err error
	}{
		"nothing":   {"", picture.ErrType},
		"a text":    {"hello", picture.ErrType},
		"SVG":       {`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`, picture.ErrType},
		"SVG, BOM":  {"\xef\xbb\xbf<?xml version=\"1.0\"?><svg/>", picture.ErrType},
		"GIF":       {"GIF89a\x01\x00\x01\x00\x80\x00\x00", picture.ErrType},
		"HTML":      {"<!DOCTYPE html>" + jpg, picture.ErrType},
		"PDF":       {"%PDF-1.7", picture.ErrType},
		"HEIC":      {"\x00\x00\x00\x18ftypheic", picture.ErrType},
		"AVIF":      {"\x00\x00\x00\x18ftypavif", picture.ErrType},
		"BMP":       {"BM\x00\x00\x00\x00", picture.ErrType},
		"RIFF WAVE": {"RIFF\x04\x00\x00\x00WAVE", picture.ErrType},
		"a space":   {" " + jpg, picture.ErrType},

		"JPEG that is HTML":       {"\xff\xd8\xff<html><script>alert(1)</script></html>", picture.ErrBroken},
		"JPEG between segments":   {jpg[:2] + segment(0xfe, "") + "<script>" + jpg[2:], picture.ErrBroken},
		"JPEG without a frame":    {"\xff\xd8" + segment(0xda, "x") + "\xff\xd9", picture.ErrBroken},
		"JPEG without a scan":     {"\xff\xd8" + frame + "\xff\xd9", picture.ErrBroken},
		"JPEG of two frames":      {"\xff\xd8" + frame + frame + segment(0xda, "x") + "\xff\xd9", picture.ErrBroken},
		"JPEG in a JPEG":          {"\xff\xd8" + frame + segment(0xda, "x") + "\xff\xd8" + "\xff\xd9", picture.ErrBroken},
		"JPEG with a short frame": {"\xff\xd8" + segment(0xc0, "\x08\x00") + segment(0xda, "x") + "\xff\xd9", picture.ErrBroken},
		"JPEG with lines later":   {"\xff\xd8" + frame + segment(0xda, "x") + segment(0xdc, "\x00\x02") + "\xff\xd9", picture.ErrBroken},
		"JPEG, lossless":          {"\xff\xd8" + segment(0xc3, "\x08\x00\x02\x00\x02\x01\x01\x11\x00") + "\xff\xd9", picture.ErrType},
		"JPEG, arithmetic":        {"\xff\xd8" + segment(0xc9, "\x08\x00\x02\x00\x02\x01\x01\x11\x00") + "\xff\xd9", picture.ErrType},
		"JPEG with a length of 1": {"\xff\xd8\xff\xe0\x00\x01" + frame + segment(0xda, "x") + "\xff\xd9", picture.ErrBroken},

		"PNG without IHDR":        {pngs[:8] + chunk("tEXt", "x") + pngs[8:], picture.ErrBroken},
		"PNG with two of it":      {pngs[:33] + pngs[8:33] + pngs[33:], picture.ErrBroken},
		"PNG without data":        {pngs[:33] + chunk("IEND", ""), picture.ErrBroken},
		"PNG with a bad CRC":      {string(badCRC), picture.ErrBroken},
		"PNG with unknown needs":  {pngs[:33] + chunk("ABCD", "x") + pngs[33:], picture.ErrBroken},
		"PNG with a long palette": {pngs[:33] + chunk("PLTE", strings.Repeat("x", 769)) + pngs[33:], picture.ErrBroken},
		"PNG with a full end":     {pngs[:len(pngs)-12] + chunk("IEND", "x"), picture.ErrBroken},

		"WebP without a picture":     {string(riff(part("VP8X", canvas(2, 2)))), picture.ErrBroken},
		"WebP of two pictures":       {string(riff(lossless, lossless)), picture.ErrBroken},
		"WebP that moves":            {string(riff(part("VP8X", "\x02\x00\x00\x00\x01\x00\x00\x01\x00\x00"), lossless)), picture.ErrAnimated},
		"WebP of frames":             {string(riff(part("VP8X", canvas(2, 2)), part("ANMF", "x"))), picture.ErrAnimated},
		"WebP with a late head":      {string(riff(lossless, part("VP8X", canvas(2, 2)))), picture.ErrBroken},
		"WebP with a short head":     {string(riff(part("VP8X", "\x00"), lossless)), picture.ErrBroken},
		"WebP with alpha unasked":    {string(riff(part("ALPH", "x"), lossless)), picture.ErrBroken},
		"WebP with a bad start":      {string(riff(part("VP8L", "\x2e\x00\x00\x00\x00"))), picture.ErrBroken},
		"WebP that is no key frame":  {string(riff(part("VP8 ", "\x11"+sizedLossy(2, 2)[1:]))), picture.ErrBroken},
		"WebP longer than it is":     {"RIFF\xff\xff\xff\xffWEBP" + lossless, picture.ErrBroken},
		"WebP shorter than its head": {"RIFF\x00\x00\x00\x00WEBP" + lossless, picture.ErrBroken},
		"WebP with a part of a part": {"RIFF\x08\x00\x00\x00WEBPVP8L" + lossless[8:], picture.ErrBroken},
	} {
		got, _, err := picture.Clean([]byte(c.b))
		if got != nil || err == nil || !errors.Is(err, c.err) && !errors.Is(err, picture.ErrBehind) {
			t.Errorf("%s: %d bytes, error %v, want %v", what, len(got), err, c.err)
		}
	}
}

// An Exif that does not parse says nothing of how to turn.
func TestOrientationThatIsNone(t *testing.T) {
	good := exif(binary.BigEndian, 6)
	for what, tiff := range map[string][]byte{
		"nothing":                 {},
		"a short head":            good[:7],
		"another start":           append([]byte("XX"), good[2:]...),
		"a directory beyond":      append([]byte("MM\x00*\xff\xff\xff\xff"), good[8:]...),
		"a directory at the edge": append([]byte("MM\x00*\x00\x00\x00\x4f"), good[8:]...),
		"more entries than there": append(bytes.Clone(good[:8]), "\xff\xff"+strings.Repeat("\x00", 24)...),
		"another type":            bytes.Replace(good, []byte("\x01\x12\x00\x03"), []byte("\x01\x12\x00\x04"), 1),
		"two of it":               bytes.Replace(good, []byte("\x01\x12\x00\x03\x00\x00\x00\x01"), []byte("\x01\x12\x00\x03\x00\x00\x00\x02"), 1),
	} {
		got := clean(t, photo(t, tiff), picture.JPEG)
		if bytes.Contains(got, []byte("Exif")) {
			t.Errorf("%s: it is turned", what)
		}
	}
}

// twoMinds reports whether a picture that was cleaned says with JFIF that its colours are YCbCr, and what
// it was cleaned of is read as RGB, as Adobe's segment says. Browsers (libjpeg) go by JFIF, as we do;
// image/jpeg forgets it at the next APP0 segment, such as JFXX.
func twoMinds(t *testing.T, cleaned, was []byte) bool {
	t.Helper()
	a, _, err := image.Decode(bytes.NewReader(cleaned))
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := image.Decode(bytes.NewReader(was))
	if err != nil {
		t.Fatal(err)
	}
	_, coded := a.(*image.YCbCr)
	_, plain := b.(*image.RGBA)
	return coded && plain && bytes.Contains(cleaned, []byte("JFIF\x00")) && bytes.Contains(cleaned, []byte("Adobe"))
}

// FuzzClean: whatever comes in, what comes out is a picture that stays as it is when it is cleaned
// again, is hardly longer, and has the same pixels, if there were any.
func FuzzClean(f *testing.F) {
	for _, tiff := range [][]byte{exif(binary.LittleEndian, 3), exif(binary.BigEndian, 6), {}} {
		f.Add(photo(f, tiff))
		f.Add(drawing(f, tiff))
		for _, name := range []string{"lossy", "lossless", "alpha", "lossless-alpha"} {
			f.Add(snapshot(f, name, tiff))
		}
	}
	other := photo(f, exif(binary.BigEndian, 6))
	other[bytes.Index(other, []byte("Adobe"))+11] = 0
	f.Add(other)
	f.Add(plainJPEG(f))
	f.Add(plainPNG(f))
	f.Add(sizedJPEG(50_000, 50_000))
	f.Add(sizedPNG(50_000, 50_000))
	f.Fuzz(func(t *testing.T, b []byte) {
		was := bytes.Clone(b)
		got, typ, err := picture.Clean(b)
		if !bytes.Equal(b, was) {
			t.Fatal("what was passed in is another now")
		}
		if err != nil {
			if got != nil {
				t.Fatal("an error, and a picture")
			}
			return
		}
		if len(got) > len(b)+16 {
			t.Errorf("%d bytes became %d", len(b), len(got))
		}
		again, as, err := picture.Clean(bytes.Clone(got))
		if err != nil || as != typ || !bytes.Equal(again, got) {
			t.Errorf("cleaned again: %s of %d bytes, %s of %d before, error %v", as, len(again), typ, len(got), err)
		}
		if c, _, err := image.DecodeConfig(bytes.NewReader(b)); err != nil || c.Width*c.Height > 1<<20 {
			return
		}
		if _, _, err := image.Decode(bytes.NewReader(b)); err == nil && !twoMinds(t, got, b) {
			samePixels(t, got, b)
		}
	})
}
