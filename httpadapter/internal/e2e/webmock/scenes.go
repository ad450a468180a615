package webmock

import (
	"fmt"
	"time"
)

const (
	longAddress = "Residence of the Extraordinarily Long Named Society for the Advancement of Parcel Logistics, Building 14, Staircase C, 3rd floor, second door on the left behind the bicycle stand, Donaudampfschifffahrtsgesellschaftskapitänsstraße 1234, 10117 Berlin"
	arabicName  = "عبد الرحمن"
)

func ms(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// merge lays objects over one another, later ones over earlier ones. A nil value takes the key
// away.
func merge(objects ...object) object {
	out := object{}
	for _, o := range objects {
		for k, v := range o {
			if v == nil {
				delete(out, k)
			} else {
				out[k] = v
			}
		}
	}
	return out
}

// trackScenes are the states of a link to look at, by the name that stands for its token.
func trackScenes(now time.Time) map[string]map[string]any {
	ago := func(d time.Duration) string { return ms(now.Add(-d)) }
	route := Route()
	door := route[len(route)-1]
	on := route[:len(route)*2/3]
	at := on[len(on)-1]
	base := object{
		"kind": "task", "type": 2, "status": "created", "outcome": "", "order_id": "#1001",
		"time":  ago(42 * time.Minute),
		"place": object{"address": "Lindenstraße 12, 10117 Berlin", "lnglat": door}, "path": [][2]float64{},
	}
	driver := object{"driver": object{"name": "Maria"}}
	under := merge(base, driver, object{
		"status": "in_progress", "leg": "drop", "started_at": ago(11 * time.Minute), "path": on,
		"position": object{"lnglat": at, "time": ago(4 * time.Second), "bearing": 90, "live": true},
		"eta":      object{"time": ms(now.Add(7 * time.Minute)), "computed_at": ago(0), "source": "estimate"},
	})
	over := merge(under, object{
		"status": "completed", "leg": nil, "driver": nil, "position": nil, "eta": nil, "path": [][2]float64{},
		"ended_at": ago(3 * time.Minute),
	})
	in := func(d time.Duration) object {
		return object{"time": ms(now.Add(d)), "computed_at": ago(0), "source": "estimate"}
	}
	window := object{
		"window":   object{"from": ms(now.Add(time.Hour)), "to": ms(now.Add(3 * time.Hour))},
		"promised": ms(now.Add(3 * time.Hour)),
	}
	under["phase"] = "to_drop"
	shop := object{"address": "Bakery, Mill Lane 3", "lnglat": route[len(route)*5/6]}
	return map[string]map[string]any{
		"ordered":  base,
		"assigned": merge(base, object{"status": "assigned"}),
		"window":   merge(base, window, object{"phase": "created"}),
		"window_tomorrow": merge(base, object{
			"window": object{"from": ms(now.Add(25 * time.Hour)), "to": ms(now.Add(27 * time.Hour))},
		}),
		"promised": merge(base, object{"status": "assigned", "promised": ms(now.Add(time.Hour))}),
		"overdue":  merge(base, object{"status": "assigned", "promised": ago(20 * time.Minute)}),
		"stops":    merge(under, window, object{"stops_before": 3, "eta": in(52 * time.Minute)}),
		"next":     merge(under, window, object{"stops_before": 0, "eta": in(14 * time.Minute)}),
		"late": merge(under, object{
			"promised": ms(now.Add(10 * time.Minute)), "stops_before": 1, "eta": in(34 * time.Minute),
		}),
		"arriving": merge(under, object{"phase": "arriving", "stops_before": 0, "eta": in(3 * time.Minute)}),
		"pin": merge(under, object{
			"phase": "arriving", "stops_before": 0, "eta": in(3 * time.Minute), "pin": "4711",
			"customer_note": "Please ring twice.",
		}),
		"received": merge(over, object{
			"outcome": "succeeded", "phase": "done", "received_by": "Mr Neighbour", "photos": []string{"p1", "p2"},
		}),
		"retry": merge(base, window, object{
			"phase":   "created",
			"earlier": object{"outcome": "failed", "reason_code": "not_home", "ended_at": ago(50 * time.Minute)},
		}),
		"collecting": merge(under, object{"type": 3, "leg": "pickup", "phase": "at_pickup", "stops_before": 1, "eta": in(31 * time.Minute)}),
		"not_home":   merge(over, object{"outcome": "failed", "phase": "done", "reason_code": "not_home"}),
		"on_the_way": under,
		"to_pickup":  merge(under, object{"type": 1, "leg": "pickup", "phase": "to_pickup", "place": shop}),
		"fetching": merge(under, object{
			"type": 3, "leg": "pickup", "phase": "to_pickup",
			"eta": object{"time": ms(now.Add(24 * time.Minute)), "computed_at": ago(0), "source": "estimate"},
		}),
		"at_door": merge(under, object{
			"phase": "at_drop",
			"path":  route, "position": object{"lnglat": door, "time": ago(4 * time.Second), "live": true},
			"eta": object{"time": ago(4 * time.Second), "computed_at": ago(4 * time.Second), "source": "estimate"},
		}),
		"vague": merge(under, object{
			"position": object{"lnglat": at, "time": ago(4 * time.Second), "accuracy": 820, "live": true},
		}),
		"picked_up": merge(under, object{"type": 3, "picked_up_at": ago(5 * time.Minute)}),
		"last_seen": merge(under, object{
			"eta": nil, "position": object{"lnglat": at, "time": ago(9 * time.Minute), "live": false},
		}),
		"no_position":   merge(under, object{"eta": nil, "position": nil, "path": [][2]float64{}}),
		"delivered":     merge(over, object{"outcome": "succeeded"}),
		"collected":     merge(over, object{"outcome": "succeeded", "type": 1}),
		"not_delivered": merge(over, object{"outcome": "failed"}),
		"cancelled":     merge(over, object{"outcome": "cancelled", "started_at": nil}),
		"trip":          merge(under, object{"kind": "trip", "type": nil, "leg": nil, "status": "1", "order_id": ""}),
		"trip_ended":    merge(over, object{"kind": "trip", "type": nil, "status": "2", "order_id": ""}),
		"long": merge(under, object{
			"order_id": "INV/2024/17-with-a-very-long-reference-that-does-not-break-by-itself-0123456789",
			"driver":   object{"name": arabicName}, "place": object{"address": longAddress, "lnglat": door},
		}),
		"address_only": merge(under, object{"place": object{"address": "Lindenstraße 12, 10117 Berlin"}}),
	}
}

// shift is a courier's morning of fifteen stops.
func shift(now time.Time) (tasks []map[string]any) {
	route := Route()
	for i := range 15 {
		at := now.Add(time.Duration(i) * 20 * time.Minute)
		tasks = append(tasks, object{
			"task_id": fmt.Sprintf("s-%02d", i), "type": 2 + i%2, "status": "assigned", "outcome": "",
			"order_id": fmt.Sprintf("#%d", 2001+i), "notes": "", "time": ms(at),
			"pickup": object{"address": "Bakery, Mill Lane 3, 10117 Berlin"},
			"drop": object{
				"address":  fmt.Sprintf("Lindenstraße %d, 10117 Berlin", 3+2*i),
				"lnglat":   route[i*len(route)/15],
				"customer": object{"name": "Ada Long", "mobile": "+49 170 7654321"},
			},
			"created_at": ms(now.Add(time.Duration(i-60) * time.Minute)),
		})
	}
	return tasks
}

func driverScenes(now time.Time) []Driver {
	ago := func(d time.Duration) string { return ms(now.Add(-d)) }
	route := Route()
	me := object{"driver_id": "d-7", "name": "Maria Müller", "availability": false}
	onDuty := merge(me, object{"availability": true})
	bakery := object{
		"address": "Bakery, Mill Lane 3, 10117 Berlin", "lnglat": route[len(route)/3],
		"customer": object{"name": "Mr Baker", "mobile": "+49 30 1234567"},
	}
	home := object{
		"address": "Lindenstraße 12, 10117 Berlin", "lnglat": route[len(route)-1],
		"customer": object{"name": "Ada Long", "mobile": "+49 170 7654321"},
	}
	fresh := object{
		"task_id": "t-1", "type": 3, "status": "assigned", "outcome": "", "order_id": "#1001",
		"notes": "Ring twice. The dog is friendly.\nThe box is marked fragile.", "pickup": bakery, "drop": home,
		"created_at": ago(3 * time.Minute),
	}
	driving := merge(fresh, object{
		"status": "in_progress", "started_at": ago(6 * time.Minute),
		"window":        object{"from": ms(now.Add(10 * time.Minute)), "to": ms(now.Add(70 * time.Minute))},
		"customer_note": "Please use the back door, the bell is broken.",
	})
	running := merge(fresh, object{
		"status": "in_progress", "started_at": ago(6 * time.Minute), "picked_up_at": ago(2 * time.Minute),
		"arrived_at": ago(20 * time.Second), "late": true, "promised": ago(3 * time.Minute),
	})
	proving := merge(running, object{"proof": []string{"photo", "signature", "name", "pin"}})
	second := object{
		"task_id": "t-2", "type": 2, "status": "assigned", "outcome": "", "order_id": "INV/2026/17", "notes": "",
		"drop":       object{"address": longAddress, "customer": object{"name": arabicName, "mobile": "0170 1"}},
		"created_at": ago(2 * time.Minute),
	}
	// Three parcels for one house.
	var house []map[string]any
	for i, name := range []string{"Ada Long", "Ben Short", "Cleo Middle-Very-Long-Name"} {
		parcel := object{
			"task_id": fmt.Sprintf("h-%d", i), "type": 2, "status": "in_progress", "outcome": "",
			"order_id": fmt.Sprintf("#30%d", i), "notes": []string{"", "2nd floor", ""}[i],
			"started_at": ago(9 * time.Minute), "arrived_at": ago(time.Minute), "created_at": ago(time.Hour),
			"drop": merge(home, object{"customer": object{"name": name, "mobile": "+49 170 765432"}}),
		}
		house = append(house, parcel)
	}
	done := object{
		"task_id": "t-0", "type": 2, "status": "completed", "outcome": "succeeded",
		"drop": object{"address": "Parkweg 5"}, "created_at": ago(time.Hour), "completed_at": ago(30 * time.Minute),
	}
	failed := object{
		"task_id": "t-00", "type": 2, "status": "completed", "outcome": "failed", "reason": "Nobody there",
		"drop": object{"address": "Bahnhofstraße 77"}, "created_at": ago(2 * time.Hour),
		"completed_at": ago(time.Hour),
	}
	request := object{"tracking_id": "tour-north", "message": "Please take the evening tour.", "dest": object{
		"address": "Depot North", "lnglat": route[0],
	},
		"desc_html": "<p>Gate code <b>4711</b></p><ul><li>12 parcels</li><li><a href=\"https://example.com/plan\">Plan</a></li></ul>", "created_at": ago(time.Minute)}
	trip := object{"_id": "trip-1", "tracking_id": "tour-south", "status": "1", "started_at": ago(25 * time.Minute)}
	apps := []map[string]any{
		{
			"app": "traccar", "name": "Traccar Client",
			"link": "org.traccar.client://host/?url=https%3A%2F%2Fexample.com%2Fingest%2FTOKEN&id=TOKEN&accuracy=high&interval=15&distance=25&stop_detection=false&buffer=true",
		},
		{
			"app": "owntracks", "name": "OwnTracks",
			"link": "owntracks:///config?inline=eyJfdHlwZSI6ImNvbmZpZ3VyYXRpb24ifQ",
		},
		{
			"app": "osmand", "name": "OsmAnd",
			"template": "https://example.com/ingest/TOKEN?lat={0}&lon={1}&timestamp={2}&accuracy={3}&altitude={4}&speed={5}&bearing={6}&speed_unit=ms",
		},
	}
	return []Driver{
		{Name: "empty", Me: me, Apps: apps},
		{Name: "waiting", Me: onDuty, Apps: apps},
		{Name: "busy", Me: onDuty, Tasks: []map[string]any{fresh, second, done, failed}, Apps: apps},
		{Name: "running", Me: onDuty, Tasks: []map[string]any{running, second, done}, Apps: apps},
		{Name: "trips", Me: onDuty, Trips: []map[string]any{trip}, Requests: []map[string]any{request}, Apps: apps},
		{Name: "revoked", Me: onDuty, Revoked: true},
		{Name: "shift", Me: onDuty, Tasks: shift(now), Apps: apps},
		{Name: "phone", Me: merge(onDuty, object{"clock_skew": 95, "unread": 12}), Apps: apps},
		{Name: "refused", Me: onDuty, Tasks: []map[string]any{running, second}, Apps: apps, Refuses: true},
		{Name: "proof", Me: onDuty, Tasks: []map[string]any{proving, second}, Apps: apps, WrongPIN: true},
		{Name: "driving", Me: onDuty, Tasks: []map[string]any{driving, second, done}, Apps: apps},
		{Name: "house", Me: onDuty, Tasks: append(house, second, done), Apps: apps},
	}
}
