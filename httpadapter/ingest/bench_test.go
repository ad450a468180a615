package ingest_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking/httpadapter/ingest"
)

// BenchmarkDecode reads the largest batch of Overland, and bodies of 1 MiB that are made to cost
// the most.
func BenchmarkDecode(b *testing.B) {
	var batch bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&batch,
			`,{"type":"Feature","geometry":{"type":"Point","coordinates":[30,60]},"properties":{"timestamp":"2013-08-22T13:%02d:%02dZ",`+
				`"altitude":0,"speed":4,"course":90,"horizontal_accuracy":30,"vertical_accuracy":-1,"motion":["driving","stationary"],`+
				`"battery_state":"charging","battery_level":0.89,"device_id":"","wifi":"%0100d"}}`, i/60, i%60, 0)
	}
	full := func(begin, part string) string {
		return begin + strings.Repeat(part, (ingest.MaxBody-len(begin))/len(part))
	}
	for _, bb := range []struct{ name, body string }{
		{"batch", `{"locations":[` + batch.String()[1:] + `]}`},
		{"points", full("[", `{"lat":1,"lon":2},`)},
		{"half points", full("[", `{"lat":1},`)},
		{"empty", full(`{"locations":[`, "{},")},
		{"deep", full("", `{"location":[`)},
		{"one name", full("{", `"coords":{},`)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.body)))
			b.ReportAllocs()
			for b.Loop() {
				ingest.Decode(request("", js, bb.body), now)
			}
		})
	}
}
