package rows

import "github.com/seed-8aba7b13/tracking"

// Push is a browser of a driver as stores encode it. A [tracking.PushSubscription] itself encodes
// without its secrets.
type Push struct{ Endpoint, P256dh, Auth string }

// Pushes are a driver's browsers as stores encode them.
func Pushes(list []tracking.PushSubscription) (kept []Push) {
	for _, p := range list {
		kept = append(kept, Push{string(p.Endpoint), p.P256dh, string(p.Auth)})
	}
	return kept
}

// Subscriptions are the browsers that were kept.
func Subscriptions(kept []Push) (list []tracking.PushSubscription) {
	for _, p := range kept {
		list = append(list, tracking.PushSubscription{
			Endpoint: tracking.Secret(p.Endpoint), P256dh: p.P256dh, Auth: tracking.Secret(p.Auth),
		})
	}
	return list
}
