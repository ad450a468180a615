package postgres_test

import (
	dbsql "database/sql"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // a driver that is not pgx's

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
	"github.com/seed-8aba7b13/tracking/store/postgres"
	"github.com/seed-8aba7b13/tracking/store/postgres/pgtest"
)

// TestWithin: what is written in the shop's transaction is there, told and assigned when that is
// committed, and not before.
func TestWithin(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *shop, begin begins) {
		s.run(t)
		for _, level := range levels {
			t.Run(string(level), func(t *testing.T) {
				ctx := t.Context()
				driver := tracking.DriverID("driver-" + string(level))
				must(s.svc.SaveDriver(ctx, tracking.DriverUpdate{ID: driver, Available: new(true), LngLat: annaSalai}))(t)
				s.hears(t) // of duty
				before := s.orders(t)

				h := begin(t, s, level)
				h.order(t, string(level))
				in := s.svc.As("shop").Within(h)
				task := must(in.CreateTask(ctx, parcel))(t)
				link := must(in.TaskLink(ctx, task.ID))(t)
				if task.Status != tracking.StatusCreated || !task.Waiting || task.Seq == 0 || task.Version != 1 {
					t.Errorf("in the transaction the task is %+v", task)
				}
				// Nobody else sees it.
				if _, err := s.svc.Task(ctx, task.ID); !errors.Is(err, tracking.ErrNotFound) {
					t.Errorf("before the commit the task is read with %v", err)
				}
				if _, err := s.svc.Tracking(ctx, link); !errors.Is(err, tracking.ErrNotFound) {
					t.Errorf("before the commit the link is read with %v", err)
				}
				if n := must(s.svc.AssignWaiting(ctx))(t); n != 0 {
					t.Errorf("%d tasks were assigned before the commit", n)
				}
				if n := must(s.svc.DeliverEvents(ctx))(t); n != 0 || len(s.told) > 0 {
					t.Errorf("%d events were told before the commit", n)
				}

				wake, _, stop := s.svc.Wakeups(tracking.Subject{Kind: tracking.KindTask, ID: string(task.ID)})
				defer stop()
				h.end(t, h.commit)
				created, assigned := s.hears(t), s.hears(t)
				<-wake
				if created.Type != tracking.EventTaskCreated || created.Actor != "shop" || created.Seq != 1 ||
					assigned.Type != tracking.EventTaskAssigned || assigned.Actor != "system" || assigned.Seq != 2 {
					t.Errorf("after the commit the shop is told of %+v and %+v", created, assigned)
				}
				if got := must(s.svc.Task(ctx, task.ID))(t); got.DriverID != driver || got.Seq != task.Seq {
					t.Errorf("after the commit the task is %+v", got)
				}
				must(s.svc.Tracking(ctx, link))(t)
				if n := s.orders(t); n != before+1 {
					t.Errorf("there are %d orders after the commit, want %d", n, before+1)
				}
				list, _, err := s.svc.Events(ctx, tracking.EventFilter{
					Subject: tracking.Subject{Kind: tracking.KindTask, ID: string(task.ID)},
				})
				if err != nil || len(list) != 2 || list[0].ID != created.ID {
					t.Errorf("the list of its events is %+v, error %v", list, err)
				}
			})
		}
	})
}

