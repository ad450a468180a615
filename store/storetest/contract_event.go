package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// eventChecks are about events in their order, and the feeds of notices.
func eventChecks() []check {
	return []check{
		{"Events/come back whole, in order of commit, numbered for their subject", eventsComeBackWholeInOrder},
		{"Events/by subject, after one, page by page", eventsPageBySubject},
		{"Events/numbers stay without gaps after a refused commit and after a purge", eventNumbersStayWithoutGaps},
		{"Notices/each event's notices join the feeds of the drivers who are told", noticesJoinTheFeeds},
		{"Notices/after an ID, at most so many", noticesAfterAnID},
		{"Notices/lost tells that the caller's place is gone", noticesTellWhatIsLost},
	}
}

func eventsComeBackWholeInOrder(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	trip := tracking.Subject{Kind: tracking.KindTrip, ID: "a"} // the same id as a task's
	first := []tracking.Event{
		fullEvent("e3", 1, ofTask("a")), fullEvent("e1", 2, ofTask("b")), fullEvent("e2", 3, ofTask("a")),
	}
	second := []tracking.Event{fullEvent("e0", 4, trip), fullEvent("e5", 5, ofTask("a"))}
	second[0].RecordedAt = at(-time.Hour) // the time does not order them
	c.commit(tracking.Changeset{Events: first, Deliver: []string{""}})
	c.commit(tracking.Changeset{Events: second})
	want := append(kept(first), kept(second)...)
	for i, seq := range []int64{1, 1, 2, 1, 3} {
		want[i].Seq = seq
	}
	got, more := c.events(tracking.EventFilter{})
	same(t, "events", got, want)
	same(t, "more", more, false)
}

// eventsPageBySubject follows all events, and those of each subject, by pages of each size.
func eventsPageBySubject(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	var want, all []string
	for i := range 9 {
		id := fmt.Sprint("e", i)
		subject := "a"
		if i%3 == 2 {
			subject = "b"
		} else {
			want = append(want, id)
		}
		all = append(all, id)
		c.commit(tracking.Changeset{Events: []tracking.Event{newEvent(id, tracking.KindTask, subject, t0, "a", "b")}})
	}
	for _, limit := range []int{1, 2, 3, 100} {
		for _, f := range []tracking.EventFilter{{Limit: limit}, {Limit: limit, Subject: ofTask("a")}} {
			expected := all
			if f.Subject.ID != "" {
				expected = want
			}
			var got []string
			for {
				list, more := c.events(f)
				got = append(got, each(list, eventID)...)
				if wantMore := len(got) < len(expected); more != wantMore {
					t.Fatalf("events by %+v: more is %v after %d of %d", f, more, len(got), len(expected))
				}
				if !more {
					break
				}
				f.After = got[len(got)-1]
			}
			same(t, fmt.Sprintf("events by %+v", f), got, expected)
		}
	}
	last, more := c.events(tracking.EventFilter{After: "e8"})
	if last != nil || more {
		t.Errorf("events after the last: got %d, more %v", len(last), more)
	}
	none, _ := c.events(tracking.EventFilter{Subject: tracking.Subject{Kind: tracking.KindTrip, ID: "a"}})
	same(t, "events of another kind of subject", none, nil)
	_, _, err := s.Events(c.ctx, here, tracking.EventFilter{After: "none", Limit: 1})
	missing(t, "Events after an unknown one", err)
}

func eventNumbersStayWithoutGaps(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{
		Tasks: []tracking.Task{newTask("a", t0)}, Events: []tracking.Event{newEvent("1", tracking.KindTask, "a", t0)},
	})
	c.refused(tracking.Changeset{
		Tasks: []tracking.Task{newTask("a", t0)}, Events: []tracking.Event{newEvent("no", tracking.KindTask, "a", t0)},
	},
		tracking.ConflictError{Kind: tracking.KindTask, ID: "a"})
	c.commit(tracking.Changeset{Events: []tracking.Event{newEvent("2", tracking.KindTask, "a", t0)}})
	c.purge(tracking.Before{Events: at(time.Hour), Limit: 100})
	left, _ := c.events(tracking.EventFilter{})
	same(t, "events after the purge", left, nil)
	c.commit(tracking.Changeset{Events: []tracking.Event{
		newEvent("3", tracking.KindTask, "a", t0), newEvent("4", tracking.KindTask, "a", t0),
	}})
	left, _ = c.events(tracking.EventFilter{})
	same(t, "seq", each(left, eventSeq), []int64{3, 4})
	_, _, err := s.Events(c.ctx, here, tracking.EventFilter{After: "1", Limit: 1})
	missing(t, "Events after a purged one", err)
}

