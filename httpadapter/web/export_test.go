package web

// Contrast is the contrast ratio of two colours.
func Contrast(a, b string) float64 { return contrast(parseColor(a), parseColor(b)) }