// TestWithinEveryVerb: each of them is gone with a rollback, also to a savepoint, and there with a
// commit.
func TestWithinEveryVerb(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *shop, begin begins) {
		ctx := t.Context()
		must(s.svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "asha", Available: new(true), LngLat: annaSalai}))(t)
		mine := must(s.svc.CreateTask(ctx, parcel))(t) // goes to asha
		free := must(s.svc.CreateTask(ctx, parcel))(t) // waits

		type result struct {
			tasks  []tracking.TaskResult
			invite tracking.Invitation
			driver tracking.Driver
		}
		verbs := func(t *testing.T, in *tracking.TxService) (r result) {
			t.Helper()
			r.tasks = must(in.CreateTasks(ctx, []tracking.NewTask{keyed(parcel, "k1"), {}, keyed(parcel, "k2")}))(t)
			if r.tasks[0].Err != nil || r.tasks[2].Err != nil {
				t.Fatalf("the tasks are made with %v and %v", r.tasks[0].Err, r.tasks[2].Err)
			}
			refusedAs(t, r.tasks[1].Err, tracking.ErrInvalid, "")
			again := must(in.CreateTask(ctx, keyed(parcel, "k1")))(t)
			if again.ID != r.tasks[0].Task.ID {
				t.Error("in one transaction a key makes two tasks")
			}
			got := must(in.UpdateTask(ctx, mine.ID, tracking.TaskUpdate{Notes: new("ring twice")}))(t)
			if got.Notes != "ring twice" || got.Version <= mine.Version {
				t.Errorf("the update is %+v", got)
			}
			must(in.CancelTask(ctx, free.ID, tracking.Reason{}))(t)
			must(in.CancelTask(ctx, mine.ID, tracking.Reason{}))(t)
			r.driver = must(in.SaveDriver(ctx, tracking.DriverUpdate{
				ID: "ravi", Name: new("Ravi"), Available: new(true), LngLat: annaSalai,
			}))(t)
			must(in.SaveDriver(ctx, tracking.DriverUpdate{ID: "asha", Name: new("Asha")}))(t)
			r.invite = must(in.InviteDriver(ctx, tracking.NewInvite{DriverID: "meena"}))(t)
			if err := in.RequestTrip(ctx, tracking.NewRequest{DriverID: "asha", TrackingID: "t1"}); err != nil {
				t.Fatal(err)
			}
			return r
		}
		// state is what others see.
		state := func(t *testing.T) (what struct {
			tasks, drivers, events, notices, requests int
			asha                                      tracking.Driver
		}) {
			t.Helper()
			tasks, _, err := s.svc.Tasks(ctx, tracking.TaskFilter{})
			if err != nil {
				t.Fatal(err)
			}
			drivers, _, err := s.svc.Drivers(ctx, tracking.DriverFilter{})
			if err != nil {
				t.Fatal(err)
			}
			events, _, err := s.svc.Events(ctx, tracking.EventFilter{})
			if err != nil {
				t.Fatal(err)
			}
			notices, _, err := s.svc.Notices(ctx, "asha", 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			what.tasks, what.drivers, what.events, what.notices = len(tasks), len(drivers), len(events), len(notices)
			what.requests = len(must(s.svc.Requests(ctx, "asha"))(t))
			what.asha = must(s.svc.Driver(ctx, "asha"))(t)
			return what
		}
		before := state(t)
		same := func(t *testing.T) {
			t.Helper()
			if got := state(t); got.tasks != before.tasks || got.drivers != before.drivers || got.events != before.events ||
				got.notices != before.notices || got.requests != 0 || got.asha.Version != before.asha.Version ||
				got.asha.OpenTasks() != 1 {
				t.Errorf("it has left %+v of %+v", got, before)
			}
		}

		h := begin(t, s, "")
		gone := verbs(t, s.svc.Within(h))
		same(t)
		h.end(t, h.rollback)
		same(t)
		if _, err := s.svc.Join(ctx, tracking.JoinRequest{Token: gone.invite.Token}); !errors.Is(err, tracking.ErrNotFound) {
			t.Errorf("the link of an invite that was rolled back joins with %v", err)
		}

		h = begin(t, s, "")
		h.order(t, "1")
		if err := h.exec(`SAVEPOINT mine`); err != nil {
			t.Fatal(err)
		}
		verbs(t, s.svc.Within(h))
		if err := h.exec(`ROLLBACK TO SAVEPOINT mine`); err != nil {
			t.Fatal(err)
		}
		h.end(t, h.commit)
		same(t)

		h = begin(t, s, "")
		r := verbs(t, s.svc.Within(h))
		h.end(t, h.commit)
		got := state(t)
		// Three tasks of which one is refused; ravi and meena; six of tasks, one of each of two drivers.
		if got.tasks != before.tasks+2 || got.drivers != before.drivers+2 || got.events != before.events+7 ||
			got.notices != before.notices+3 || got.requests != 1 || got.asha.Name != "Asha" || got.asha.OpenTasks() != 0 {
			t.Errorf("it is %+v, and was %+v", got, before)
		}
		must(s.svc.Join(ctx, tracking.JoinRequest{Token: r.invite.Token}))(t)
		if n := must(s.svc.AssignWaiting(ctx))(t); n != 2 {
			t.Errorf("%d of the tasks were assigned after the commit, want 2", n)
		}
	})
}

