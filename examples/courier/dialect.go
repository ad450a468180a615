package main

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/courier/internal/trace"
)

// What each app makes of a point. The battery of this phone is always at four fifths, and it never
// knows how accurate a point is.

const (
	battery     = 0.8
	knotsPerMPS = 1.94384 // as Traccar Client has it
)

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// float is a number as Java writes it, which shows 0 as 0.0.
func float(f float64) string {
	s := decimal(f)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// orElse is a reading's value, or what an app sends for an unknown one.
func orElse(r tracking.Reading, unknown float64) float64 {
	if !r.Known {
		return unknown
	}
	return r.Value
}

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func post(url, contentType, body string) []message {
	h := http.Header{}
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	return []message{{http.MethodPost, url, h, body}}
}

func postJSON(url string, v any) []message {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // of numbers that no trace has
	}
	return post(url, "application/json; charset=utf-8", string(body))
}

// traccar8 has everything in the query.
func traccar8(p *gpsPhone, points []trace.Point) []message {
	pt := points[0]
	query := "id=" + url.QueryEscape(p.device) + "&timestamp=" + seconds(pt.Time) + "&lat=" + decimal(pt.LngLat.Lat) +
		"&lon=" + decimal(pt.LngLat.Lng) +
		"&speed=" + float(orElse(pt.Speed, 0)*knotsPerMPS) + "&bearing=" + float(orElse(pt.Bearing, 0)) +
		"&altitude=0.0&accuracy=0.0&batt=" + float(100*battery)
	return post(p.url+"?"+query, "", "")
}

func traccar9(p *gpsPhone, points []trace.Point) []message {
	pt := points[0]
	type object = map[string]any
	at := timestamp(pt.Time)
	return postJSON(p.url, object{
		"location": object{
			"timestamp": at,
			"coords": object{
				"latitude": pt.LngLat.Lat, "longitude": pt.LngLat.Lng, "accuracy": -1, "speed": orElse(pt.Speed, -1),
				"heading": orElse(pt.Bearing, -1), "altitude": 0,
			},
			"is_moving": true, "odometer": 0, "event": "motionchange", "battery": object{
				"level": battery, "is_charging": false,
			},
			"activity": object{"type": "in_vehicle"}, "extras": object{},
			"_": "&id=" + p.device + "&lat=" + decimal(pt.LngLat.Lat) + "&lon=" + decimal(pt.LngLat.Lng) +
				"&timestamp=" + at + "&",
		},
		"device_id": p.device,
	})
}

const formType = "application/x-www-form-urlencoded"

func traccar10(p *gpsPhone, points []trace.Point) []message {
	pt := points[0]
	form := "id=" + url.QueryEscape(p.device) + "&lat=" + decimal(pt.LngLat.Lat) + "&lon=" + decimal(pt.LngLat.Lng) +
		"&timestamp=" + seconds(pt.Time)
	if pt.Speed.Known {
		form += "&speed=" + float(math.Round(pt.Speed.Value*knotsPerMPS*100)/100)
	}
	if pt.Bearing.Known {
		form += "&bearing=" + float(pt.Bearing.Value)
	}
	return post(p.url, formType, form+"&batt="+float(100*battery)+"&charge=false")
}

// traccar10Hello is where messages to the phone could go, and a heartbeat: a time without a place.
func traccar10Hello(p *gpsPhone) []message {
	id := "id=" + url.QueryEscape(p.device)
	return append(post(p.url, formType, id+"&notificationToken=none"),
		post(p.url, formType, id+"&timestamp="+seconds(time.Now())+"&batt="+float(100*battery))...)
}

