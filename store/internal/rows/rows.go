// Package rows is what every store does with the rows that it is given, before they come into its
// own tables.
//
// A store first takes copies of what it keeps, in the form in which it will hand them out ([Task],
// [Trip], … [Batch]). Then it decides for each row whether it may be written:
//
//	named, present   decision
//	0, none          insert it, at a version that no row of its id has had
//	0, n             [VersionConflict]: the id exists
//	n, n             replace it; it becomes n + 1
//	n, other, none   [VersionConflict]: somebody else was faster
//
// [Expect] is this table. What a unique index refuses is a [UniqueConflict], unless the id itself
// was there: [Refused].
package rows

import (
	"math"
	"slices"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// Expect is nil if a row that names a version may be written over the present one. Every row that
// is there has a version above 0, so that 0 stands for none: it is named by a row that is new.
func Expect[ID ~string](kind tracking.SubjectKind, id ID, named, present int64) error {
	if named != present {
		return VersionConflict(kind, id)
	}
	return nil
}

// Refused is why a new row was refused by a table that has unique columns: its id exists, or else
// somebody has the value.
func Refused[ID ~string](kind tracking.SubjectKind, id ID, exists bool, unique string) error {
	if exists {
		return VersionConflict(kind, id)
	}
	return UniqueConflict(kind, unique)
}

// VersionConflict is the conflict of a row that is not at the version that was named.
func VersionConflict[ID ~string](kind tracking.SubjectKind, id ID) error {
	return &tracking.ConflictError{Kind: kind, ID: string(id)}
}

// UniqueConflict is the conflict of a unique value that another row has: "key", "tracking_id",
// "code" or "hash".
func UniqueConflict(kind tracking.SubjectKind, unique string) error {
	return &tracking.ConflictError{Kind: kind, Unique: unique}
}

// ErrClosed is the error of calls after Close.
var ErrClosed = &tracking.Error{Code: tracking.ErrUnavailable, Message: "The store is closed."}

// Seen finds values that a changeset has twice. One of a few rows allocates nothing.
type Seen[V comparable] struct {
	n     int
	first [4]V
	few   int // of first are taken
	seen  map[V]struct{}
}

// SeenOf is for so many rows.
func SeenOf[V comparable](rows int) Seen[V] { return Seen[V]{n: rows} }

// Before reports whether v was seen before, and notes it.
func (s *Seen[V]) Before(v V) bool {
	if s.n < 2 {
		return false
	}
	if s.n <= len(s.first) {
		before := slices.Contains(s.first[:s.few], v)
		if !before {
			s.first[s.few] = v
			s.few++
		}
		return before
	}
	if s.seen == nil {
		s.seen = make(map[V]struct{}, s.n)
	}
	_, before := s.seen[v]
	s.seen[v] = struct{}{}
	return before
}

// Window is a range of fixes in UTC milliseconds, both ends included.
func Window(r tracking.FixRange) (from, to int64) {
	from, to = Ceil(r.From), math.MaxInt64-1
	if !r.To.IsZero() {
		to = r.To.UnixMilli()
	}
	return from, to
}

// Bounds are the latest moments, in UTC milliseconds, that a lease and a retry can have.
func Bounds(l tracking.Lease) (maxLease, maxRetry int64) {
	maxLease, maxRetry = math.MaxInt64, math.MaxInt64
	if l.MaxLease > 0 {
		maxLease = l.Now.Add(l.MaxLease).UnixMilli()
	}
	if l.MaxRetry > 0 {
		maxRetry = l.Now.Add(l.MaxRetry).UnixMilli()
	}
	return maxLease, maxRetry
}

// Over is the moment from which an invite is good for nothing, so that it may be purged some day.
func Over(i *tracking.Invite) time.Time {
	end := i.JoinedAt
	for _, t := range [...]time.Time{i.LinkExpiresAt, i.CodeExpiresAt} {
		if t.After(end) {
			end = t
		}
	}
	return end
}