// TestPlaceOrder: what the example says is so, also where the store has the shop's own pool.
func TestPlaceOrder(t *testing.T) {
	t.Parallel()
	url := emptied(t)(t)
	s := newShop(t, url, url)
	store, err := postgres.New(t.Context(), s.pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	svc, err := tracking.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	link := must(placeOrder(t.Context(), s.pool, svc, "4711", "12 Anna Salai"))(t)
	shown := must(s.svc.Tracking(t.Context(), link))(t)
	var task string
	err = s.pool.QueryRow(t.Context(), `SELECT task FROM orders WHERE id = '4711'`).Scan(&task)
	if err != nil || string(shown.TaskID) != task {
		t.Errorf("the link shows %v, and the order has %q, error %v", shown.TaskID, task, err)
	}
	if _, err := placeOrder(t.Context(), s.pool, svc, "4711", "12 Anna Salai"); err == nil {
		t.Error("there can be two orders of one id")
	}
	if list, _, err := svc.Tasks(t.Context(), tracking.TaskFilter{}); err != nil || len(list) != 1 {
		t.Errorf("there are %d tasks, error %v; want the first one", len(list), err)
	}
}

// TestWithinOneConnection: a pool whose last connection the transaction has will do.
func TestWithinOneConnection(t *testing.T) {
	t.Parallel()
	url := emptied(t)(t)
	s := newShop(t, url, url+"&pool_max_conns=1")
	ctx := t.Context()
	must(s.svc.CreateTask(ctx, parcel))(t) // the first of the application
	store := must(postgres.New(ctx, s.pool, nil))(t)
	defer store.Close()
	svc := must(tracking.New(store, nil))(t)
	link := must(placeOrder(ctx, s.pool, svc, "4711", "12 Anna Salai"))(t)
	must(svc.Tracking(ctx, link))(t)
}

// TestWithinPanic: a panic in the shop's code leaves nothing of either.
func TestWithinPanic(t *testing.T) {
	t.Parallel()
	url := emptied(t)(t)
	s := newShop(t, url, url)
	var task tracking.Task
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nobody has panicked")
			}
		}()
		_ = pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			task = must(s.svc.Within(postgres.In(tx)).CreateTask(t.Context(), parcel))(t)
			panic("a mistake of the shop's")
		})
	}()
	if _, err := s.svc.Task(t.Context(), task.ID); !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("the task is read with %v", err)
	}
	if n := s.orders(t); n != 0 {
		t.Errorf("there are %d orders", n)
	}
}

// TestWithinConflict: what others have changed is a conflict, after which the transaction goes on.
func TestWithinConflict(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *shop, begin begins) {
		ctx := t.Context()
		for _, level := range levels {
			t.Run(string(level), func(t *testing.T) {
				task := must(s.svc.CreateTask(ctx, parcel))(t)
				h := begin(t, s, level)
				in := s.svc.Within(h)
				must(in.TaskLink(ctx, task.ID))(t) // a transaction that sees one moment sees this one
				must(s.svc.UpdateTask(ctx, task.ID, tracking.TaskUpdate{Notes: new("by others")}))(t)

				_, err := s.svc.IfVersion(task.Version).Within(h).UpdateTask(ctx, task.ID, tracking.TaskUpdate{Notes: new("hers")})
				switch level {
				case pgx.RepeatableRead, pgx.Serializable:
					refusedAs(t, err, tracking.ErrConflict, "Begin the transaction anew")
				default:
					refusedAs(t, err, tracking.ErrConflict, "changed meanwhile")
				}
				h.order(t, "after the conflict at level "+string(level))
				// Nothing is held of what was refused.
				must(s.svc.UpdateTask(ctx, task.ID, tracking.TaskUpdate{Notes: new("by others again")}))(t)
				if level == pgx.Serializable { // which may refuse all, after one of its statements
					return
				}
				must(in.CreateTask(ctx, parcel))(t)
				before := s.orders(t)
				h.end(t, h.commit)
				if n := s.orders(t); n != before+1 {
					t.Errorf("there are %d orders, want %d", n, before+1)
				}
			})
		}
	})
}

// TestWithinKey: of two transactions that create a task with one key, the second one finds the
// first one's, and goes on.
func TestWithinKey(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *shop, begin begins) {
		ctx := t.Context()
		first := begin(t, s, "")
		task := must(s.svc.Within(first).CreateTask(ctx, keyed(parcel, "order-1")))(t)

		second := begin(t, s, "")
		second.order(t, "1")
		answer := meanwhile(func() (tracking.Task, error) {
			return s.svc.Within(second).CreateTask(ctx, keyed(parcel, "order-1"))
		})
		waitFor(t, func() bool { return blocked(t, s) == 1 })
		first.end(t, first.commit)
		if got, err := answer(); err != nil || got.ID != task.ID {
			t.Errorf("the second one gets %v, error %v; want %v", got.ID, err, task.ID)
		}
		other := keyed(parcel, "order-1")
		other.Notes = "something else"
		_, err := s.svc.Within(second).CreateTask(ctx, other)
		refusedAs(t, err, tracking.ErrConflict, "This key was used")
		second.order(t, "2")
		second.end(t, second.commit)

		// A transaction that sees one moment cannot see it.
		third := begin(t, s, pgx.RepeatableRead)
		third.order(t, "3")
		must(s.svc.CreateTask(ctx, keyed(parcel, "order-2")))(t)
		_, err = s.svc.Within(third).CreateTask(ctx, keyed(parcel, "order-2"))
		refusedAs(t, err, tracking.ErrConflict, "Begin the transaction anew")
		third.order(t, "4")
		third.end(t, third.commit)
		if n := s.orders(t); n != 4 {
			t.Errorf("there are %d orders, want 4", n)
		}
	})
}

