package postgres

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// fixLog is what a transaction knows of a driver's fixes, and what it changes of them. It talks to
// nobody: what it is asked for and does not know ends the rule with errUnread. Then that is read,
// for all drivers of the transaction at once, and the rule begins anew.
type fixLog struct {
	fixes []tracking.KeptFix // in order of time: those within known, and those put, once some are known
	known []span             // the times of which all is known, in order, with a gap between any two
	trips tripWindows

	fresh  []tracking.KeptFix         // put, to be written
	marks  map[int64]tracking.FixMark // to be changed, by time
	forget int64                      // the fixes kept after that time are removed; endless: none

	want *want // what was asked for in vain
	most int   // how many fixes to read in vain's stead, next time
}

var _ tracking.FixLog = (*fixLog)(nil)

// errUnread stops the rule where it needs what was not read yet.
var errUnread = errors.New("postgres: these fixes are yet to be read")

// span are times in UTC milliseconds, both ends included.
type span struct{ from, to int64 }

// want are the fixes to read: so many before a time, and so many from it on; or the trips of some
// times.
type want struct {
	at     int64
	before int
	from   int
	trips  *span
}

// tripWindows are the driver's trips that lie within some times.
type tripWindows struct {
	known *span
	spans []span
}

func newFixLog() fixLog { return fixLog{forget: endless} }

// try runs f, which may end in vain: then the log is as it was, but for what it wants.
func (l *fixLog) try(f func() error) error {
	was := *l
	l.fixes, l.known, l.fresh = slices.Clone(l.fixes), slices.Clone(l.known), slices.Clone(l.fresh)
	l.marks = maps.Clone(l.marks)
	err := f()
	if err != nil {
		was.want, was.most = l.want, l.most
		*l = was
	}
	return err
}

// How many fixes are read around a late one at first. What is asked for is less, mostly.
const readAround = 16

// maxRead bounds what is read of a driver in one go, where each reading was not enough.
const maxRead = 1 << 14

// unread notes what to read. Whoever asks for fixes before a time will ask for those after it as
// well.
func (l *fixLog) unread(t int64, n int) error {
	n = max(n, l.most, readAround)
	l.want, l.most = &want{at: t, before: n, from: n}, min(2*n, maxRead)
	return errUnread
}

// find is the index of the first fix at or after t.
func (l *fixLog) find(t int64) int {
	return sort.Search(len(l.fixes), func(i int) bool { return l.fixes[i].Time.UnixMilli() >= t })
}

// around is the known span that t lies in.
func (l *fixLog) around(t int64) (span, bool) {
	for _, s := range l.known {
		if s.from <= t && t <= s.to {
			return s, true
		}
	}
	return span{}, false
}

func (l *fixLog) Before(at time.Time, n int) ([]tracking.KeptFix, error) {
	t := at.UnixMilli()
	s, ok := l.around(t - 1)
	if !ok {
		return nil, l.unread(t, n)
	}
	list := make([]tracking.KeptFix, 0, n)
	for i := l.find(t) - 1; i >= 0 && len(list) < n && l.fixes[i].Time.UnixMilli() >= s.from; i-- {
		list = append(list, l.fixes[i])
	}
	if len(list) < n && s.from != math.MinInt64 {
		return nil, l.unread(t, n)
	}
	return list, nil
}

func (l *fixLog) From(at time.Time, n int) ([]tracking.KeptFix, error) {
	t := at.UnixMilli()
	s, ok := l.around(t)
	if !ok {
		return nil, l.unread(t, n)
	}
	first := l.find(t)
	end := first
	for end < len(l.fixes) && end-first < n && l.fixes[end].Time.UnixMilli() <= s.to {
		end++
	}
	if end-first < n && s.to != endless {
		return nil, l.unread(t, n)
	}
	return slices.Clone(l.fixes[first:end]), nil
}

func (l *fixLog) Put(fixes []tracking.KeptFix) error {
	l.fresh = append(l.fresh, fixes...)
	if len(l.known) > 0 {
		for _, f := range fixes {
			l.keep(f)
		}
	}
	return nil
}

