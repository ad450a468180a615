package ingest_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/seed-8aba7b13/tracking/httpadapter/ingest"
)

func ExampleDecode() {
	msg := ingest.Decode(ingest.Request{
		Method: http.MethodPost,
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		Body:   []byte("id=48241179&lat=37.42&lon=-122.08&timestamp=1750000000&accuracy=5.0&speed=19.44&batt=80.0"),
	}, time.Now())
	f := msg.Fixes[0]
	fmt.Println(msg.Dialect, f.LngLat, f.Time.Format(time.RFC3339))
	fmt.Printf("%.1f m/s, ±%.0f m, battery %.0f %%\n", f.Speed.Value, f.Accuracy.Value, 100*f.Battery.Value)
	// Output:
	// traccar10 {-122.08 37.42} 2025-06-15T15:06:40Z
	// 10.0 m/s, ±5 m, battery 80 %
}