// TestWithinWakes: who follows something is woken by the commit, in every process, and by no rollback.
func TestWithinWakes(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *shop, begin begins) {
		ctx := t.Context()
		there := open(t, s.pool.Config().ConnString(), nil)
		t.Cleanup(func() { _ = there.Close() })
		far := &shop{svc: must(tracking.New(there, nil))(t)}
		far.run(t)
		// Both ways of writing are heard once this one is.
		first := must(s.svc.CreateTask(ctx, parcel))(t)
		waitFor(t, func() bool {
			wake, _, stop := far.svc.Wakeups(subjectOf(first))
			defer stop()
			must(s.svc.UpdateTask(ctx, first.ID, tracking.TaskUpdate{Notes: new(time.Now().String())}))(t)
			select {
			case <-wake:
				return true
			case <-time.After(time.Second):
				return false
			}
		})

		gone := begin(t, s, "")
		lost := must(s.svc.Within(gone).CreateTask(ctx, parcel))(t)
		h := begin(t, s, "")
		task := must(s.svc.Within(h).CreateTask(ctx, parcel))(t)
		near, _, stop := s.svc.Wakeups(subjectOf(task))
		defer stop()
		away, _, stop := far.svc.Wakeups(subjectOf(task))
		defer stop()
		never, _, stop := s.svc.Wakeups(subjectOf(lost))
		defer stop()
		gone.end(t, gone.rollback)
		select {
		case <-near:
			t.Error("who follows the task is woken before the commit")
		default:
		}
		h.end(t, h.commit)
		for name, wake := range map[string]<-chan struct{}{"this": near, "the other": away} {
			select {
			case <-wake:
			case <-time.After(time.Minute):
				t.Errorf("nobody is woken in %s process", name)
			}
		}
		select {
		case <-never:
			t.Error("who follows the task that was rolled back is woken")
		default:
		}
	})
}

func subjectOf(t tracking.Task) tracking.Subject {
	return tracking.Subject{Kind: tracking.KindTask, ID: string(t.ID)}
}

// TestWithinRefused: what cannot be is refused in a sentence.
func TestWithinRefused(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *shop, begin begins) {
		ctx := t.Context()
		ended := begin(t, s, "")
		ended.end(t, ended.commit)
		_, err := s.svc.Within(ended).CreateTask(ctx, parcel)
		refusedAs(t, err, tracking.ErrConflict, "has ended")

		failed := begin(t, s, "")
		if err := failed.exec(`SELECT 1 / 0`); err == nil {
			t.Fatal("1 / 0 is a number")
		}
		_, err = s.svc.Within(failed).CreateTask(ctx, parcel)
		refusedAs(t, err, tracking.ErrConflict, "failed before")

		reader := begin(t, s, "")
		if err := reader.exec(`SET TRANSACTION READ ONLY`); err != nil {
			t.Fatal(err)
		}
		_, err = s.svc.Within(reader).CreateTask(ctx, parcel)
		refusedAs(t, err, tracking.ErrConflict, "only read")

		_, err = s.svc.Within(nil).CreateTask(ctx, parcel)
		refusedAs(t, err, tracking.ErrInvalid, "tx is required")
		_, err = s.svc.Within(postgres.In(nil)).CreateTask(ctx, parcel)
		refusedAs(t, err, tracking.ErrInvalid, "There must be a transaction")
		_, err = s.svc.Within(postgres.InSQL(nil)).CreateTask(ctx, parcel)
		refusedAs(t, err, tracking.ErrInvalid, "There must be a transaction")
		lite := must(dbsql.Open("sqlite", ":memory:"))(t)
		defer lite.Close()
		other := must(lite.BeginTx(ctx, nil))(t)
		defer func() { _ = other.Rollback() }()
		_, err = s.svc.Within(postgres.InSQL(other)).CreateTask(ctx, parcel)
		refusedAs(t, err, tracking.ErrInvalid, "must be of pgx's driver")
		_, err = s.svc.Within(foreign{}).CreateTask(ctx, parcel)
		refusedAs(t, err, tracking.ErrInvalid, "postgres.InSQL")

		svc, err := tracking.New(memory.New(), nil)
		if err != nil {
			t.Fatal(err)
		}
		err = svc.Within(begin(t, s, "")).RequestTrip(ctx, tracking.NewRequest{DriverID: "asha", TrackingID: "t1"})
		refusedAs(t, err, tracking.ErrInvalid, "store/postgres can")

		if err := s.store.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = s.svc.Within(begin(t, s, "")).CreateTask(ctx, parcel)
		refusedAs(t, err, tracking.ErrUnavailable, "")
	})
}

