package web

import (
	"fmt"
	"math"
	"strconv"
)

// rgb is a colour in sRGB.
type rgb [3]uint8

func parseColor(s string) rgb {
	var c rgb
	for i := range c {
		v, _ := strconv.ParseUint(s[1+2*i:3+2*i], 16, 8) // Site.Check has seen it
		c[i] = uint8(v)
	}
	return c
}

func (c rgb) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// luminance is the relative luminance of WCAG 2.2.
func (c rgb) luminance() float64 {
	lin := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*lin(c[0]) + 0.7152*lin(c[1]) + 0.0722*lin(c[2])
}

// contrast is the contrast ratio of WCAG 2.2, 1 … 21.
func contrast(a, b rgb) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// toward mixes c with another colour in steps until it stands out from ground by at least ratio.
func (c rgb) toward(other, ground rgb, ratio float64) rgb {
	for i := 0; i <= 50; i++ {
		f := float64(i) / 50
		var m rgb
		for k := range m {
			m[k] = uint8(math.Round(float64(c[k])*(1-f) + float64(other[k])*f))
		}
		if contrast(m, ground) >= ratio {
			return m
		}
	}
	return other
}

// style gives the style sheet its colours. A brand may be yellow or nearly black: fills, lines and
// markers must still stand out from both grounds (3 : 1 for graphics, WCAG 1.4.11), and text on a
// fill from the fill (4.5 : 1).
func (s Site) style() string {
	white, black := rgb{255, 255, 255}, rgb{}
	light := parseColor(s.color()).toward(black, white, 3)
	dark := parseColor(s.color()).toward(white, rgb{0x1a, 0x1c, 0x20}, 3)
	on := func(fill rgb) rgb {
		if contrast(white, fill) >= 4.5 || contrast(white, fill) >= contrast(black, fill) {
			return white
		}
		return black
	}
	return fmt.Sprintf(":root{--brand-light:%s;--on-brand-light:%s;--brand-dark:%s;--on-brand-dark:%s}", light,
		on(light), dark, on(dark))
}