// noticesJoinTheFeeds tells several drivers of one event, one of whom is made by the same
// changeset, and one not there.
func noticesJoinTheFeeds(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0), newDriver("e", t0)}})
	e := newEvent("1", tracking.KindTask, "a", at(time.Second))
	e.Time = t0
	e.Notices = []tracking.Notice{
		{DriverID: "d", Kind: tracking.NoticeAssigned, TaskID: "a"},
		{DriverID: "nobody", Kind: tracking.NoticeAssigned, TaskID: "a"},
		{DriverID: "e", Kind: tracking.NoticeRequest, TrackingID: "x"},
		{DriverID: "d", Kind: tracking.NoticeUpdated, TaskID: "a"},
	}
	late := newDriver("late", t0)
	c.commit(tracking.Changeset{
		Drivers: []tracking.Driver{late},
		Events:  []tracking.Event{e, newEvent("2", tracking.KindTask, "a", at(time.Minute), "late", "d")},
	})
	d, lost := c.notices("d", 0)
	same(t, "lost", lost, false)
	same(t, "notices", d, []tracking.Notice{
		{DriverID: "d", Kind: tracking.NoticeAssigned, EventID: "1", TaskID: "a", Time: at(time.Second)},
		{DriverID: "d", Kind: tracking.NoticeUpdated, EventID: "1", TaskID: "a", Time: at(time.Second)},
		{DriverID: "d", Kind: tracking.NoticeUpdated, EventID: "2", TaskID: "a", Time: at(time.Minute)},
	}, givenNumbers)
	if !slices.IsSortedFunc(d, func(a, b tracking.Notice) int { return int(a.ID - b.ID) }) || d[0].ID < 1 ||
		d[0].ID == d[1].ID || d[1].ID == d[2].ID {
		t.Errorf("notices have the IDs %d, %d, %d: want them to grow from at least 1", d[0].ID, d[1].ID, d[2].ID)
	}
	other, _ := c.notices("e", 0)
	same(t, "notices of e", other, []tracking.Notice{
		{DriverID: "e", Kind: tracking.NoticeRequest, EventID: "1", TrackingID: "x", Time: at(time.Second)},
	}, givenNumbers)
	inserted, _ := c.notices("late", 0)
	same(t, "notices of the driver inserted with the event", len(inserted), 1)
	nobody, lost := c.notices("nobody", 0)
	same(t, "notices of nobody", nobody, nil)
	same(t, "lost", lost, false)
	events, _ := c.events(tracking.EventFilter{})
	same(t, "notices in the event", events[0].Notices, []tracking.Notice{d[0], other[0], d[1]})
}

func noticesAfterAnID(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0), newDriver("e", t0)}})
	for i := range 6 {
		c.commit(tracking.Changeset{
			Events: []tracking.Event{newEvent(fmt.Sprint(i), tracking.KindTask, "a", t0, "e", "d")},
		})
	}
	all, _ := c.notices("d", 0)
	for i := range all {
		for _, limit := range []int{1, 2, 100} {
			got, lost, err := s.Notices(c.ctx, here, "d", all[i].ID, limit)
			c.ok(err)
			want := all[i+1 : min(i+1+limit, len(all))]
			if len(want) == 0 {
				want = nil
			}
			same(t, "notices", got, want)
			same(t, "lost", lost, false)
		}
	}
}

// noticesTellWhatIsLost asks from each place in a feed, before and after purges.
func noticesTellWhatIsLost(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0), newDriver("none", t0)}})
	for i := range 4 {
		c.commit(tracking.Changeset{Events: []tracking.Event{
			newEvent(fmt.Sprint(i), tracking.KindTask, "a", at(time.Duration(i)*time.Minute), "d"),
		}})
	}
	all, _ := c.notices("d", 0)
	got, lost := c.notices("d", all[3].ID+1)
	if got != nil || !lost {
		t.Errorf("after an ID that was never given: got %d notices, lost %v; want none, lost", len(got), lost)
	}
	_, lost = c.notices("none", 1)
	same(t, "lost of a driver who was never told anything", lost, true)
	_, lost = c.notices("none", 0)
	same(t, "lost of a driver who was never told anything, from the start", lost, false)
	c.purge(tracking.Before{Events: at(2 * time.Minute), Limit: 100}) // the first two
	for after, want := range map[int64]bool{
		0: true, all[0].ID: true, all[1].ID: false, all[2].ID: false, all[3].ID: false,
	} {
		got, lost := c.notices("d", after)
		same(t, fmt.Sprintf("lost after %d", after), lost, want)
		want := slices.DeleteFunc(slices.Clone(all[2:]), func(n tracking.Notice) bool { return n.ID <= after })
		if len(want) == 0 {
			want = nil
		}
		same(t, "notices", got, want)
	}
	c.purge(tracking.Before{Events: at(time.Hour), Limit: 100})
	_, lost = c.notices("d", all[3].ID)
	same(t, "lost after the last, when all are purged", lost, false)
	c.commit(tracking.Changeset{Events: []tracking.Event{newEvent("next", tracking.KindTask, "a", t0, "d")}})
	got, lost = c.notices("d", all[3].ID)
	if len(got) != 1 || got[0].ID <= all[3].ID || lost {
		t.Errorf("the next notice after a purge of all: got %+v, lost %v; want one with an ID above %d", got, lost,
			all[3].ID)
	}
}

func ofTask(id string) tracking.Subject { return tracking.Subject{Kind: tracking.KindTask, ID: id} }

func eventSeq(e tracking.Event) int64 { return e.Seq }