// foreign is a transaction that postgres has not made.
type foreign struct{}

func (foreign) Unwrap() any { return 1 }

// TestWithinBouncer goes through a pooler that hands out connections by transaction.
func TestWithinBouncer(t *testing.T) {
	t.Parallel()
	next := emptied(t)
	url := next(t)
	s := newShop(t, url, pgtest.NewBouncer(t, url)+"&default_query_exec_mode=exec")
	ctx := t.Context()
	for name, begin := range map[string]begins{"pgx": byPgx, "sql": bySQL} {
		h := begin(t, s, "")
		h.order(t, name)
		task := must(s.svc.Within(h).CreateTask(ctx, keyed(parcel, name)))(t)
		gone := must(s.svc.Within(h).InviteDriver(ctx, tracking.NewInvite{DriverID: "asha"}))(t)
		h.end(t, h.rollback)
		if _, err := s.svc.Driver(ctx, gone.DriverID); !errors.Is(err, tracking.ErrNotFound) {
			t.Errorf("%s: what was rolled back is read with %v", name, err)
		}
		h = begin(t, s, "")
		again := must(s.svc.Within(h).CreateTask(ctx, keyed(parcel, name)))(t)
		h.end(t, h.commit)
		if again.ID == task.ID || must(s.svc.Task(ctx, again.ID))(t).Key != name {
			t.Errorf("%s: after a rollback the key has made %+v", name, again)
		}
	}
}

// TestWithinMadeSince: who is made while a commit waits for another driver is not there for it yet, as
// it has not locked him.
func TestWithinMadeSince(t *testing.T) {
	t.Parallel()
	url := emptied(t)(t)
	s := newShop(t, url, url)
	ctx := t.Context()
	must(s.svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "old"}))(t)
	c := connect(t, url)
	execute(t, c, "BEGIN")
	execute(t, c, "SELECT 1 FROM tracking.positions WHERE id = 'old' FOR UPDATE")
	h := byPgx(t, s, "")
	store := must(s.store.Within(h))(t)
	cs := newTask("t")
	for _, id := range []tracking.DriverID{"made", "old"} {
		cs.Events[0].Notices = append(cs.Events[0].Notices, tracking.Notice{DriverID: id, Kind: tracking.NoticeAssigned})
	}
	answer := make(chan error)
	go func() {
		_, err := store.Commit(ctx, app, cs)
		answer <- err
	}()
	waitFor(t, func() bool { return blocked(t, s) == 1 })
	must(s.svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "made"}))(t)
	execute(t, c, "COMMIT")
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
	h.end(t, h.commit)
	for id, want := range map[tracking.DriverID]int{"old": 1, "made": 0} {
		list, _, err := s.store.Notices(ctx, app, id, 0, 10)
		if err != nil || len(list) != want {
			t.Errorf("%s has %d notices, error %v; want %d", id, len(list), err, want)
		}
	}
}

// TestWithinUnsendable: of what cannot be sent it is known that it was not written, and the transaction
// goes on.
func TestWithinUnsendable(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *shop, begin begins) {
		h := begin(t, s, "")
		store := must(s.store.Within(h))(t)
		cs := newTask("t")
		cs.Tasks[0].CompletedFrom = &tracking.Whereabouts{OffBy: math.NaN()}
		if _, err := store.Commit(t.Context(), app, cs); !errors.Is(err, tracking.ErrInternal) {
			t.Errorf("a number that is none: %v", err)
		}
		must(store.Commit(t.Context(), app, newTask("t")))(t)
		h.end(t, h.commit)
		taskOf(t, s.store, "t")
	})
}
