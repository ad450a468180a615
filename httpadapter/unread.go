package httpadapter

import (
	"maps"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

const (
	unreadEvery = time.Hour // between two lines about one driver's phone: it sends again, for ever
	unreadMost  = 10_000    // drivers that are remembered
)

// unreadLog says of whose phones it has lately been logged that they send what cannot be read.
type unreadLog struct {
	mu    sync.Mutex
	last  map[appDriver]time.Time
	swept time.Time
}

type appDriver struct {
	app    tracking.AppID
	driver tracking.DriverID
}

// due reports whether it is time for a line, and notes that there is one. Of more drivers than can
// be remembered, those beyond have none.
func (l *unreadLog) due(of appDriver, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	over := func(last time.Time) bool { // one from the future is of a clock that was wrong
		return last.After(now) || now.Sub(last) >= unreadEvery
	}
	if last, ok := l.last[of]; ok && !over(last) {
		return false
	}
	if len(l.last) >= unreadMost && now.Sub(l.swept).Abs() >= time.Minute {
		l.swept = now
		maps.DeleteFunc(l.last, func(_ appDriver, last time.Time) bool { return over(last) })
	}
	if len(l.last) >= unreadMost {
		return false
	}
	if l.last == nil {
		l.last = map[appDriver]time.Time{}
	}
	l.last[of] = now
	return true
}
