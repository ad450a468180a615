package httpadapter

import "github.com/seed-8aba7b13/tracking"

// RouteInfo is what tests see of a route.
type RouteInfo struct {
	Method, Pattern string
	Who             string // "public", "application", "driver"
}

// Routes is the route table, without the files of the web front ends.
func (h *Handler) Routes() []RouteInfo {
	var list []RouteInfo
	for _, rt := range h.routes() {
		if rt.front {
			continue
		}
		list = append(list, RouteInfo{rt.method, rt.pattern, []string{"public", "application", "driver"}[rt.who]})
	}
	return list
}

// StatusOf is the status of an error code.
func StatusOf(code tracking.ErrorCode) (int, bool) { return statusOf(code) }

// Watching is the number of links that are being followed.
func (h *Handler) Watching() int {
	h.feeds.mu.Lock()
	defer h.feeds.mu.Unlock()
	return len(h.feeds.open)
}
