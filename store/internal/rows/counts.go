package rows

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// Count is how many tasks are how far: those of a state, the "waiting" and the "late" among them, or
// the completed ones of an outcome.
type Count struct {
	What    string
	Outcome tracking.Outcome
	N       int
}

// TaskCounts are the counts together.
func TaskCounts(counts []Count) (n tracking.TaskCounts) {
	for _, c := range counts {
		switch c.What {
		case "created":
			n.Created = c.N
		case "waiting":
			n.Waiting = c.N
		case "assigned":
			n.Assigned = c.N
		case "in_progress":
			n.InProgress = c.N
		case "late":
			n.Late = c.N
		default:
			if n.Completed == nil {
				n.Completed = map[tracking.Outcome]int{}
			}
			n.Completed[c.Outcome] = c.N
		}
	}
	return n
}

// Stat is a number to watch: how many tasks or drivers there are of a kind, or of an application's
// events in an outbox, with the moment from which the oldest of them counts.
type Stat struct {
	What string
	Name string // of an outbox
	N    int
	At   time.Time // zero: none
}

// Stats are the numbers together.
func Stats(list []Stat) (n tracking.Stats) {
	for _, s := range list {
		switch s.What {
		case "created":
			n.Created = s.N
		case "assigned":
			n.Assigned = s.N
		case "in_progress":
			n.InProgress = s.N
		case "waiting":
			n.Waiting = s.N
		case "oldest":
			n.OldestWaiting = s.At
		case "late":
			n.Late = s.N
		case "on_duty":
			n.OnDuty = s.N
		case "silent":
			n.Silent = s.N
		default:
			byName := func(o tracking.OutboxStats, name string) int { return strings.Compare(o.Name, name) }
			i, there := slices.BinarySearchFunc(n.Outboxes, s.Name, byName)
			if !there {
				n.Outboxes = slices.Insert(n.Outboxes, i, tracking.OutboxStats{Name: s.Name})
			}
			if o := &n.Outboxes[i]; s.What == "dead" {
				o.Dead += s.N
			} else {
				o.Undelivered += s.N
				o.Oldest = Earlier(o.Oldest, s.At)
			}
		}
	}
	return n
}

// Earlier is the earlier of two moments; the zero time is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