// open has the fixes that were put among those that are known, once some are to be known.
func (l *fixLog) open() {
	if len(l.known) > 0 {
		return
	}
	for _, f := range l.fresh {
		l.keep(f)
	}
}

// keep puts a fix among those that are known.
func (l *fixLog) keep(f tracking.KeptFix) {
	i := len(l.fixes)
	if i > 0 && !l.fixes[i-1].Time.Before(f.Time) {
		i = l.find(f.Time.UnixMilli())
	}
	l.fixes = slices.Insert(l.fixes, i, f)
}

func (l *fixLog) Mark(fixes []tracking.KeptFix) error {
	for _, f := range fixes {
		t := f.Time.UnixMilli()
		if i := l.find(t); i < len(l.fixes) && l.fixes[i].Time.Equal(f.Time) {
			l.fixes[i].Mark = f.Mark
		}
		if i := slices.IndexFunc(l.fresh, func(p tracking.KeptFix) bool { return p.Time.Equal(f.Time) }); i >= 0 {
			l.fresh[i].Mark = f.Mark
			continue
		}
		if l.marks == nil {
			l.marks = map[int64]tracking.FixMark{}
		}
		l.marks[t] = f.Mark
	}
	return nil
}

func (l *fixLog) Forget(at time.Time) error {
	l.open()
	t := at.UnixMilli()
	l.fixes = l.fixes[:l.find(t+1)]
	l.fresh = slices.DeleteFunc(l.fresh, func(f tracking.KeptFix) bool { return f.Time.UnixMilli() > t })
	for at := range l.marks {
		if at > t {
			delete(l.marks, at)
		}
	}
	l.forget = min(l.forget, t)
	l.learn(span{t + 1, endless})
	return nil
}

// learn notes that all is known of some times.
func (l *fixLog) learn(s span) {
	next := make([]span, 0, len(l.known)+1)
	for _, k := range l.known {
		if s.touches(k) {
			s = span{min(s.from, k.from), max(s.to, k.to)}
		} else {
			next = append(next, k)
		}
	}
	next = append(next, s)
	slices.SortFunc(next, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	l.known = next
}

// touches reports whether there is no time between the two.
func (s span) touches(o span) bool {
	return (s.to == endless || o.from <= s.to+1) && (o.to == endless || s.from <= o.to+1)
}

// read takes in what was read: of some times all that there is in the table, in any order. What was
// changed meanwhile stays changed.
func (l *fixLog) read(s span, list []tracking.KeptFix) {
	l.open()
	for _, f := range list {
		t := f.Time.UnixMilli()
		if t > l.forget {
			continue
		}
		if i := l.find(t); i < len(l.fixes) && l.fixes[i].Time.Equal(f.Time) {
			continue
		}
		if m, ok := l.marks[t]; ok {
			f.Mark = m
		}
		l.keep(f)
	}
	l.learn(s)
}

// readBefore takes in the newest fixes before t, of which n were asked for.
func (l *fixLog) readBefore(t int64, n int, list []tracking.KeptFix) {
	s := span{math.MinInt64, t - 1}
	if len(list) >= n {
		for _, f := range list {
			if ms := f.Time.UnixMilli(); s.from == math.MinInt64 || ms < s.from {
				s.from = ms
			}
		}
	}
	l.read(s, list)
}

// readFrom takes in the oldest fixes from t on, of which n were asked for.
func (l *fixLog) readFrom(t int64, n int, list []tracking.KeptFix) {
	s := span{t, endless}
	if len(list) >= n {
		s.to = t
		for _, f := range list {
			s.to = max(s.to, f.Time.UnixMilli())
		}
	}
	l.read(s, list)
}

func (l *fixLog) InTrip(at time.Time) (bool, error) {
	t := at.UnixMilli()
	if k := l.trips.known; k == nil || t < k.from || t > k.to {
		l.want = &want{trips: &span{t, t}}
		return false, errUnread
	}
	return slices.ContainsFunc(l.trips.spans, func(s span) bool { return s.from <= t && t <= s.to }), nil
}