// osmand fills in its template, with coordinates of 32 bits.
func osmand(p *gpsPhone, points []trace.Point) []message {
	pt := points[0]
	coordinate := func(f float64) string { return strconv.FormatFloat(float64(float32(f)), 'f', -1, 32) }
	filled := strings.NewReplacer(
		"{0}", coordinate(pt.LngLat.Lat), "{1}", coordinate(pt.LngLat.Lng), "{2}",
		strconv.FormatInt(pt.Time.UnixMilli(), 10), "{3}", "0.0", "{4}", "0.0",
		"{5}", float(orElse(pt.Speed, 0)), "{6}", float(orElse(pt.Bearing, 0)), "{7}", "0", "{8}", "0", "{9}", "0",
		"{10}", "0",
	).Replace(p.templates["osmand"])
	return []message{{method: http.MethodGet, url: filled}}
}

// gpslogger fills in its template. What is unknown is 0.0.
func gpslogger(p *gpsPhone, points []trace.Point) []message {
	pt := points[0]
	filled := strings.NewReplacer(
		"%LAT", decimal(pt.LngLat.Lat), "%LON", decimal(pt.LngLat.Lng), "%TIMESTAMP", seconds(pt.Time), "%ACC", "0.0",
		"%ALT", "0.0",
		"%SPD", float(orElse(pt.Speed, 0)), "%DIR", float(orElse(pt.Bearing, 0)), "%BATT", float(100*battery),
	).Replace(p.templates["gpslogger"])
	return []message{{method: http.MethodGet, url: filled}}
}

// ownTracks leaves out what is 0. A message that is sent anew has a new created_at.
func ownTracks(p *gpsPhone, points []trace.Point) []message {
	pt := points[0]
	location := map[string]any{
		"_type": "location", "lat": pt.LngLat.Lat, "lon": pt.LngLat.Lng, "tst": pt.Time.Unix(),
		"created_at": time.Now().Unix(),
		"batt":       int(100 * battery), "bs": 1, "conn": "m", "m": 2, "t": "t", "tid": "CO",
		"topic": "owntracks/courier/phone",
	}
	if v := math.Round(orElse(pt.Speed, 0) * 3.6); v > 0 {
		location["vel"] = int(v)
	}
	if v := math.Round(orElse(pt.Bearing, 0)); v > 0 {
		location["cog"] = int(v)
	}
	return limited(postJSON(p.url, location))
}

func ownTracksHello(p *gpsPhone) []message {
	return limited(append(postJSON(p.url, map[string]any{
		"_type": "status", "android": map[string]any{"hib": 0},
	}), post(p.url, "application/json; charset=utf-8", "")...))
}

// limited names user and device as OwnTracks does.
func limited(list []message) []message {
	for _, m := range list {
		m.header["X-Limit-U"], m.header["X-Limit-D"] = []string{"courier"}, []string{"phone"}
	}
	return list
}

// overland sends a batch, and while there is more of it, the newest point too.
func overland(p *gpsPhone, points []trace.Point) []message {
	type object = map[string]any
	whole := func(r tracking.Reading) int { return int(math.Round(orElse(r, -1))) }
	feature := func(pt trace.Point) object {
		return object{
			"type": "Feature", "geometry": object{
				"type": "Point", "coordinates": []float64{pt.LngLat.Lng, pt.LngLat.Lat},
			},
			"properties": object{
				"timestamp": pt.Time.UTC().Format("2006-01-02T15:04:05Z"), "altitude": 0, "speed": whole(pt.Speed),
				"course": whole(pt.Bearing), "horizontal_accuracy": -1,
				"vertical_accuracy": -1, "speed_accuracy": -1, "course_accuracy": -1, "motion": []string{"driving"},
				"battery_state": "unplugged", "battery_level": battery,
				"device_id": "phone", "wifi": "",
			},
		}
	}
	batch := points[:min(len(points), p.app.batch)]
	body := object{}
	var locations []object
	for _, pt := range batch {
		locations = append(locations, feature(pt))
	}
	body["locations"] = locations
	if len(points) > len(batch) {
		body["current"] = feature(points[len(points)-1])
	}
	list := postJSON(p.url, body)
	list[0].header.Set("Authorization", "Bearer "+p.device)
	return list
}
