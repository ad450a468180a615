// Package tracking is a delivery-tracking service that a Go program embeds: tasks (pickups, drops,
// or both), trips that are followed live, drivers, assignment to the nearest driver, invites, and
// tracking links for customers. It runs in process, over a [Store] in memory or in a SQLite file;
// package httpadapter puts it on the web.
//
// # Beginning
//
//	store := memory.New()                     // store/memory, or sqlite.Open("deliveries.db", nil)
//	svc, err := tracking.New(store, nil)      // nil options work
//	go svc.Run(ctx)                           // delivers events, serves waiting tasks, ends trips
//
//	svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "asha", Available: new(true), LngLat: &tracking.LngLat{Lng: 80.27, Lat: 13.08}})
//	task, err := svc.CreateTask(ctx, tracking.NewTask{
//		Type:       tracking.TypeDrop,
//		Drop:       &tracking.Place{LngLat: &tracking.LngLat{Lng: 80.25, Lat: 13.06}, Address: "12 Anna Salai"},
//		AutoAssign: true,
//	})
//	// task.Status is assigned, task.DriverID is asha
//
// The examples of this package (Tasks, Trips, Invites, Events, Applications) show what follows at
// work.
//
// # Tasks
//
// A task is created, assigned, in_progress and completed; a completed one has an [Outcome]. The
// application creates it ([Service.CreateTask]), gives it to a driver ([Service.AssignTask]), takes
// it back ([Service.UnassignTask]), changes it ([Service.UpdateTask]) and ends it
// ([Service.CancelTask], [Service.CompleteTask]). Its driver starts it ([Service.StartTask]), notes
// the pickup ([Service.PickUpTask]), finishes it ([Service.FinishTask]) or declines it
// ([Service.DeclineTask]).
//
//	          AssignTask, AssignWaiting             StartTask                  FinishTask
//	created ─────────────────────────────▶ assigned ──────────▶ in_progress ────────────▶ completed
//	 ▲ ▲                                   ▲  │  ▲               │  │   ▲                   │   │
//	 │ └──── UnassignTask, DeclineTask ────┼──┘  └── UndoTask ───┘  │   └───── UndoTask ────┘   │
//	 ├────── UnassignTask ─────────────────┼────────────────────────┘                           │
//	 │                                     └───────── ReopenTask ───────────────────────────────┤
//	 └─────────────────────────────────────────────── ReopenTask, where its driver is gone ─────┘
//
//	any of the first three ───── CancelTask, CompleteTask ───────────────────────────────▶ completed
//	assigned, in_progress ────── ForceAssignTask, HandOver ───────────────▶ assigned to another driver
//
// Every verb may be repeated: what is so already is left as it is, and fires nothing. What the
// present state forbids is ErrConflict; another driver's task is ErrNotFound.
//
// A task that somebody is at goes to another driver only by [Service.ForceAssignTask]: its trip is
// stopped, both are told, and the other one begins it anew, with the pickup if there is one, as the
// goods are wherever the first one has them. [Service.HandOver] gives what a driver has open, or
// some of it, to another in one step, all or nothing: the stops come behind those that the other one
// has, in the order they had. That one is told once, whoever had the tasks of each. As whenever a
// task is taken from somebody, it does not go back to him automatically. The customers' links go on.
//
// What was done by mistake can be taken back. [Service.UndoTask] takes back a driver's own last
// step, within Options.UndoFor of the moment it reached us: a pickup; else the start, and its trip
// is discarded; or the end, and a new trip begins where the one before ended, so that the customer's
// path has no gap. (If the driver had stopped that trip himself, the new one begins where the task
// had ended.) Only one step can be taken back. Who asks twice, since no answer came, names the step:
// the second time nothing happens. A step is the driver's no more once somebody else has given,
// ended or reopened the task. [Service.ReopenTask] is for the dispatcher, within Options.ReopenFor
// of the end, whoever ended it: the driver who had the task has it again, however full, and is told;
// where he was erased it is created and waits for nobody; where nobody had it, it is as it was
// before. Outcome, reason and steps are cleared, what was given as proof stays, and the link shows
// it again, even if it had expired. A task that another one tries again is neither undone nor
// reopened: it would be done twice.
//
// With NewTask.AutoAssign the task goes to the nearest driver, by great circle to the pickup (for a
// drop: to the drop), who is available, was heard of within Options.MaxFixAge, has fewer open tasks
// than Options.MaxOpenTasks, is within Options.MaxAssignDistance, and has neither declined the task
// nor had it taken away. Equally near ones are told apart by fewer open tasks, then by id. When
// there is none the task waits; those that wait are served oldest first, and before newer tasks, as
// soon as a driver becomes available, free, or near. A new task whose driver is one that an older
// task waits for waits in line behind it, and serves nobody but itself: that is done by
// [Service.AssignWaiting], application by application in turns. So a task may wait for a moment
// although there is a driver for it. However many goroutines, and programs on a store that they can
// share, assign at once, no driver gets more than the limit automatically; by hand anything may be
// given to anyone.
//
// What a task requires ([NewTask].Requires) are properties that a driver must have, all of them and
// exactly, to get it automatically. It stands in nobody's way who cannot take it: whoever becomes
// free gets the oldest task that he can take. A driver may have a limit of open tasks of his own
// ([DriverUpdate].MaxOpenTasks), which counts instead of Options.MaxOpenTasks, be it more or fewer.
//
// [Service.Candidates] says who might get a task, and what is in the way of each ([Fit]); where
// that is more than one thing, the first in the order of the words: whoever is off duty may be too
// far as well, but who is busy is nothing else. Why a task waits ([WaitReason]) is what is in the
// way of the driver who comes closest, whose word is the last in that order. Both are worked out
// when they are asked for.
//
// A task may have a [Window], agreed with the customer. What the customer was told,
// [Task.Promised], is its end, or else NewTask.Promised. With NewTask.AutoAssign a driver is looked
// for from Options.AssignLead before the window begins; till then the task stands in nobody's way.
// An update of the window moves that moment, there and back, while the task has no driver; who has
// it keeps it.
//
//	from − AssignLead         from                  to, or promised
//	       ├───────────────────┼───────────────────────┤
//	 waits │ a driver is found                         │ late
//
// From the moment that the promise has passed, or the driver is expected later, the task is late
// ([Task.Late]), as long as it waits for a driver or is somebody's work; task.late tells of it,
// once for each promise. A completed one is not late, nor is one that is nobody's and waits for
// nobody. A promise may be moved while the driver is under way, who is told like of any other
// change.
//
// Why a task failed, was declined or was cancelled is a [Reason]: a word that programs and pages
// know ([ReasonNotHome] and those beside it, and Options.Reasons), and a free text. The text is for
// the application and its drivers; no customer sees it and no event holds it. The word stands in
// the event, and on the link of a task that failed or was cancelled. A task that succeeded may have
// a reason too, as when a box was damaged; its link tells nothing of it. A reason to decline stands
// until the next driver has the task.
//
// A phone that was offline may send a step that is refused by then, as when the task was given to
// somebody else or cancelled. Its app says so ([Service.ReportStuck]), so that not only its driver
// knows: [Task.Stuck] holds such steps until the driver or the application has seen to them, or the
// task ends.
//
// One that failed or was cancelled is tried again by [Service.RetryTask], once: a new task with the
// same content, each naming the other (Task.RetryOf, Task.RetriedBy). It begins anew: it is for now
// or the window given, nobody is excluded from it, and it goes to drivers automatically if the first
// one did when it ended. A new one can be tried again in its turn, a hundred tasks in all.
//
// # Finding tasks
//
//	f := tracking.TaskFilter{Query: "hauptstr mull", Page: tracking.Page{Limit: 50}}
//	list, more, err := svc.Tasks(ctx, f)
//	…
//	mark := list[len(list)-1].Mark(f.Order()) // the next 50, whatever comes and goes meanwhile
//	f.After = &mark
//
// A [Search] is what a person types: beginnings of words, in any order, whatever their case and
// accents ("Müller" is found by "mull", "Große Straße" by "gross", "Ø" by "o"), or the last digits of a
// number. [TaskFilter] narrows by times of creation, by [Window.At], and to those that are late, wait
// for a driver or have certain properties; [TaskSort] orders by creation or by window. A window
// counts by when it begins. [Service.TaskCounts] counts what is open, waits, is late, and how what was
// completed lately has ended.
//
// [Service.CreateTasks] makes many at once, each for itself. Where two people change the same task or
// driver, [Service.IfVersion] tells the second one.
//
// # Routes
//
// A driver's open tasks have an order: the route ([Driver].Route, [Service.Route]), a list of stops,
// of which a task with pickup and drop has two. What is assigned comes last; what is picked up,
// completed or taken away leaves it, in the same step. [Service.SetRoute] and, where
// Options.DriversReorder allows it, the driver by [Service.ReorderRoute] put the same stops in
// another order; [Service.Assign] puts a task among them. Starting one does not: several are started
// at once where a van is loaded. The number of open tasks is that of the tasks on the route, so it
// cannot be wrong.
//
// [Task.Phase] says how far a task has come. Of a driver under way the next stop is the first on the
// route whose task is in progress. It is arriving once the driver is within 500 m of it, or is
// expected there within Options.ArrivingWithin by the estimate, and arrived when the driver says so
// ([Service.ArriveTask]) or stays: when two good fixes within Options.ArrivalRadius, 20 s or more
// apart, are not further from each other than 3 m/s would take him, and none between lies beyond one
// and a half times the radius. The first of the two is when he arrived. A fix whose accuracy is
// worse than the radius says nothing. Each is told once a leg ([EventTaskArriving],
// [EventTaskArrived]), at the time of its fix also when that comes late, and is not taken back when
// the driver leaves. What was measured before the way to the stop began does not count: before the
// task was started, the goods were picked up, or the stop became the next one. A place that is moved
// further than the radius is another one, to which nobody has come.
//
// # Proof
//
// A task may ask for evidence, [Task.Proof]: a photo, a signature, the name of who received it, a
// PIN. Its driver completes it as succeeded only with all of these, and any of them may be given
// unasked, also where it failed; the application completes it without.
//
//	n.Proof = []tracking.ProofKind{tracking.ProofPhoto, tracking.ProofPIN}
//	task, err := svc.CreateTask(ctx, n)
//	…
//	photo := tracking.NewProof{Kind: tracking.ProofPhoto, Type: "image/jpeg", Data: data}
//	_, _, err = svc.AddProof(ctx, "asha", task.ID, photo)
//	_, err = svc.FinishTask(ctx, "asha", task.ID, tracking.Completion{PIN: "0421"}, tracking.Step{})
//
// What is asked for can be changed until the task is started. A PIN is 4 digits, made with the task
// or when it is asked for first. The customer's link shows it once the driver is arriving there, or
// has arrived, and the application may tell it by phone. Nothing that a driver is sent holds it.
// Whether one is right is told only when nothing else lacks; after 10 wrong ones none is taken any
// more, and the application has to complete the task.
//
// Files are pictures, up to 10 a task of 2 MiB each, given while it is in progress or, by whoever
// had it then, up to 24 hours after its end has reached us, for phones that were offline. Their
// bytes are in [Files]: a store brings its own, Options.Files puts them elsewhere. They are put
// before the task names them. What the driver has given stays with the task whoever has it next,
// and counts. A file given is task.updated, with proofs in its fields; nobody is told.
//
// The end of a task that was in progress keeps where its driver was, [Task.CompletedFrom]: where
// the step says, else at the newest good fix by then, which may be Options.MaxFixAge old. What its
// driver notes at the end is for the application and never on a link.
//
// # Fixes and trips
//
//	StartTrip, StartTask ──▶ active ──┬── StopTrip, the end of its task, TripTTL after its last fix ──▶ stopped
//	                                  └── DiscardTrip, TripTTL without any fix ────────────────────────▶ discarded
//
// A fix is what a phone measured: a place and a time. It belongs to its driver. Fixes come in any
// order, doubled and late ([Service.RecordFixes]); each is kept once, and [FixOutcome] says how it
// looked on arrival.
//
// A fix is good when its neighbours in time bear it out; the one that contradicts them is left out.
// One that could not have been reached from the good fix before it at [MaxSpeed] is a jump, until
// the next one agrees with it; a next one that comes after a silence of more than 90 s, and agrees
// with that good fix too, does not bear it out. The first fix ever, or after a silence, is shown at
// once, and is left out when the next one agrees with the fix before it and not with it, or two
// that follow agree with each other and not with it. Two or more that agree, within 5 minutes,
// between two stretches that agree with each other and not with them, are an island and left out,
// silences in it or not; a first fix that was left out because of them is good again. What was told
// and not measured is always good. A coarse fix, of worse accuracy than Options.MaxAccuracy, is in
// no path and bears nothing out; it is the live position only when it is newer than any good one by
// more than Options.MaxFixAge. All that depends on the kept fixes alone, and not on the order they
// came in; and on few of them: when fixes jump for 512 in a row without 5 minutes or 512 fixes of
// calm, each is judged by the very ones before and after it, and after 512 coarse ones in a row the
// next is like a first one. The live position is the newest good fix by its own time.
//
// A path's length and the time on the move leave out stays, which are 60 s or more within 25 m of
// the fix that they begin with, and legs faster than MaxSpeed.
//
// A trip is a window of time over its driver's fixes; its path is the good fixes within. So two
// trips at once share their fixes, a late fix joins the trips that were active at its time, and one
// after the end touches none. Stopped now, it reaches to the live fix where the phone's clock is up
// to 2 minutes ahead. A trip ends when its driver says so, with its task, or Options.TripTTL after
// its last fix that was kept, good or not; then it is stopped, or discarded if it holds no such fix
// at all. That holds from the very instant for every reader. Where it started and ended stands from
// its end on; a start that was taken from the live position, and is left out by then, gives way to
// the newest good fix before it, or the first of the path.
//
// Steps that a driver reports carry the time on the phone ([Step].At), so that what was done
// offline is put where it belongs. It is clamped to between the step before and now. No step is put
// after now: where the step before is, as when a trip has ended with the fix of a phone whose clock
// is ahead, it happened now. So the windows of two trips, one after the other, share what the
// phone's clock is ahead by, 2 minutes at most. Off duty and on no trip, nothing of a driver is
// kept. What was measured between going off duty and 2 minutes before coming back is dropped even
// when it comes later.
//
// # Drivers and invites
//
// A driver is made by [Service.SaveDriver] or by an invite ([Service.InviteDriver]). With its link
// or its 6-digit code the driver joins, once ([Service.Join]), and gets two tokens: one acts as the
// driver, one can only record fixes. Joining again, or [Service.RevokeTokens], makes the older ones
// dead. A sign of life is any fix, however old, and any step, change of duty, or joining. The
// completed tasks of the last 24 hours are what the driver app calls today's. A break is off duty
// to the service; the driver app keeps the word for it on the phone. It shows tasks that are
// neighbours on the route, with the same leg and one address or places within 25 m, as one stop.
//
// A driver is erased by [Service.DeleteDriver], at once for everybody who reads; a busy one only by
// [Service.ForceDeleteDriver], which leaves the tasks created and waiting for nobody. Tasks, trips
// and events keep the bare id. Who is made with that id later is another person ([Driver.Person]):
// the trips and tasks of the first one are listed by the id and stay without a path, and the new
// driver can do nothing with them. Whoever tells of an [Event] late looks at its Person, and at the
// [Notice]'s, before taking the driver who has the id for the one it tells of. A call of the first
// one's that is still on its way does nothing to the new one where it was made by
// [Service.AsDriver], as httpadapter does. A task that the first one had declined stays excluded
// from the id.
//
// # Tracking links
//
// [Service.TaskLink] and [Service.TripLink] give the token of a link for the customer;
// [Service.Tracking] and [Service.Follow] say what its holder may see: the driver only between
// start and end of that task or trip, never a phone number, a note or another stop, and after the
// end the final state without any position.
//
// The place shown is that of the person who watches, and the expected time is the time there:
// through all the stops of the driver's route before it, with Options.StopTime at each. [Tracking]
// counts them, up to 10, and with Options.ShowWithin it shows where the driver is only once the
// watcher's stop is among so many next ones, and of the path only the way to the next stop, so that
// it tells nobody where others live. [Tracking].Leg says which of the two the
// driver is heading for; a trip has none, and one whose request named no destination has neither
// place nor expected time. Each expected time comes from one position, and counts from its time, or
// from when the way to the next stop began. It stands until the next position, so that it comes nearer
// while the driver is silent, and goes when the position is no longer live. Every process says the
// same; only a [Router] is asked by each for itself. Within 50 m of the place, with a fix not worse than 100 m and no stop before, the driver is
// at the door: then it is the moment at which that was seen.
//
// The link of a task that is tried again shows the new task, and lives as that does, also where it
// had expired before; [Tracking].Earlier says what became of the one before. To revoke the link of
// a task is to revoke all that show it.
//
// Who holds the link of a task can write to its driver until it ends ([Service.NoteFromCustomer]):
// a plain text, of which the last one stands (Task.CustomerNote). The driver is told, and sees it
// while the task is open; so do all who have the link. The event, whose actor is "customer", does
// not hold it. A link takes 10 notes in 24 hours. Where the store is a [Limiter] that is so for all
// processes; else each counts what it sees itself, of the 20,000 links that were written by last.
//
// # Events
//
// Every change writes its [Event] in the same atomic step: Seq counts 1, 2, 3 … for its subject.
// [Service.Events] reads them; a [Notifier] is told of each by [Service.Run], at least once and in
// order for each subject. There may be several: each has an outbox of its own, so that one whose
// receiver is down holds up none of the others. Moving a task from one driver to another is one
// event, task.assigned with data.previous_driver_id; a request to start a trip is an event of the
// driver, since there is no trip yet. What a driver is told is a feed of notices,
// [Service.Notices].
//
// # Data that goes
//
// What a task says of people is in the task alone, in its trips and in the files that were given as
// proof: contacts, addresses, notes, and reasons in words. Events, notices, what is yet to be told and
// logs name it by its id. So whoever tells of an event late tells what the task says by then.
//
// [Service.EraseContact] takes a person out of all tasks that have ended, by the digits of a mobile
// number; [Task.ErasedAt] stays, and task.erased tells those who keep a copy of their own.
// [Service.DeleteTask] removes a task that has ended, or that nobody is to do, as if it had never been:
// its events too, also what a [Notifier] has not been told, so that nobody hears of its end who had not
// yet. With Options.KeepContacts and KeepTasks [Service.Run] does so with everybody in a task, and with
// the task, so long after its end. Drivers are erased by [Service.DeleteDriver], above.
//
// What the application itself puts into order ids, properties, idempotency keys, or texts of a request
// for a trip that is no task's, it has to look after. Points stay with an erased task, and fixes
// with their driver for Options.KeepFixes. Each store says what becomes of the bytes: a file of
// store/sqlite is rid of them by itself some time after the erasure, in PostgreSQL the operator sees to
// that.
//
// # Looking on
//
// Who dispatches looks at everything at once. [Service.Live] tells of it: first all that is under
// way, every driver who is on duty or has open tasks and every task that is not completed, and then
// each change, in whatever process it was made.
//
//	live, err := svc.Live(ctx, "")
//	…
//	defer live.Close()
//	for {
//		events, err := live.Next(ctx) // at least one; waits until there is something
//		…
//	}
//
// Nothing older comes after what is newer. A task that ends comes once more as it is then, a driver
// who goes off duty too; what changes of them later is told as far as it is known to this process.
// Positions come at most once a second for each driver, a sign of life without a fix once in 10 s.
// Who is slow is told the newest of each, and never all that was between.
//
// All who look at one application share what is read for them: each change is read once, and once a
// second everything under way, for what other processes have done and nobody has told of. While
// nobody looks, nothing is read. The Cursor of an event is a place to go on from, in this process,
// until 1000 tasks and drivers have come to their end since, or nobody has looked on for a minute.
//
// # Clocks and outages
//
// Our own clock may be wrong for a while. What was noted then, and lies more than 2 minutes ahead
// once it is right, counts no longer than it could have: a lease or a retry of an event, a guess at
// a code, a question to the Geocoder are over; who was heard of or came on duty then counts as
// heard of now; a trip lives Options.TripTTL from now; an invite, a joining's nonce and a link of
// something that has ended are dead, and the link is made anew when it is asked for. A fix from
// then is forgotten with the next sign of life, and the position goes back to the newest before it.
// A step counts from the last one that does not lie ahead, and the steps of a task that lie after
// it come back to its time. A task that waits before its time, or was told to be late before it,
// does so no more. The order of lists, and when a thing was made, stay as they were noted.
//
// Times in which nobody could be heard, because no process ran or the store was away for more than
// a minute, make nobody silent: what counts is for how long drivers could be heard, by whatever
// process, since the last sign of life. The store remembers it ([Store.Memo]), so that starting
// again costs nothing.
//
// # Several processes
//
// Several processes may work on one store, where it is one that they can share: memory and SQLite are
// of one process. None needs what another remembers for a right answer. What one has done the others
// read at once; their streams show it within a second, and sooner where the store is a [Watcher].
// Run shares the work in them by a [Claim] on what is due. An expected time is the same from each.
// What each knows by itself are the answers of a [Router], and, unless the store is a [Limiter], the
// wrong codes and the notes of links that it has seen.
//
// # Numbers
//
// [Service.Stats] counts what is open, waits, is late or silent, and what is yet to be delivered, since
// when, and what was given up. [Options].Observe is called around each operation, by which they are
// counted, timed and traced. Package httpadapter/otel, a module of its own, makes metrics and traces of
// both.
//
// # In a transaction of yours
//
// Where the store is a [Transactor], as store/postgres is, [Service.Within] writes in a transaction
// that you have begun in the same database, so that an order and its task are there both or not at
// all. What is written can be seen, is told and goes to drivers once you have committed: nothing is
// to be called then. With your rollback, also that to a savepoint, nothing is left of it. A conflict
// is returned and not tried again; nothing of that call is written, and the transaction goes on as
// if it had not been made. Whatever a [TxService] has no method for cannot be done there.
//
// # Applications
//
// A Service works for one application. [Service.ForApp] returns a copy for another, which shares
// everything but the rows; [Service.As] one whose events name an actor.
//
// # Errors
//
// Methods return *[Error], with a code, a message for the caller, and the field to blame. Codes are
// errors: errors.Is(err, tracking.ErrNotFound).
//
// # Export and import
//
//	err := svc.Export(ctx, w, tracking.ExportFilter{AllApps: true, Secrets: true})
//	…
//	n, err := other.Import(ctx, r) // on a store of any kind that has nothing of it
//
// [Service.Export] writes what is kept as JSON Lines: to move a store, or one application, or to
// give one driver, or one customer, what is kept of them ([ExportFilter]). Each line is one object:
//
//	{"kind":"export","version":1,"of":"all","secrets":true}
//	{"kind":"driver","app":"default","driver_id":"asha","version":3,"name":"Asha",…}
//	{"kind":"task","app":"default","task_id":"…","version":2,"type":2,"status":"assigned",…}
//	{"kind":"fix","app":"default","driver_id":"asha","lnglat":[80.27,13.08],"time":"…",…}
//	{"kind":"event","app":"default","event_id":"…","subject":{"kind":"task","id":"…"},"seq":2,…}
//	{"kind":"end","rows":4}
//
// The kinds come in the order of [RowKinds], within each application, and rows of one kind in the
// order in which lists show them; what belongs to a row comes after it. The names of fields are
// those of the HTTP interface where it has them. Times are as in 2006-01-02T15:04:05.000Z, and
// lengths in metres; a place is [longitude, latitude], accuracy metres, speed m/s, bearing degrees,
// battery 0 to 1, a clock's skew seconds; a hash is hexadecimal, and the bytes of a file are
// base64. What is empty or false may be left out. Who reads one passes over fields that he does not
// know; a version or kind that he does not know is an error, as the rest cannot be understood then.
//
// [Service.Import] says of a broken line which it is, and which field. What was read before is
// written a batch at a time, and it goes on from there when it is run again. Versions, the Seq of
// events, ids of notices, marks of fixes, and what is undelivered are as they were; only [Task].Seq
// and the like are given anew, in the same order.
//
// # Security
//
// Keys, tokens and codes are stored as hashes. Options.Secret keys links, codes and ingest tokens;
// without it the store keeps one of its own, and who copies the store's file can make its live
// links. A code is one of 900,000, so that a guess hits with a chance of the number of live codes /
// 900,000; see [Service.Join] for how guesses are limited.
//
// What is read from the service can be printed, logged and encoded without harm: a PIN and the
// addresses of browsers are a [Secret], and a [Hash] is not written either.
//
// # Privacy
//
// What is stored of people, for how long, who sees it, and how it goes:
//
//   - Of customers: the name, number, address and point of a place, notes, what they write to the
//     driver, who received it, photos and signatures. They stay with the task: for ever, or for
//     Options.KeepContacts and KeepTasks after its end. [Service.EraseContact] takes a person out of
//     all tasks that have ended, [Service.DeleteTask] removes a task. The application and the board
//     see it; the driver sees it while the task is his and for a day after; who has the link sees the
//     address of his own place, his note, and with httpadapter's Site.ShowProof who received it and
//     the photo. A file that is given as proof is rid of place, time and camera.
//   - Of drivers: name, number, e-mail, properties, and where their phones were while they were on
//     duty or on a trip. Off duty and on no trip nothing is kept. Fixes go after Options.KeepFixes, 90
//     days unless said otherwise. The application sees them; who has a link sees the first name, and
//     the position between start and end, as above. [Service.DeleteDriver] erases the driver and all
//     fixes at once, also from paths; tasks, trips and events keep the bare id.
//   - Of those who dispatch: what events name as their actor, an id of the embedder's.
//   - An [Event] holds ids, words and times, and nothing of a person; it goes after
//     Options.KeepEvents, 30 days unless said otherwise. A webhook is filled from the rows when it is
//     sent, so that what is erased by then is not in it.
//   - Of phones that are told by Web Push: the address of the browser's service, and its key, until the
//     driver joins anew, loses his tokens or is erased. What is sent is encrypted for the browser.
//   - Of callers: logs of httpadapter hold addresses, and no query, token, or id of a person. Wrong
//     codes are counted by the address, until the last wait for them is over.
//
// What is kept of a driver, or of whoever has a number, [Service.Export] writes down.
//
// A copy of the store that was made before keeps what was erased since; how long copies are kept is
// up to who makes them. Pages load nothing from others but the tiles and the logo that their Site
// names.
//
// # For stores
//
// Who embeds the service has no need of what a [Store] is made of, and never calls it: the readers
// ([TaskReader], [TripReader], [DriverReader], [InviteReader], [KeyReader], [EventReader]), what
// they are asked ([WaitingFilter], [MatchQuery], [Offer], [FixRange], [DueQuery], [Claim],
// [Lease], [Before]) and answer ([Due], [Leased], [Purged], [Recorded]), what is written ([Changeset],
// [Written], [Given], [ConflictError], [Delivery], [DeliveryState]), what it may do besides
// ([Watcher], [Eraser], [Limiter], [Transactor] with [TxStore] and [Tx]), how rows are moved from one store to another ([Row], [RowQuery],
// [Restoring], and what the constants of [RowKind] name), and the rule of fixes as a store applies it
// ([FixBatch], [FixLog], [KeptFix], [FixMark], [TailUnknown], [Skew]). Whoever writes a store
// begins at package store, and holds it to package store/storetest.
//
// # Where things stand
//
//   - tracking.go: errors, events, options, the store contract; Service, how an operation runs and commits, delivery of events, Run
//   - task.go: tasks and their rules, proof, assignment
//   - trip.go: trips, their path and its measure; what a link shows, what a board follows, the expected time
//   - driver.go: drivers, fixes and the rule of which are good, silence, notices
//   - invite.go: invites, keys, links, tokens, and whatever else mints a secret
//
// In each, and in each part of the long ones, types come first, then the pure rules, the methods of
// Service, and last what they are made of.
package tracking

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net/url"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"
)

// AppID names an application, the tenant that rows belong to. A Service works for [DefaultApp]
// unless [Service.ForApp] says otherwise.
type AppID string

// DefaultApp is the application of a Service that was not scoped by [Service.ForApp].
const DefaultApp AppID = "default"

// LngLat is a place on the Earth in degrees (WGS 84).
type LngLat struct {
	Lng float64 // −180 … 180, east positive
	Lat float64 // −90 … 90, north positive
}

// Valid reports whether both numbers are finite and in range.
func (p LngLat) Valid() bool {
	return p.Lng >= -180 && p.Lng <= 180 && p.Lat >= -90 && p.Lat <= 90
}

// EarthRadius is the mean radius R1 = (2a + b) / 3 of the GRS 80 ellipsoid in metres (IUGG; Moritz
// 2000, Geodetic Reference System 1980).
const EarthRadius = 6371008.8

// Distance is the great-circle distance in metres by the haversine formula (Sinnott 1984) on a
// sphere of [EarthRadius]. Every store and every rule uses this one function, so that their orders
// agree to the last bit.
//
// Equal distances are equal to the last bit, too: ±180° are one meridian, at a pole the longitude
// means nothing, a place is 0 m from itself by whichever name, and neither direction, nor mirroring
// both places at the equator or at a meridian of 0° or 180°, changes anything.
func Distance(a, b LngLat) float64 {
	const rad = math.Pi / 180
	sy := math.Sin((b.Lat - a.Lat) * rad / 2)
	h := float64(sy * sy) // rounded, lest a processor that multiplies and adds at once makes another last bit
	// the cosine of 90° comes out as 6e-17, and would let the longitude in
	if math.Abs(a.Lat) != 90 && math.Abs(b.Lat) != 90 {
		sx := math.Sin(between(a.Lng, b.Lng) * rad / 2)
		h += float64(math.Cos(a.Lat*rad) * math.Cos(b.Lat*rad) * sx * sx)
	}
	return 2 * EarthRadius * math.Asin(math.Min(1, math.Sqrt(h)))
}

// between is the angle from 0 to 180° between two meridians. Over ±180° it is the sum of what
// either lacks to there, which is exact for places nearby; the difference less 360° would be
// rounded.
func between(a, b float64) float64 {
	if (a < 0) == (b < 0) {
		return math.Abs(b - a)
	}
	a, b = math.Abs(a), math.Abs(b)
	return math.Min(a+b, (180-a)+(180-b))
}

// ErrorCode is the kind of an error. Its values are errors themselves: errors.Is(err,
// tracking.ErrNotFound).
type ErrorCode string

const (
	ErrInvalid      ErrorCode = "invalid"      // the input is wrong; Error.Field names it
	ErrUnauthorized ErrorCode = "unauthorized" // no valid key or token
	ErrForbidden    ErrorCode = "forbidden"    // who calls may look, and not change; or another site's page has it done
	ErrNotFound     ErrorCode = "not_found"    // nothing of this application (or this driver) has that id
	ErrConflict     ErrorCode = "conflict"     // the present state forbids it
	ErrTooLarge     ErrorCode = "too_large"    // more than one call may carry
	ErrRateLimited  ErrorCode = "rate_limited" // too many tries; Error.RetryAfter says when to come again
	ErrUnavailable  ErrorCode = "unavailable"  // the store cannot answer now; the outcome of a write may be unknown
	ErrInternal     ErrorCode = "internal"     // a fault of ours
)

func (c ErrorCode) Error() string { return string(c) }

// Error is what every Service method returns when it fails. Message and Field are for the caller
// and never hold a value that the caller sent; Err is for the log only.
type Error struct {
	Code       ErrorCode
	Message    string        // a sentence the caller can act on
	Field      string        // the input to blame, as its JSON path ("drop.lnglat"); "" when none is
	RetryAfter time.Duration // for ErrRateLimited and ErrUnavailable: when to try again
	Err        error         // the cause
}

func (e *Error) Error() string {
	s := e.Message
	if s == "" {
		s = string(e.Code)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is this error's [ErrorCode].
func (e *Error) Is(target error) bool { c, ok := target.(ErrorCode); return ok && c == e.Code }

// Page picks a part of a list. The zero Page is the first one with the default length.
type Page struct {
	Number int // from 1; 0 means 1
	Limit  int // 1 … 1000; 0 means the list's default
}

// Offset is the number of rows before the page; it saturates instead of overflowing.
func (p Page) Offset() int {
	n, l := max(p.Number, 1)-1, max(p.Limit, 1)
	if n > math.MaxInt/l {
		return math.MaxInt
	}
	return n * l
}

// SubjectKind is the kind of thing an event is about.
type SubjectKind string

const (
	KindTask   SubjectKind = "task"
	KindTrip   SubjectKind = "trip"
	KindDriver SubjectKind = "driver"
	KindInvite SubjectKind = "invite" // in conflicts only
	KindKey    SubjectKind = "key"    // in conflicts only
)

// Subject is the thing an event is about.
type Subject struct {
	Kind SubjectKind
	ID   string
}

// EventType says what happened.
type EventType string

const (
	EventTaskCreated EventType = "task.created"
	EventTaskUpdated EventType = "task.updated"
	// also when it moves from one driver to another: data.previous_driver_id
	EventTaskAssigned      EventType = "task.assigned"
	EventTaskUnassigned    EventType = "task.unassigned"
	EventTaskDeclined      EventType = "task.declined"
	EventTaskStarted       EventType = "task.started"
	EventTaskPickedUp      EventType = "task.picked_up"
	EventTaskCompleted     EventType = "task.completed" // data.outcome: succeeded, failed, cancelled
	EventTaskLate          EventType = "task.late"      // once for each promise: data.promised
	EventTaskArriving      EventType = "task.arriving"  // data.leg
	EventTaskArrived       EventType = "task.arrived"   // data.leg
	EventTaskRetried       EventType = "task.retried"   // another task tries it again: data.retried_by
	EventTaskNoted         EventType = "task.noted"     // the holder of its link has written a note
	EventTaskReopened      EventType = "task.reopened"
	EventTaskErased        EventType = "task.erased"    // what it said of persons
	EventTaskUndone        EventType = "task.undone"    // data.step: start, pickup, complete
	EventTaskStuck         EventType = "task.stuck"     // a phone could not deliver a step: data.step, data.why
	EventTaskSettled       EventType = "task.settled"   // somebody has seen to it
	EventTripRequested     EventType = "trip.requested" // its subject is the driver: there is no trip yet
	EventTripStarted       EventType = "trip.started"
	EventTripStopped       EventType = "trip.stopped"
	EventTripDiscarded     EventType = "trip.discarded"
	EventDriverAvailable   EventType = "driver.available"
	EventDriverUnavailable EventType = "driver.unavailable"
	EventDriverSilent      EventType = "driver.silent"
	EventDriverJoined      EventType = "driver.joined"
	EventDriverRouted      EventType = "driver.routed" // the order of the stops was changed
)

// Event is one change of state, written in the same step as the change.
type Event struct {
	ID         string
	Type       EventType
	Time       time.Time // when it happened
	RecordedAt time.Time // when it reached us
	Actor      string    // key:<id>, driver:<id>, customer, system, or what [Service.As] said
	Subject    Subject
	// who the driver is that Subject or Data's driver_id names, see [Driver.Person]; "" for none
	Person  string
	Seq     int64             // 1, 2, 3 … for its subject; given by the store
	Data    map[string]string // ids, words and times; no personal data
	Notices []Notice          // the drivers who are told
}

// Clone returns a deep copy.
func (e Event) Clone() Event {
	e.Data = maps.Clone(e.Data)
	if len(e.Data) == 0 {
		e.Data = nil
	}
	e.Notices = append([]Notice(nil), e.Notices...)
	return e
}

// EventData is what an event of one type says besides its subject: one of the structs below, whose
// fields stand in Event.Data under the names in their tags. What is empty is left out there; true
// is "true", a list is joined by commas, and a time is as in 2006-01-02T15:04:05.000Z.
type EventData interface{ eventType() EventType }

// What the events of each type say. Those without a field say nothing but that it happened.
type (
	TaskCreatedData struct {
		RetryOf TaskID `data:"retry_of"` // the task that it tries again; none if it is a first try
	}
	TaskUpdatedData struct {
		// that changed: pickup, drop, notes, order_id, time, window, promised, requires, proof;
		// proofs when its driver has given a file
		Fields []string `data:"fields"`
	}
	TaskAssignedData struct {
		DriverID         DriverID `data:"driver_id"`
		PreviousDriverID DriverID `data:"previous_driver_id"` // who had it until then
		Auto             bool     `data:"auto"`               // nobody chose the driver by hand
		Handover         string   `data:"handover"`           // the same for all that were handed over together
	}
	TaskUnassignedData struct {
		DriverID DriverID `data:"driver_id"` // who had it
	}
	TaskDeclinedData struct {
		DriverID   DriverID   `data:"driver_id"`
		ReasonCode ReasonCode `data:"reason_code"` // none if nobody said why in a word
	}
	TaskStartedData struct {
		DriverID DriverID `data:"driver_id"`
	}
	TaskPickedUpData struct {
		DriverID DriverID `data:"driver_id"`
	}
	TaskCompletedData struct {
		DriverID   DriverID   `data:"driver_id"` // who had it; none if nobody did
		Outcome    Outcome    `data:"outcome"`
		ReasonCode ReasonCode `data:"reason_code"` // none if nobody said why in a word
	}
	TaskLateData struct {
		DriverID DriverID  `data:"driver_id"` // who has it; none if nobody does
		Promised time.Time `data:"promised"`  // what is not kept
	}
	TaskArrivingData struct {
		Leg Leg `data:"leg"` // whose end is near
	}
	TaskArrivedData struct {
		Leg Leg `data:"leg"`
	}
	TaskRetriedData struct {
		RetriedBy TaskID `data:"retried_by"`
	}
	TaskNotedData    struct{}
	TaskErasedData   struct{}
	TaskReopenedData struct {
		DriverID DriverID `data:"driver_id"` // who has it again; none if nobody does
	}
	TaskUndoneData struct {
		DriverID DriverID `data:"driver_id"`
		Step     TaskStep `data:"step"` // that was taken back
	}
	TaskStuckData struct {
		DriverID DriverID `data:"driver_id"`
		Step     string   `data:"step"` // that could not be delivered
		Why      string   `data:"why"`  // none if the phone did not say
	}
	TaskSettledData struct {
		DriverID DriverID `data:"driver_id"` // whose steps; none: everybody's
	}
	TripRequestedData struct {
		DriverID   DriverID   `data:"driver_id"`
		TrackingID TrackingID `data:"tracking_id"`
	}
	TripStartedData struct {
		DriverID   DriverID   `data:"driver_id"`
		TrackingID TrackingID `data:"tracking_id"`
		TaskID     TaskID     `data:"task_id"` // none when it is no task's trip
	}
	TripStoppedData struct {
		DriverID   DriverID   `data:"driver_id"`
		TrackingID TrackingID `data:"tracking_id"`
		TaskID     TaskID     `data:"task_id"`
	}
	TripDiscardedData struct {
		DriverID   DriverID   `data:"driver_id"`
		TrackingID TrackingID `data:"tracking_id"`
		TaskID     TaskID     `data:"task_id"`
	}
	DriverAvailableData   struct{}
	DriverUnavailableData struct{}
	DriverSilentData      struct{}
	DriverJoinedData      struct{}
	DriverRoutedData      struct{}
)

func (TaskCreatedData) eventType() EventType { return EventTaskCreated }

func (TaskUpdatedData) eventType() EventType { return EventTaskUpdated }

func (TaskAssignedData) eventType() EventType { return EventTaskAssigned }

func (TaskUnassignedData) eventType() EventType { return EventTaskUnassigned }

func (TaskDeclinedData) eventType() EventType { return EventTaskDeclined }

func (TaskStartedData) eventType() EventType { return EventTaskStarted }

func (TaskPickedUpData) eventType() EventType { return EventTaskPickedUp }

func (TaskCompletedData) eventType() EventType { return EventTaskCompleted }

func (TaskLateData) eventType() EventType { return EventTaskLate }

func (TaskArrivingData) eventType() EventType { return EventTaskArriving }

func (TaskArrivedData) eventType() EventType { return EventTaskArrived }

func (TaskRetriedData) eventType() EventType { return EventTaskRetried }

func (TaskNotedData) eventType() EventType { return EventTaskNoted }

func (TaskReopenedData) eventType() EventType { return EventTaskReopened }

func (TaskErasedData) eventType() EventType { return EventTaskErased }

func (TaskUndoneData) eventType() EventType { return EventTaskUndone }

func (TaskStuckData) eventType() EventType { return EventTaskStuck }

func (TaskSettledData) eventType() EventType { return EventTaskSettled }

func (TripRequestedData) eventType() EventType { return EventTripRequested }

func (TripStartedData) eventType() EventType { return EventTripStarted }

func (TripStoppedData) eventType() EventType { return EventTripStopped }

func (TripDiscardedData) eventType() EventType { return EventTripDiscarded }

func (DriverAvailableData) eventType() EventType { return EventDriverAvailable }

func (DriverUnavailableData) eventType() EventType { return EventDriverUnavailable }

func (DriverSilentData) eventType() EventType { return EventDriverSilent }

func (DriverJoinedData) eventType() EventType { return EventDriverJoined }

func (DriverRoutedData) eventType() EventType { return EventDriverRouted }

// dataTypes are the structs by their event types, and the names of their fields in Event.Data.
var dataTypes = func() map[EventType]dataType {
	types := map[EventType]dataType{}
	for _, d := range []EventData{
		TaskCreatedData{}, TaskUpdatedData{}, TaskAssignedData{}, TaskUnassignedData{}, TaskDeclinedData{},
		TaskStartedData{}, TaskPickedUpData{}, TaskCompletedData{}, TaskRetriedData{}, TaskNotedData{}, TaskLateData{},
		TaskArrivingData{}, TaskArrivedData{}, TaskReopenedData{}, TaskUndoneData{}, TaskStuckData{}, TaskSettledData{},
		TaskErasedData{},
		TripRequestedData{}, TripStartedData{}, TripStoppedData{}, TripDiscardedData{},
		DriverAvailableData{}, DriverUnavailableData{}, DriverSilentData{}, DriverJoinedData{},
		DriverRoutedData{},
	} {
		t := dataType{Type: reflect.TypeOf(d)}
		for i := range t.NumField() {
			t.names = append(t.names, t.Field(i).Tag.Get("data"))
		}
		types[d.eventType()] = t
	}
	return types
}()

// timeWord is a time as events say it.
const timeWord = "2006-01-02T15:04:05.000Z"

type dataType struct {
	reflect.Type
	names []string
}

// Details reads Data as the struct of the event's type; nil for a type that is not known here.
func (e Event) Details() EventData {
	typ, ok := dataTypes[e.Type]
	if !ok {
		return nil
	}
	d := reflect.New(typ.Type).Elem()
	for i, name := range typ.names {
		word := e.Data[name]
		switch f := d.Field(i); {
		case f.Kind() == reflect.Bool:
			f.SetBool(word == "true")
		case f.Kind() == reflect.Slice && word != "":
			f.Set(reflect.ValueOf(strings.Split(word, ",")))
		case f.Kind() == reflect.String:
			f.SetString(word)
		case f.Type() == reflect.TypeFor[time.Time]() && word != "":
			if at, err := time.Parse(timeWord, word); err == nil {
				f.Set(reflect.ValueOf(at))
			}
		}
	}
	return d.Interface().(EventData)
}

// words is Event.Data for d, in room if that is not nil; nil if there are none.
func words(d EventData, room map[string]string) (words map[string]string) {
	v := reflect.ValueOf(d)
	for i, name := range dataTypes[d.eventType()].names {
		word := ""
		switch f := v.Field(i); f.Kind() {
		case reflect.Bool:
			if f.Bool() {
				word = "true"
			}
		case reflect.Slice:
			word = strings.Join(f.Interface().([]string), ",")
		case reflect.Struct:
			if at := f.Interface().(time.Time); !at.IsZero() {
				word = at.UTC().Format(timeWord)
			}
		default:
			word = f.String()
		}
		if word == "" {
			continue
		}
		if words == nil {
			if words = room; room == nil {
				words = map[string]string{}
			}
		}
		words[name] = word
	}
	return words
}

// NoticeKind is what a driver is told.
type NoticeKind string

const (
	NoticeAssigned   NoticeKind = "assigned"
	NoticeUnassigned NoticeKind = "unassigned"
	NoticeUpdated    NoticeKind = "updated"
	NoticeCancelled  NoticeKind = "cancelled"
	NoticeReopened   NoticeKind = "reopened"
	NoticeHandedOver NoticeKind = "handed_over" // names no task: they may be many
	NoticeRequest    NoticeKind = "trip_request"
	NoticeRoute      NoticeKind = "route" // somebody else has changed the order of the stops
	NoticeNoted      NoticeKind = "noted" // the customer has written
)

// Notice is one entry of a driver's feed. It names what it is about; what to say is read from the
// rows when it is shown.
type Notice struct {
	ID         int64 // strictly growing for the driver; given by the store
	DriverID   DriverID
	Person     string // who that was; set by the store from the driver's row
	Kind       NoticeKind
	EventID    string // of the event that caused it; set by the store
	TaskID     TaskID
	TrackingID TrackingID // of a trip request
	Time       time.Time  // the event's RecordedAt; set by the store
}

// EventFilter picks events.
type EventFilter struct {
	Subject Subject // zero: all; the Notices of an event do not count
	After   string  // only those after this event's ID
	Dead    bool    // only those whose delivery was given up, in the outbox of this name
	Outbox  string  // for Dead; "" is that of Options.Notifier
	Limit   int
}

// EventReader reads events and notices.
type EventReader interface {
	// Events lists in one order, in which nothing ever comes before what a list has already shown:
	// who goes on after the last event of a list misses none. Each subject's events come by Seq,
	// those of one Commit in the order of Changeset.Events, with others between them only if these
	// are of other subjects. The events of every Commit that returned are there. See [EventFilter].
	// More tells whether there are further ones. An After that names no event of the application is
	// ErrNotFound; one of another subject is a place in that order like any other.
	Events(ctx context.Context, app AppID, f EventFilter) (list []Event, more bool, err error)

	// Notices lists a driver's notices with an ID greater than after, in order of ID, at most
	// limit. Lost tells that the caller's place is gone: a notice greater than after has been
	// purged, or after is greater than any ID that was given. A driver who was deleted has left no
	// place: of somebody without a row, every after above 0 is lost; who has the id next has lost
	// nothing that the one before was told.
	Notices(ctx context.Context, app AppID, driver DriverID, after int64, limit int) (list []Notice, lost bool,
		err error)
}

// Notification is an event on its way to the embedder.
type Notification struct {
	App     AppID
	Event   Event
	Attempt int // 1 for the first
}

// A Notifier is told of every event, at least once, in order for each subject; Event.ID is the same
// each time. [Service.Run] calls it, outside of any commit, with a context that ends after
// Options.NotifyTimeout. It may be called at once for different subjects. An error means that the
// event is tried again after the next of Options.RetryWaits, and with the last of them that it is
// given up; a *[NotifyError] can say more.
type Notifier interface {
	Notify(ctx context.Context, n Notification) error
}

// NotifyError says how a failed delivery is to go on.
type NotifyError struct {
	Permanent  bool          // do not try again
	RetryAfter time.Duration // wait at least this long; more than a day counts as a day
	Err        error
}

func (e *NotifyError) Error() string {
	if e.Err == nil {
		return "the delivery failed"
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *NotifyError) Unwrap() error { return e.Err }

// A Geocoder turns addresses into points and back. [Service.Run] asks it, outside of any commit;
// its failure never fails an operation, and is tried again later. An answer that it does not have
// is ErrNotFound: it is asked for again after a minute up to 6 hours, and until then a task with
// AutoAssign waits. It may be asked up to eight things at once, so that what takes long holds up
// nothing else; one that may not be is to let them queue.
type Geocoder interface {
	Point(ctx context.Context, address string) (LngLat, error)
	Address(ctx context.Context, p LngLat) (string, error)
}

// A Router knows how long a way takes. It is asked when somebody looks at a tracking link, at most
// once in 30 seconds for each way there, with a time limit; when it fails there is an estimate.
type Router interface {
	// TravelTime is how long the way through these points takes, two or more, by now's traffic.
	TravelTime(ctx context.Context, points []LngLat) (time.Duration, error)
}

// Files keeps the bytes that drivers give as proof, by application and id; ids are the Service's.
// The bytes of a file never change. A store brings one, [Store.Files]; Options.Files keeps them
// elsewhere, such as in a bucket.
//
// Its methods are called outside of any commit, at once from many goroutines, each with a context
// that ends after Options.NotifyTimeout. A failure of Put or Open is ErrUnavailable to the caller.
//
// A file is put before its task names it in [Task.Proofs]. Where that does not come about the
// Service deletes it again; when the process ends in between, nobody does, and the file is an
// orphan. Of a store's own files Purge removes the orphans. Whoever keeps files elsewhere does it
// so: for each file that is older than an hour, read the task that it was put for ([File].TaskID,
// [Service.Task]), and delete it if that does not name it.
type Files interface {
	// Put keeps a file under an id, instead of what was there before. With a nil error it is
	// durable; else it is there whole, or what was there before is.
	Put(ctx context.Context, app AppID, id string, f File) error

	// Open reads a file's bytes; the caller closes it. One that is not there is ErrNotFound, and so
	// is another application's.
	Open(ctx context.Context, app AppID, id string) (io.ReadCloser, error)

	// Delete removes a file. One that is not there is no error.
	Delete(ctx context.Context, app AppID, id string) error
}

// File is what [Files] keeps.
type File struct {
	TaskID TaskID
	Type   string    // the media type
	At     time.Time // when it was put, by the Service's clock
	Data   []byte    // at most MaxProofSize
}

// Options set up a Service. The zero value of each field means its default.
type Options struct {
	MaxFixAge         time.Duration // how long after a sign of life a driver still counts as there; default 10 min
	MaxOpenTasks      int           // how many open tasks a driver may get automatically; default 1; negative: no limit
	MaxAssignDistance float64       // metres to a driver who gets a task automatically; default 0, no limit
	AssignLead        time.Duration // how long before its Window a task with AutoAssign goes to a driver; default 1 h
	MaxAccuracy       float64       // metres; a fix of worse accuracy is coarse; default 250; negative: no limit

	ReopenFor time.Duration // how long after its end a task can be reopened; default 24 h
	UndoFor   time.Duration // how long after a step its driver can take it back; default 10 min

	TripTTL   time.Duration // how long a trip lives without a fix; default 2 h
	LinkTTL   time.Duration // how long a tracking link outlives the end; default 24 h
	InviteTTL time.Duration // how long an invite's link lives; default 24 h
	CodeTTL   time.Duration // how long an invite's code lives; default 1 h

	KeepFixes  time.Duration // default 90 days; negative: for ever
	KeepEvents time.Duration // finished events and notices; default 30 days; negative: for ever
	// How long after its end a task is kept, and what it says of persons: see [Service.DeleteTask] and
	// [Service.EraseContact]. Default, and negative: for ever.
	KeepTasks, KeepContacts time.Duration

	KeepOffDuty bool // keep the fixes of drivers who are off duty and on no trip

	// Reasons are words of your own that say why a task failed, was declined or was cancelled,
	// besides the usual ones, which are [ReasonNotHome] and those beside it: up to 32 small letters
	// of a to z, digits and underscores each. Default none.
	Reasons []ReasonCode

	// Secret keys links, codes, ingest tokens and app tokens joined with a nonce; at least 32
	// bytes, the same for all Services on one store. Without it the store makes and keeps one: then
	// a copy of the store's file reveals the live links.
	Secret []byte

	Notifier Notifier // is told of every event; default none

	// Notifiers are each told of every event by themselves: one that fails, or is slow, holds up
	// none of the others. The name stands in the store with what is yet to be told, so keep it the
	// same, and give the same names to all Services on one store; a new name is told of the events
	// from then on. A name that is left out keeps what it has not been told, for ever; with a
	// Notifier that only returns nil it lets go of it. Options.Notifier is the one named "".
	// Default none.
	Notifiers map[string]Notifier

	NotifyTimeout time.Duration // for one call; default 15 s
	// before the first, second … try; the first is taken as 0, whatever it says; default 0 s, 5 s,
	// 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h, each with up to 10 % added
	RetryWaits []time.Duration
	Geocoder   Geocoder // default none
	Router     Router   // for expected times; default none: an estimate
	Files      Files    // for the bytes of proofs; default: the store's own

	StopTime   time.Duration // how long a stop takes that lies before another; default 2 min
	ShowWithin int           // a link shows where the driver is while its stop is among so many next ones; default 0: always

	ArrivingWithin time.Duration // before a stop a driver is said to arrive; default 5 min
	ArrivalRadius  float64       // metres around a stop within which a driver who stays has arrived; default 100

	DriversReorder *bool // whether drivers may change the order of their stops; nil: true

	Now    func() time.Time // the clock; default time.Now
	Rand   io.Reader        // for ids and secrets; it must not fail; default crypto/rand
	Logger *slog.Logger     // default slog.Default()

	// Observe is called at the start of every operation, which is each method of the Service that takes
	// a context, but Run, Follow and Close; what it returns is called at the end, with the code of the
	// error, "" for none. Op is the method's name. The operation goes on with the context that Observe
	// returns, made from the one that it is given: so what the store does, and an operation within
	// another, can be told as parts of it. It is called by many goroutines at once, and returns soon.
	// Default none, which costs nothing.
	Observe func(ctx context.Context, op string) (context.Context, func(code ErrorCode))
}

const day = 24 * time.Hour

// withDefaults fills in what is zero, and refuses what cannot be meant, in the order of the fields.
func (o Options) withDefaults() (Options, error) {
	// What cannot be meant.
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"MaxFixAge", o.MaxFixAge}, {"AssignLead", o.AssignLead},
		{"ReopenFor", o.ReopenFor}, {"UndoFor", o.UndoFor}, {"TripTTL", o.TripTTL},
		{"LinkTTL", o.LinkTTL}, {"InviteTTL", o.InviteTTL}, {"CodeTTL", o.CodeTTL}, {"NotifyTimeout", o.NotifyTimeout},
		{"StopTime", o.StopTime}, {"ArrivingWithin", o.ArrivingWithin},
	} {
		if d.value < 0 {
			return o, fmt.Errorf("tracking: Options.%s is %v; it must be positive, or 0 for the default", d.name,
				d.value)
		}
		if d.value > 0 && d.value < time.Millisecond {
			return o, fmt.Errorf("tracking: Options.%s is %v; it must be at least 1 ms", d.name, d.value)
		}
	}
	if n := len(o.Secret); n > 0 && n < 32 {
		return o, fmt.Errorf("tracking: Options.Secret has %d bytes; it needs at least 32", n)
	}
	if !(o.MaxAssignDistance >= 0) || math.IsInf(o.MaxAssignDistance, 0) {
		return o, fmt.Errorf("tracking: Options.MaxAssignDistance is %v; it must be a number of metres, or 0 for no limit", o.MaxAssignDistance)
	}
	for i, word := range o.Reasons {
		switch {
		case !word.valid():
			return o, fmt.Errorf("tracking: Options.Reasons has the word %.40q; it must be 1 to 32 characters of a to z, 0 to 9 and _", word)
		case word.Usual(), slices.Contains(o.Reasons[:i], word):
			return o, fmt.Errorf("tracking: Options.Reasons has the word %q, which is there already; leave it out", word)
		}
	}
	o.Notifiers = maps.Clone(o.Notifiers)
	for _, name := range slices.Sorted(maps.Keys(o.Notifiers)) {
		switch {
		case o.Notifiers[name] == nil:
			return o, fmt.Errorf("tracking: Options.Notifiers has nil under %q; leave the name out, or give it a Notifier", name)
		case name == "" && o.Notifier != nil:
			return o, errors.New(`tracking: Options.Notifier and Options.Notifiers[""] are one and the same; set only one of them`)
		case name != "" && !lookup(name):
			return o, fmt.Errorf("tracking: Options.Notifiers has the name %.40q; it must be valid UTF-8 without NUL, of at most 1024 bytes", name)
		}
	}

	// What was left zero.
	defaultTo(&o.MaxFixAge, 10*time.Minute)
	defaultTo(&o.MaxOpenTasks, 1)
	defaultTo(&o.AssignLead, time.Hour)
	defaultTo(&o.MaxAccuracy, 250)
	defaultTo(&o.ReopenFor, day)
	defaultTo(&o.UndoFor, 10*time.Minute)
	defaultTo(&o.TripTTL, 2*time.Hour)
	defaultTo(&o.LinkTTL, day)
	defaultTo(&o.InviteTTL, day)
	defaultTo(&o.CodeTTL, time.Hour)
	defaultTo(&o.KeepFixes, 90*day)
	defaultTo(&o.KeepEvents, 30*day)
	defaultTo(&o.NotifyTimeout, 15*time.Second)
	defaultTo(&o.StopTime, 2*time.Minute)
	defaultTo(&o.ArrivingWithin, 5*time.Minute)
	defaultTo(&o.ArrivalRadius, 100)
	if o.RetryWaits == nil {
		o.RetryWaits = []time.Duration{
			0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
			14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
		}
	}
	if len(o.RetryWaits) == 0 {
		return o, errors.New("tracking: Options.RetryWaits is empty; it needs at least one wait, before the first try")
	}
	if !(o.ArrivalRadius >= 0) || math.IsInf(o.ArrivalRadius, 0) {
		return o, fmt.Errorf("tracking: Options.ArrivalRadius is %v; it must be a number of metres, or 0 for the default", o.ArrivalRadius)
	}
	if o.ShowWithin < 0 {
		return o, fmt.Errorf("tracking: Options.ShowWithin is %d; it must be a number of stops, or 0 for all", o.ShowWithin)
	}
	if o.DriversReorder == nil {
		o.DriversReorder = new(true)
	}
	o.Secret, o.RetryWaits = slices.Clone(o.Secret), slices.Clone(o.RetryWaits)
	o.Reasons = slices.Clone(o.Reasons)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = crand.Reader
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, nil
}

// A Store keeps the rows. It is a strongly consistent notebook without opinions: every rule is in
// [Service], and a store never interprets a status, with the few exceptions that the comments below
// name.
//
// The application is an argument of every method but the look-ups by a secret (which return it) and
// the sweeps of [Service.Run]. A row of one application is invisible and unreachable from another.
//
// All methods may be called at once from many goroutines. A read sees every Commit and RecordFixes
// that returned before it began. What a caller passes in or gets back is the caller's: a store
// copies what it keeps, and hands out copies. Times are kept as whole milliseconds and returned in
// UTC; the zero time stays the zero time. Texts come back byte for byte and compare byte for byte.
// They are valid UTF-8 without U+0000: what is to be written and holds another one is refused whole,
// with an error for which errors.Is(err, ErrInvalid) holds, and no look-up by another one finds
// anything. Empty slices and maps come back as nil.
//
// What lasts for a while, a lease, the wait before a retry, a claim, is a duration, and the store's
// clock says when it is over: the clocks of several processes differ. A store of one process goes by
// theirs, the Now that comes with the call. One that several share has a clock of its own, and takes
// Now for it only where its tests say so.
//
// Reads of one row that is not there return an error for which errors.Is(err, ErrNotFound) holds.
// Lists are nil then. A store that cannot answer returns an error for which errors.Is(err,
// ErrUnavailable) holds; a context that ended, its error.
type Store interface {
	TaskReader
	TripReader
	DriverReader
	InviteReader
	KeyReader
	EventReader

	// Commit applies cs, all or nothing, and returns what it has given to the rows. See [Changeset].
	// A nil error means that it is durable. When it has returned, cs is the caller's again, who uses its
	// memory for the next: who wants to keep some of it keeps a copy.
	//
	// It returns a *ConflictError when a row is not at the version that cs names or when a unique
	// value is taken; then nothing is changed. When ctx ends during the call, either all of cs is
	// applied or nothing, possibly after the call has returned.
	Commit(ctx context.Context, app AppID, cs *Changeset) (Written, error)

	// RecordFixes keeps b's fixes by [FixBatch.Record], in one atomic step, and moves the driver's
	// last sign of life to b.SeenAt if that is newer, or the one kept lies further ahead than it
	// can. It touches neither the driver's version nor UpdatedAt. No fixes is a sign of life only.
	// It returns the driver as of afterwards, and what became of each fix, in b's order. The memory of
	// b is the caller's again then, as that of a changeset is. When ctx ends during the call, either
	// all of b is kept or nothing, possibly after the call has returned: after an error the caller
	// leaves the fixes as they are.
	// ErrNotFound when there is no such driver, or somebody else than b.Person has the id.
	RecordFixes(ctx context.Context, app AppID, b FixBatch) (Recorded, error)

	// LeaseEvents hands out the undelivered events of one outbox, of any application, oldest
	// subject first, at most l.Limit, and leases the whole queue of each subject they belong to for
	// l.For: no other owner gets an event of that subject from that outbox before that is over, or
	// before FinishEvents ends the lease. The events of a subject come in order of Seq, beginning
	// with its first undelivered one, and none that the outbox has undelivered is left out. A
	// subject whose first undelivered event is to be tried again later (Delivery.RetryIn is not over)
	// is passed over, though what once came due stays so; a subject that another call is at
	// work on at this moment may be, and comes with a later call; and of an application with l.Busy
	// subjects under way already come no more than l.Each allows, so that who has no room for it
	// leases nothing. What it costs depends on what it hands out and on how many applications have
	// something to deliver, and not on how much they have.
	//
	// A lease that has more than l.MaxLease to go, and a retry with more than l.MaxRetry, were made by
	// a clock that was wrong: they count no more.
	//
	// Outboxes know nothing of each other: leases, attempts, retries and what is dead in one are
	// nothing to another.
	LeaseEvents(ctx context.Context, l Lease) ([]Leased, error)

	// FinishEvents says what became of leased events, and ends the owner's lease on each subject
	// named, in the outbox named. A delivery whose lease has meanwhile gone to another owner is
	// ignored, except that Delivered is always noted: the receiver has it. Nothing becomes of an
	// event that never went to that outbox.
	FinishEvents(ctx context.Context, done []Delivery) error

	// Due lists, across applications unless q.App is set, what has come due by q.Before, the
	// longest due first, and after it what is set for later than q.Beyond, unless that is zero; at
	// most q.Limit in all. With q.Driver only that driver's trips count, with q.TrackingID those of
	// that tracking id. With App and one of these it costs its length, however much is due elsewhere.
	// What somebody else has a [Claim] on, by the same Kind, is left out where q.Claim has an owner.
	Due(ctx context.Context, q DueQuery) ([]Due, error)

	// WaitingApps lists the applications that have a task with Waiting set whose Point is known, in
	// order of their ids.
	WaitingApps(ctx context.Context) ([]AppID, error)

	// Waiting lists an application's tasks with Waiting set whose Point is known and that pass f,
	// oldest first (by CreatedAt, then insertion), at most f.Limit.
	Waiting(ctx context.Context, app AppID, f WaitingFilter) ([]Task, error)

	// Matches lists an application's tasks with Waiting set that somebody could get: those for
	// which Offers, asked at their Point, with what they exclude and require, and otherwise by q,
	// would list a driver. It lists at most q.Limit, in any order, not always the same and not
	// always the oldest ones, but none only if there is none, or, where q.Claim has an owner, while
	// somebody else has a [Claim] on one.
	//
	// A Service asks this all the time, so it must cost little where there is little to find: it
	// goes by the drivers on offer, or by what has changed since it was asked last, and not by the
	// number of tasks that wait.
	Matches(ctx context.Context, app AppID, q MatchQuery) ([]Task, error)

	// Stats counts over all applications, for [Service.Stats]. Outboxes are those with an event that is
	// undelivered or dead, by name. It costs what it counts, and not what has long been completed or
	// delivered; where more than a thousand tasks wait, OldestWaiting may be that of the thousand of an
	// application that were created first.
	Stats(ctx context.Context, now time.Time) (Stats, error)

	// Purge removes at most b.Limit rows that are older than b says: fixes by their time, events
	// that are delivered or dead in every outbox and all notices by RecordedAt, requests and
	// invites that are long over. What is undelivered in an outbox stays. It never changes which of
	// the remaining fixes are good. A driver's position goes with its fix: see Position.Purged.
	// Before these, and whatever b says, it removes what drivers have left who were deleted.
	//
	// Of its own files it removes those put before b.Files that the task they were put for, of
	// their application, does not name in its Proofs. One that a Purge has found named stays until
	// it is put anew, whatever becomes of the task.
	Purge(ctx context.Context, b Before) (Purged, error)

	// Files is where the store keeps the bytes of proofs; nil when it keeps none. They are none of
	// the rows of a Changeset: what is put is there at once.
	Files() Files

	// Secret returns the store's own random secret of 32 bytes, made when first asked for and the
	// same ever after.
	Secret(ctx context.Context) ([]byte, error)

	// Memo returns what was last kept under a name, nil when nothing was. It is of no application.
	Memo(ctx context.Context, name string) ([]byte, error)

	// SetMemo keeps a small value under a name, instead of the former one.
	SetMemo(ctx context.Context, name string, value []byte) error

	// Rows reads rows as they are kept, with their hashes: first those that are of no application,
	// then those of each application, in the order of [RowKinds]; see there for the order within a
	// kind. All are of one moment where the store can do so without holding up who writes; else its
	// package says what they are. However many there are, it keeps few of them in memory. Where it
	// fails, the last pair has the error.
	Rows(ctx context.Context, q RowQuery) iter.Seq2[Row, error]

	// Restore writes rows as they were read, in one atomic step, and no event. See [Restoring]. It
	// is a *ConflictError when a row is there already, or a unique value of it is taken.
	Restore(ctx context.Context, r Restoring) error

	// Close releases what the store itself has opened, and nothing that it was given, such as a pool
	// of connections. Calls after it return ErrUnavailable.
	Close() error
}

// A Watcher is a [Store] that several processes share and that tells each of them what the others
// have changed, so that it need not wait for its next look. [Service.Run] watches where the store is
// one.
type Watcher interface {
	// Watch calls changed for what other processes have committed, and whom they have recorded fixes
	// of, until ctx ends or it fails; then it is called again. All of it is a hint: it may come late,
	// twice or not at all, and name too much: the zero Subject stands for anything of the
	// application, and with the application "" for anything. A Commit is told of at most once, and
	// a sign of life without a fix never. Changed may be called from any goroutine, and returns at
	// once.
	Watch(ctx context.Context, changed func(app AppID, subject Subject)) error
}

// An Eraser is a [Store] that may keep bytes of what its rows do not hold any more, and takes these
// out of its files too when somebody is erased.
type Eraser interface {
	// Erased is called at the end of [Service.EraseContact], also when no row had the number any
	// more: an edit may have replaced it before. When it returns the store has it on record, and will
	// do it by itself.
	Erased(ctx context.Context) error
}

// A Limiter is a [Store] that several processes share and that counts for all of them what there may
// be only so much of: the wrong codes of [Service.Join] and the notes of a link. With a store that is
// none each process counts what it sees itself.
type Limiter interface {
	// Limit replaces the small value under a name by what count makes of it, all in one step, and
	// forgets it once keep has passed by the store's clock. Count is given nil where there is none;
	// nil that it returns leaves none. It may be called several times, until what it was given is
	// what is replaced.
	Limit(ctx context.Context, name string, keep time.Duration, count func(value []byte) []byte) error
}

// A Transactor is a [Store] that can write in a transaction of the embedder's, who has it in the same
// database.
type Transactor interface {
	// Within is the store as it is in tx. It is ErrInvalid if tx is none of its own.
	Within(tx Tx) (TxStore, error)
}

// A Tx is a transaction of the embedder's, as the package of the store makes one, such as
// store/postgres by its In and InSQL.
type Tx interface {
	// Unwrap returns the transaction itself.
	Unwrap() any
}

// A TxStore is a [Store] within a transaction of the embedder's. What it reads and commits is read
// and written there: readers, Due without a claim, and Commit are asked for, by one goroutine. Secret
// is none of the transaction.
//
// A Commit that fails leaves nothing, no lock either, and the transaction as usable as it was; it
// does not run twice. Nobody waits for its rows in the meantime but who wants to change the same
// ones, or to insert the same unique value.
type TxStore interface {
	Store

	// AfterCommit has f called by any goroutine, soon after the transaction was committed, if a
	// Commit was made in it. After its rollback f is never called; when the process or the database
	// goes down meanwhile it may not be. It may be called though a savepoint was rolled back to that
	// was set before. F returns at once.
	AfterCommit(f func())
}

// A Changeset is one change of state: rows and the events they cause, applied all or nothing by
// [Store.Commit].
//
// A row whose Version is 0 is inserted, and gets the next Seq and a version above 0 that is greater
// than any that a row of its id has had, however long that one is gone: who has read the former row
// cannot replace the new one. An id that exists is a conflict. Any other row replaces the row that
// has exactly that version, which becomes Version + 1; Seq and CreatedAt stay as they were. A
// Changeset holds a row at most once. Updates apply before inserts, so that one Changeset can end a
// trip and start another with the same tracking id.
//
// Unique, else a *ConflictError with Unique set: the idempotency key among an application's tasks
// ("key"), the tracking id among an application's active trips ("tracking_id"), the hash of an API
// key ("hash"), and a code over the whole store ("code"): at the CreatedAt of an invite that is
// given a CodeHash, no other invite whose CodeExpiresAt is later may have it.
//
// Invites, requests and fixes belong to a driver: without that row (after the inserts of this
// Changeset), and fixes when it is another [FixBatch].Person's, they are a conflict on that driver.
type Changeset struct {
	// Tasks are inserted, or replaced.
	Tasks []Task

	// Trips are inserted, or replaced.
	Trips []Trip

	// Drivers are inserted, or replaced. The Position inside is ignored; positions come from fixes
	// only.
	Drivers []Driver

	// DeleteTasks and DeleteTrips remove the tasks and trips at exactly these versions, with what
	// they are found by and the events that are about them, whatever has become of their delivery,
	// and the notices that these have told. A notice that is gone counts as purged. Should a row
	// of that id come again, its events count from 1. It is done before all else, so that what was
	// unique of them is free.
	DeleteTasks []Task
	DeleteTrips []Trip

	// DropFiles removes these of the store's own [Files]; one that is not there is ignored.
	DropFiles []string

	// DeleteDrivers removes the drivers at exactly these versions with their invites, requests,
	// notices, position and fixes. Tasks, trips and events stay. All of it is gone for every reader
	// at once, also when the id is used again. What there may be much of, fixes and notices, a
	// store may take away later, in Purge, so that nobody waits for it.
	DeleteDrivers []Driver

	// Invites are one a driver: Version 0 replaces whatever was there, and goes on from its
	// version.
	Invites []Invite

	// Keys are API keys.
	Keys []Key

	// Push are requests to start a trip, one a driver and tracking id: each replaces what was
	// there.
	Requests []Request

	// CloseRequests removes requests; one that is not there is ignored. Without a driver it is those
	// of whichever drivers for the trip.
	CloseRequests []RequestID

	// Fixes are recorded by the rule of RecordFixes, in the same step.
	Fixes []FixBatch

	// Events are appended in this order. The store gives each its Seq: 1, 2, 3 … for its subject,
	// without gaps, also after a purge; and each of its Notices the next ID of its driver's feed,
	// which is greater than any that a driver of that id has had. Notices for a driver without a
	// row are dropped.
	Events []Event

	// Deliver names the outboxes that the events go to, each once, for LeaseEvents. With none they
	// count as delivered. An outbox needs no making: its name is any text, also "".
	Deliver []string
}

// Written is what a Commit has given to its rows, in the order in which the Changeset has them.
type Written struct {
	Tasks, Trips, Drivers []Given
}

// Given is the Seq and the Version of a row as it has been written.
type Given struct {
	Seq, Version int64
}

// ConflictError says which row had moved, or which unique value is taken, when Commit refused a
// Changeset. The caller reads again and decides again. One without Kind names nothing: others were
// at work on the same rows, and nothing else is wrong.
type ConflictError struct {
	Kind   SubjectKind // task, trip, driver, invite, key; "" for a passing clash
	ID     string      // "" where Unique says it all
	Unique string      // "", or the unique value that is taken: key, tracking_id, code, hash
}

func (e *ConflictError) Error() string {
	switch {
	case e.Kind == "":
		return "others were at work on the same rows"
	case e.Unique != "":
		return fmt.Sprintf("%s: the %s is taken", e.Kind, e.Unique)
	}
	return fmt.Sprintf("%s has changed meanwhile", e.Kind)
}

// Is makes errors.Is(err, ErrConflict) hold.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// RowKind is a kind of rows, as [Store.Rows] reads them.
type RowKind string

const (
	RowSecret      RowKind = "secret"      // [StoreSecret], of no application
	RowMemo        RowKind = "memo"        // [Memo], of no application; by name
	RowApplication RowKind = "application" // [Marks], one of each application
	RowDriver      RowKind = "driver"      // [DriverRow], by CreatedAt and Seq
	RowInvite      RowKind = "invite"      // [Invite], in the order of their drivers
	RowRequest     RowKind = "request"     // [Request], in that order, and by TrackingID
	RowKey         RowKind = "key"         // [Key], by ID
	RowTask        RowKind = "task"        // [Task], by CreatedAt and Seq
	RowTrip        RowKind = "trip"        // [Trip], by CreatedAt and Seq
	RowFix         RowKind = "fix"         // [FixRow], in the order of their drivers, and by time
	RowNotice      RowKind = "notice"      // [Notice], in the order of their drivers, and by ID
	RowSubject     RowKind = "subject"     // [SubjectRow], in any order
	RowEvent       RowKind = "event"       // [EventRow], in the order of [EventReader].Events
	RowFile        RowKind = "file"        // [FileRow], by ID
)

// RowKinds are all kinds, in the order in which rows are read and written: what belongs to a row
// comes after it.
var RowKinds = []RowKind{
	RowSecret, RowMemo, RowApplication, RowDriver, RowInvite, RowRequest, RowKey, RowTask, RowTrip, RowFix, RowNotice,
	RowSubject, RowEvent, RowFile,
}

// RowQuery picks rows.
type RowQuery struct {
	App    AppID     // "": those of all applications, and those of none
	Driver DriverID  // with App: of [DriverRow], [Invite], [Request], [FixRow] and [Notice] only this driver's
	Kinds  []RowKind // nil: all
}

// Wants reports whether rows of a kind are among those that are picked.
func (q RowQuery) Wants(kind RowKind) bool {
	if q.App != "" && (kind == RowSecret || kind == RowMemo) {
		return false
	}
	return q.Kinds == nil || slices.Contains(q.Kinds, kind)
}

// Row is a row as a store keeps it.
type Row struct {
	App   AppID // "" for what is of none
	Value RowValue
}

// Kind is what kind of row it is.
func (r Row) Kind() RowKind { return r.Value.rowKind() }

// RowValue is the row itself: one of the types that the constants of [RowKind] name.
type RowValue interface{ rowKind() RowKind }

type (
	// StoreSecret is what [Store].Secret returns. There is none before it is asked for.
	StoreSecret struct{ Value Hash }

	// Memo is what [Store].SetMemo has kept.
	Memo struct {
		Name  string
		Value Secret
	}

	// Marks are what is left of an application's rows that are gone: none had a greater version, and
	// no notice of a driver who is gone a greater ID.
	Marks struct{ Version, Notice int64 }

	// DriverRow is a driver, with his Position, and the greatest IDs of notices that his feed was
	// given, and that were purged from it.
	DriverRow struct {
		Driver
		LastNotice, PurgedNotice int64
	}

	// FixRow is a fix of a driver, also one that is left out.
	FixRow struct {
		DriverID DriverID
		KeptFix
	}

	// SubjectRow is the Seq of a subject's last event, where no event that is there says it.
	SubjectRow struct {
		Subject
		Seq int64
	}

	// EventRow is an event, and its deliveries that are not made, by outbox.
	EventRow struct {
		Event
		Deliveries []DeliveryRow
	}

	// FileRow is a file of the store's own [Files].
	FileRow struct {
		ID string
		File
		Named bool // a Purge has found it named by its task: it stays
	}
)

// DeliveryRow is what an outbox has not delivered. Nobody has a lease on it.
type DeliveryRow struct {
	Outbox   string
	Dead     bool // given up
	Attempts int
	RetryAt  time.Time // by the store's clock; zero: at once, or it is dead
}

func (StoreSecret) rowKind() RowKind { return RowSecret }
func (Memo) rowKind() RowKind        { return RowMemo }
func (Marks) rowKind() RowKind       { return RowApplication }
func (DriverRow) rowKind() RowKind   { return RowDriver }
func (Invite) rowKind() RowKind      { return RowInvite }
func (Request) rowKind() RowKind     { return RowRequest }
func (Key) rowKind() RowKind         { return RowKey }
func (Task) rowKind() RowKind        { return RowTask }
func (Trip) rowKind() RowKind        { return RowTrip }
func (FixRow) rowKind() RowKind      { return RowFix }
func (Notice) rowKind() RowKind      { return RowNotice }
func (SubjectRow) rowKind() RowKind  { return RowSubject }
func (EventRow) rowKind() RowKind    { return RowEvent }
func (FileRow) rowKind() RowKind     { return RowFile }

// Restoring is rows for [Store.Restore], in the order in which [Store.Rows] has read them, though
// maybe not all. Each is inserted as it is: its version, the Seq of an event, the ID of a notice and
// the marks stay. The Seq of tasks, trips and drivers is given anew, in their order. Marks and
// counters are raised only. The secret replaces what is there; a memo that is there with another
// value is a *ConflictError, with the same one it stays.
//
// An invite, a request, a fix or a notice is of a driver who is there, or among the rows; the fixes of
// one are later than those that are there.
type Restoring struct {
	Rows []Row

	// Memo is the name of a memo that must have the value Was, nil for none, and has the value Is
	// afterwards; else it is a *ConflictError and nothing is changed. So it can be told how far a
	// long restoring has come. "" for none.
	Memo    string
	Was, Is []byte
}

// DueKind is a kind of thing that comes due.
type DueKind int

const (
	DueTrips    DueKind = iota + 1 // active trips whose TTL is at or before Before
	DueGeocodes                    // tasks and trips whose GeocodeAt is set and at or before Before
	// drivers, Available and not Silent, whose last sign of life and DutyAt are both at or before
	// Before; and, after all of these, maybe others who are Available and not Silent: too many, and
	// never too few, so that the caller looks at the row
	DueSilence
	DueTasks // tasks whose DueAt is set and at or before Before
	// tasks that say something of a person ([Task.Personal]), and whose CompletedAt is set and at or
	// before Before
	DueContacts
	DueDeletions // tasks whose CompletedAt is set and at or before Before
)

// DueQuery asks for what has come due.
type DueQuery struct {
	Kind   DueKind
	App    AppID    // "" for all
	Driver DriverID // for DueTrips of an App; "" for all
	// for DueTrips of an App; "" for all
	TrackingID TrackingID
	Before     time.Time
	Beyond     time.Time // the latest moment that a clock which is right can have set; zero: any
	Claim      Claim
	Limit      int
}

// Claim keeps what a sweep hands out from other sweeps for a while, so that several processes do
// not all do the same work: what one owner was given is given to no other who names himself before
// the claim is over. The owner is given it again, with a new claim; who names no owner is given
// everything, and claims nothing. A claim that has more than For to go was made by a clock that was
// wrong, and counts no more.
//
// It spares work and guards nothing: a store may lose it, and one of a single process keeps it in
// memory.
type Claim struct {
	Owner string    // "": none
	Now   time.Time // for a store that has no clock of its own
	For   time.Duration
}

// Due names a row that has come due.
type Due struct {
	App     AppID
	Subject Subject
}

// Before says what Purge may remove. A zero time removes nothing of that kind.
type Before struct {
	Fixes  time.Time
	Events time.Time
	Files  time.Time
	Limit  int
}

// Purged counts what a Purge removed. Tasks, and those from which Contacts were erased, are the
// Service's.
type Purged struct {
	Fixes, Events, Notices, Requests, Invites, Files int

	Tasks, Contacts int
}

// Total is the number of rows removed.
func (p Purged) Total() int {
	return p.Fixes + p.Events + p.Notices + p.Requests + p.Invites + p.Files + p.Tasks + p.Contacts
}

// Lease asks for events to deliver.
type Lease struct {
	Outbox string
	Owner  string
	Now    time.Time // for a store that has no clock of its own
	For    time.Duration

	MaxLease time.Duration // the longest that a lease made by a clock that is right can have to go; 0: any
	MaxRetry time.Duration // the longest that a retry can; 0: any

	Each int           // subjects of one application under way at once, at most; 0: any number
	Busy map[AppID]int // those under way already

	Limit int // events
}

// Leased is an event to deliver.
type Leased struct {
	Outbox  string
	App     AppID
	Event   Event
	Attempt int // 1 for the first
}

// DeliveryState is what became of a delivery.
type DeliveryState string

const (
	DeliveryDone  DeliveryState = "delivered"
	DeliveryRetry DeliveryState = "retry" // try again in RetryIn; counts as an attempt
	DeliveryDead  DeliveryState = "dead"  // given up; the outbox's next event of the subject is free to go
	// not tried; RetryIn is ignored and no attempt counted. A dead event given back like this is
	// tried anew from attempt 1, whoever owns a lease
	DeliveryReleased DeliveryState = "released"
)

// Delivery says what became of one leased event.
type Delivery struct {
	Outbox  string
	App     AppID
	EventID string
	Owner   string
	State   DeliveryState
	Now     time.Time     // for a store that has no clock of its own
	RetryIn time.Duration // by its clock
}

// Stats are numbers to watch, over all applications.
type Stats struct {
	Created, Assigned, InProgress int // tasks that are not completed, by state

	Waiting       int       // tasks that a driver is looked for at present
	OldestWaiting time.Time // since when that is so of the one that waits longest ([Waits].Since); zero: none waits
	Late          int       // tasks; see [Task.Late]

	OnDuty, Silent int // drivers who are available; those of them who are silent

	Outboxes []OutboxStats // of the service's Notifiers, and of others that hold something; in order of their names

	Queue int // writes that wait for their turn in this process; always 0 where a store keeps nobody waiting
}

// Open is the number of tasks that are not completed.
func (n Stats) Open() int { return n.Created + n.Assigned + n.InProgress }

// OutboxStats are numbers of one outbox.
type OutboxStats struct {
	Name        string    // as in Options.Notifiers; "" is that of Options.Notifier
	Undelivered int       // events that are to be delivered, tried before or not
	Oldest      time.Time // when the one that waits longest was recorded; zero: none waits
	Dead        int       // events whose delivery was given up
}

// Service is the delivery-tracking service of one application over a [Store]. It is safe for
// concurrent use.
//
// Its methods return *[Error]; the doc of each names the codes that are its own. Besides them every
// method may return ErrUnavailable (the store cannot answer, or ctx ended: a change may or may not
// have happened, and asking again is safe) and ErrInternal.
type Service struct {
	*core
	store Store   // the core's, or what it is within a transaction of the embedder's
	tx    TxStore // the latter; nil: none
	app   AppID
	alone bool // ForApp has named app: what is of others or of none is none of its business
	actor string
	self  driverSelf // whom [Service.AsDriver] has named
	runs  bool       // for Run, which claims what it sweeps

	expects int64 // the version that what is changed has to have; 0: any
}

// driverSelf is who has an id. Copies of a Service are made for every call, and a Driver is large.
type driverSelf struct {
	id     DriverID
	person string
}

// core is what all scoped copies of a Service share.
type core struct {
	store   Store
	opts    Options
	owner   string // of claims, and with a number, of leases
	leases  atomic.Int64
	ids     idSource
	locks   nameLocks
	coming  reservations
	held    heldTasks
	hub     hub
	guard   codeGuard
	notes   noteGuard
	sweeps  sweeps // of trips
	marking sweeps // of tasks
	runner  runner
	ears    ears
	etas    etas
	paths   pathCache
	ways    approaches
	finding findGuard
	secret  atomic.Pointer[secret]
	links   madeLinks

	waiting chan struct{} // there may be a driver for a waiting task
	serving chan struct{} // holds one while waiting tasks are served

	outboxes []*outbox // in order of their names
	deliver  []string  // their names
}

// outbox is what one Notifier is told by.
type outbox struct {
	name     string
	notifier Notifier
	wake     chan struct{} // there is an event to deliver
}

// outboxes makes one for each Notifier.
func (o *Options) outboxes() (list []*outbox) {
	all := map[string]Notifier{}
	maps.Copy(all, o.Notifiers)
	if o.Notifier != nil {
		all[""] = o.Notifier
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, &outbox{name, all[name], make(chan struct{}, 1)})
	}
	return list
}

// New makes a Service over store. Nil options work. It starts nothing: see [Service.Run].
func New(store Store, opts *Options) (*Service, error) {
	if store == nil {
		return nil, errors.New("tracking: New needs a Store, for instance memory.New()")
	}
	if opts == nil {
		opts = &Options{}
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &core{
		store: store, opts: o, waiting: make(chan struct{}, 1), serving: make(chan struct{}, 1),
		outboxes: o.outboxes(),
	}
	for _, b := range c.outboxes {
		c.deliver = append(c.deliver, b.name)
	}
	c.ids.rand = o.Rand
	c.ears.since = c.now()
	c.locks.of = map[appSubject]*nameLock{}
	c.coming.count = map[appDriver]int{}
	c.hub.init()
	c.guard.sources = map[string]*codeSource{}
	c.etas.of = map[etaKey]lastETA{}
	c.paths.of = map[appTrip]drivenPath{}
	c.ways.of = map[appDriver]*approach{}
	c.owner = c.ids.token(12)
	if o.Secret != nil {
		c.secret.Store(&secret{key: o.Secret})
	}
	return &Service{core: c, store: store, app: DefaultApp, actor: "system"}, nil
}

// ForApp returns a copy of s that works for another application; "" means [DefaultApp]. It shares
// everything else, as [log/slog.Logger.With] does.
func (s *Service) ForApp(app AppID) *Service {
	c := *s
	if c.app = cmp.Or(app, DefaultApp); c.app != s.app {
		c.self = driverSelf{}
	}
	c.alone = true
	return &c
}

// As returns a copy of s whose events name this actor, for instance "user:42".
func (s *Service) As(actor string) *Service { c := *s; c.actor = actor; return &c }

// IfVersion returns a copy of s for one change of a task or a driver, which is done only if that has
// this Version; else it is ErrConflict, so that of two people who change the same at once the second
// one sees first what the first one did. 0 is any version. What is repeated with the version from
// before is a conflict too.
func (s *Service) IfVersion(version int64) *Service { c := *s; c.expects = version; return &c }

// expected checks what the verb changes against the version that its caller knows.
func (s *Service) expected(version int64) error {
	if s.expects == 0 || s.expects == version {
		return nil
	}
	return &Error{
		Code: ErrConflict, Field: "version", Message: "It has been changed meanwhile: the version is another one now.",
	}
}

// AsDriver returns a copy of s that acts for this driver, who was read before, for instance by
// [Service.DriverByToken]. Its events name him, and as soon as somebody else has his id, whatever
// he does is ErrNotFound: a call that was on its way when he was erased does nothing to the next
// one.
func (s *Service) AsDriver(d Driver) *Service {
	c := *s
	c.actor, c.self = driverActor(d.ID), driverSelf{d.ID, d.Person}
	return &c
}

// person is who a driver must be, as far as s knows; "" for whoever has the id.
func (s *Service) person(id DriverID) string {
	if id != s.self.id {
		return ""
	}
	return s.self.person
}

// TxService does what a [Service] does, in a transaction of the embedder's; see [Service.Within]. Like
// the transaction it is for one goroutine at a time.
type TxService struct {
	s   *Service
	err error // why it can do nothing
}

// Within returns what works in a transaction of yours:
//
//	tx, err := pool.Begin(ctx)
//	…                                                  // the order, in tables of your own
//	within := svc.Within(postgres.In(tx))              // or postgres.InSQL, of a *sql.Tx
//	task, err := within.CreateTask(ctx, n)
//	token, err := within.TaskLink(ctx, task.ID)
//	err = tx.Commit(ctx)
//
// Its methods are those of the Service, and see what the transaction sees. A new task waits, also
// where there is a driver for it: it goes to one after the commit, by [Service.Run]. What is changed
// is not to be changed by others until then, who wait: so keep the transaction short where a task, or
// a driver who is there already, is changed. What is created is in nobody's way.
//
// What others have changed at the same time is ErrConflict: begin the transaction anew. It is also
// ErrConflict when the transaction has ended or failed, and ErrInvalid when the store is no
// [Transactor] or tx none of its own.
func (s *Service) Within(tx Tx) *TxService {
	c := *s
	t := &TxService{s: &c}
	in, ok := s.store.(Transactor)
	switch {
	case !ok:
		t.err = &Error{
			Code: ErrInvalid, Field: "tx",
			Message: "The store cannot write in a transaction of yours; the one of package store/postgres can.",
		}
	case tx == nil:
		t.err = invalid("tx", "is required.")
	default:
		c.tx, t.err = in.Within(tx)
		c.store = c.tx
	}
	return t
}

// CreateTask is [Service.CreateTask]. With AutoAssign the task waits.
func (t *TxService) CreateTask(ctx context.Context, n NewTask) (Task, error) {
	return inTx(ctx, t, func() (Task, error) { return t.s.CreateTask(ctx, n) })
}

// CreateTasks is [Service.CreateTasks]: each is created or not, and those that are, are there with
// your commit.
func (t *TxService) CreateTasks(ctx context.Context, list []NewTask) ([]TaskResult, error) {
	return inTx(ctx, t, func() ([]TaskResult, error) { return t.s.CreateTasks(ctx, list) })
}

// UpdateTask is [Service.UpdateTask].
func (t *TxService) UpdateTask(ctx context.Context, id TaskID, u TaskUpdate) (Task, error) {
	return inTx(ctx, t, func() (Task, error) { return t.s.UpdateTask(ctx, id, u) })
}

// CancelTask is [Service.CancelTask].
func (t *TxService) CancelTask(ctx context.Context, id TaskID, why Reason) (Task, error) {
	return inTx(ctx, t, func() (Task, error) { return t.s.CancelTask(ctx, id, why) })
}

// TaskLink is [Service.TaskLink]. The token works after your commit.
func (t *TxService) TaskLink(ctx context.Context, id TaskID) (token string, err error) {
	return inTx(ctx, t, func() (string, error) { return t.s.TaskLink(ctx, id) })
}

// SaveDriver is [Service.SaveDriver].
func (t *TxService) SaveDriver(ctx context.Context, n DriverUpdate) (Driver, error) {
	return inTx(ctx, t, func() (Driver, error) { return t.s.SaveDriver(ctx, n) })
}

// InviteDriver is [Service.InviteDriver]. The link and the code work after your commit.
func (t *TxService) InviteDriver(ctx context.Context, n NewInvite) (Invitation, error) {
	return inTx(ctx, t, func() (Invitation, error) { return t.s.InviteDriver(ctx, n) })
}

// RequestTrip is [Service.RequestTrip].
func (t *TxService) RequestTrip(ctx context.Context, n NewRequest) error {
	_, err := inTx(ctx, t, func() (struct{}, error) { return struct{}{}, t.s.RequestTrip(ctx, n) })
	return err
}

// inTx does a verb in the transaction. The secret is read there before, as who has given all
// connections of his pool to transactions has none left to read it by.
func inTx[T any](ctx context.Context, t *TxService, verb func() (T, error)) (none T, err error) {
	if t.err == nil && t.s.secret.Load() == nil {
		made, err := t.s.store.Secret(ctx)
		if err != nil {
			return none, t.s.failure(ctx, "Secret", err)
		}
		t.s.secret.Store(&secret{key: made})
	}
	if t.err != nil {
		return none, t.err
	}
	return verb()
}

// then does f when what is written is there for all: now, or after the embedder's commit.
func (s *Service) then(f func()) {
	if s.tx == nil {
		f()
	} else {
		s.tx.AfterCommit(f)
	}
}

// App is the application s works for.
func (s *Service) App() AppID { return s.app }

// Options returns the options in force, defaults filled in, without the secret.
func (s *Service) Options() Options {
	o := s.opts
	o.Secret, o.RetryWaits, o.Notifiers = nil, slices.Clone(o.RetryWaits), maps.Clone(o.Notifiers)
	o.Reasons = slices.Clone(o.Reasons)
	return o
}

// Close ends every [Service.Follow], so that servers can shut down. To shut down: Close,
// http.Server.Shutdown, end the context of [Service.Run] and wait for it, and close the store,
// which Close leaves open.
func (s *Service) Close(context.Context) error { s.hub.close(); return nil }

// Wakeups returns a channel that gets a value, at some time after, when one of the subjects may
// have changed in this process, or in another where the store is a [Watcher] and Run is running; for
// a driver also after a move or a notice. It is a hint for who would else poll: read again, and poll slowly as a net under it. Call stop when done. Done is
// closed when the Service is closed.
func (s *Service) Wakeups(subjects ...Subject) (wake <-chan struct{}, done <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	s.hub.subscribe(c, s.app, subjects...)
	return c, s.hub.closed, func() { s.hub.unsubscribe(c, s.app, subjects...) }
}

// Events lists an application's events in one order, in which a new one never comes before what
// was listed already, each subject's by Seq, and tells whether there are further ones. Limit is at most 1000; 0 means 100. Codes: ErrInvalid; ErrNotFound when f.After is no event
// that is still kept.
func (s *Service) Events(ctx context.Context, f EventFilter) (list []Event, more bool, err error) {
	defer s.observe(&ctx, "Events").end(&err)
	if f.Limit < 0 || f.Limit > 1000 {
		return nil, false, invalid("limit", "must be from 1 to 1000.")
	}
	defaultTo(&f.Limit, 100)
	if f.After != "" && !lookup(f.After) {
		return nil, false, notFound("after", "event")
	}
	if f.Subject != (Subject{}) && !lookup(f.Subject.ID) {
		return nil, false, nil
	}
	err = s.op(ctx, "Events", func(time.Time) (err error) {
		list, more, err = s.store.Events(ctx, s.app, f)
		return orNotFound(err, "after", "event")
	})
	return list, more, err
}

// Stats counts what whoever runs the service watches, over all applications of the store, as Run
// works for all of them; what one application has is told by [Service.TaskCounts]. It costs what it
// counts, and can be asked for every few seconds.
func (s *Service) Stats(ctx context.Context) (n Stats, err error) {
	defer s.observe(&ctx, "Stats").end(&err)
	err = s.op(ctx, "Stats", func(now time.Time) (err error) {
		n, err = s.store.Stats(ctx, now)
		n.OldestWaiting = earlier(n.OldestWaiting, now)
		for i, o := range n.Outboxes {
			n.Outboxes[i].Oldest = earlier(o.Oldest, now)
		}
		return err
	})
	if err != nil {
		return Stats{}, err
	}
	byName := func(o OutboxStats, name string) int { return strings.Compare(o.Name, name) }
	for _, name := range s.deliver {
		if i, there := slices.BinarySearchFunc(n.Outboxes, name, byName); !there {
			n.Outboxes = slices.Insert(n.Outboxes, i, OutboxStats{Name: name})
		}
	}
	return n, nil
}

// Replay gives events whose delivery from this outbox was given up back to be delivered anew from
// there; "" is that of Options.Notifier, and any other that of the same name in Options.Notifiers.
// An event that is not dead there is left as it is.
func (s *Service) Replay(ctx context.Context, outbox string, ids ...string) (err error) {
	defer s.observe(&ctx, "Replay").end(&err)
	back := make([]Delivery, 0, len(ids))
	for _, id := range ids {
		back = append(back, Delivery{Outbox: outbox, App: s.app, EventID: id, State: DeliveryReleased})
	}
	err = s.op(ctx, "Replay", func(time.Time) error { return s.store.FinishEvents(ctx, back) })
	if err != nil {
		return err
	}
	for _, b := range s.outboxes {
		if b.name == outbox {
			signal(b.wake)
		}
	}
	return nil
}

// observed is an operation on its way, for Options.Observe.
type observed struct{ over func(ErrorCode) }

// observe begins every operation:
//
//	defer s.observe(&ctx, "CreateTask").end(&err)
func (s *Service) observe(ctx *context.Context, op string) (o observed) {
	if s.opts.Observe != nil {
		*ctx, o.over = s.opts.Observe(*ctx, op)
	}
	return o
}

// end tells of the operation's end, also where that is a panic.
func (o observed) end(err *error) {
	if o.over == nil {
		return
	}
	if p := recover(); p != nil {
		o.over(ErrInternal)
		panic(p)
	}
	o.over(codeOf(*err))
}

// codeOf is the code of an error; "" of none.
func codeOf(err error) ErrorCode {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ErrUnavailable
	}
	return ErrInternal
}

// op runs what one operation reads and writes. attempt decides on what it reads and commits; it is run
// anew, with a new now, as long as somebody else was faster.
func (s *Service) op(ctx context.Context, name string, attempt func(now time.Time) error) error {
	for n := 0; ; n++ {
		err := ctx.Err()
		now := s.now()
		if err == nil {
			err = attempt(now)
		}
		if err == nil {
			if s.tx == nil {
				s.remindOfRun(ctx, now)
			}
			return nil
		}
		var moved *ConflictError
		if !errors.As(err, &moved) || s.tx != nil && (moved.Unique == "" || n == looksWithin) {
			return s.failure(ctx, name, err)
		}
		if n > 0 { // the first time the other one has just finished
			wait := time.Duration(rand.Int64N(int64(min(time.Millisecond<<min(n, 6), 50*time.Millisecond))))
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	}
}

// looksWithin is how often it is looked again, in a transaction of the embedder's, whose a unique
// value is: the key of a task is that of one which is there by then, and another code is drawn. Any
// other conflict is for who can begin the transaction anew.
const looksWithin = 3

// failure is what the caller gets to see of err.
func (s *Service) failure(ctx context.Context, name string, err error) error {
	var e *Error
	var moved *ConflictError
	switch {
	case errors.As(err, &e):
		return err
	case errors.As(err, &moved):
		return &Error{
			Code: ErrConflict, Err: err,
			Message: "Others have changed the same meanwhile. Begin the transaction anew.",
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: ErrUnavailable, Message: "The call was ended before it was answered.", Err: err}
	case errors.Is(err, ErrNotFound):
		return &Error{Code: ErrNotFound, Message: "There is no such thing.", Err: err}
	case errors.Is(err, ErrUnavailable):
		if s.tx == nil {
			s.ears.close()
		}
		s.opts.Logger.ErrorContext(ctx, "store unavailable", "op", name, "err", err)
		return &Error{
			Code: ErrUnavailable, Message: "The store cannot answer now; try again.", RetryAfter: time.Second,
			Err: err,
		}
	}
	s.opts.Logger.ErrorContext(ctx, "operation failed", "op", name, "err", err)
	return &Error{Code: ErrInternal, Message: "Something went wrong on our side.", Err: err}
}

func notFound(field, what string) error {
	return &Error{Code: ErrNotFound, Field: field, Message: "There is no such " + what + "."}
}

func conflict(message string) error { return &Error{Code: ErrConflict, Message: message} }

func invalid(field, message string) error {
	return &Error{Code: ErrInvalid, Field: field, Message: field + " " + message}
}

// orNotFound turns the store's ErrNotFound into one that names the field.
func orNotFound(err error, field, what string) error {
	if errors.Is(err, ErrNotFound) {
		return notFound(field, what)
	}
	return err
}

// verb is an operation that changes something: its name, and who it is done by.
type verb struct {
	name   string
	driver DriverID  // at whose word; "": at the application's
	actor  string    // for the events; "": the driver, or else what the Service says
	locks  []Subject // held meanwhile
}

// change is one attempt at a verb. What is put in is written in one step when the attempt has
// succeeded; if nothing was put in, nothing is written.
type change struct {
	*Service
	cs     Changeset
	now    time.Time           // of this attempt
	actor  string              // of the events
	known  map[DriverID]string // the persons of the drivers whom the verb names, as they were first read
	serves bool                // afterwards there may be a driver for a waiting task
	kept   []func()            // what is told of rows when they are written
	after  []func()            // what is to be let go of when it is over
}

// event puts in an event, of what happened at at. Person is the driver's whom the subject or
// data.driver_id names.
func (c *change) event(subject Subject, person string, at time.Time, data EventData) {
	n := len(c.cs.Events)
	c.cs.Events = slices.Grow(c.cs.Events, 1)[:n+1]
	e := &c.cs.Events[n]
	*e = Event{
		ID: c.ids.next(c.now), Type: data.eventType(), Time: at, RecordedAt: c.now, Actor: c.actor, Subject: subject,
		Person: person, Data: words(data, e.Data), Notices: e.Notices, // none, of the room
	}
}

// tell has a driver told of the event that was put in last.
func (c *change) tell(n Notice) {
	e := &c.cs.Events[len(c.cs.Events)-1]
	e.Notices = append(e.Notices, n)
}

// heard puts in a sign of life of a driver, with fixes or without.
func (c *change) heard(driver DriverID, fixes ...Fix) {
	b := c.batch(driver, c.now, fixes...)
	b.Person = cmp.Or(b.Person, c.known[driver])
	c.cs.Fixes = append(c.cs.Fixes, b)
}

// named reads a driver whom the verb names. In every attempt that is the person of the first: who
// is given the id meanwhile is somebody else.
func (c *change) named(ctx context.Context, id DriverID) (Driver, error) {
	d, err := c.driver(ctx, id)
	if err == nil && !c.means(id, d.Person) {
		return Driver{}, notFound("driver_id", "driver")
	}
	return d, err
}

// means reports whether the driver of that id whom the verb names is this person. The first who is
// asked about is.
func (c *change) means(id DriverID, person string) bool {
	first, asked := c.known[id]
	if !asked {
		if c.known == nil { // most name none
			c.known = map[DriverID]string{}
		}
		c.known[id] = person
	}
	return !asked || first == person
}

// empty reports whether nothing was put in.
func (c *change) empty() bool { return c.cs.rows() == 0 }

// ofDrivers reports whether it changes drivers alone, each at the version that was looked at, or
// nothing.
func (c *change) ofDrivers() bool {
	others := func(e Event) bool { return e.Subject.Kind != KindDriver }
	return len(c.cs.Drivers)+len(c.cs.Events) == c.cs.rows() && !slices.ContainsFunc(c.cs.Events, others)
}

// rows is how much it changes.
func (cs *Changeset) rows() int {
	return len(cs.Tasks) + len(cs.Trips) + len(cs.Drivers) + len(cs.DeleteDrivers) + len(cs.Invites) + len(cs.Keys) +
		len(cs.DeleteTasks) + len(cs.DeleteTrips) + len(cs.DropFiles) + len(cs.Requests) + len(cs.CloseRequests) +
		len(cs.Fixes) + len(cs.Events)
}

// change does a verb: attempt reads, decides and puts in what is to be written. It is run anew,
// with a new now, as long as somebody else was faster. What has been written is told to each of kept:
// by these and not by a list of c's, so that what they fill need not go to the heap.
func (s *Service) change(ctx context.Context, v verb, attempt func(c *change) error, kept ...func(c *change)) error {
	if s.tx == nil { // else who holds these may wait for that transaction
		release, err := s.lock(ctx, v.locks...)
		if err != nil {
			return s.failure(ctx, v.name, err)
		}
		defer release()
	}
	var known map[DriverID]string
	return s.op(ctx, v.name, func(now time.Time) error { return s.attempt(ctx, v, now, &known, attempt, kept...) })
}

// attempt is one attempt at a verb, with what those before it have known. A *ConflictError says that
// somebody else was faster.
func (s *Service) attempt(ctx context.Context, v verb, now time.Time, known *map[DriverID]string,
	attempt func(c *change) error, kept ...func(c *change)) error {
	c := changes.Get().(*change)
	c.Service, c.now, c.actor, c.known = s, now, cmp.Or(v.actor, s.actor), *known
	if v.driver != "" {
		c.actor = driverActor(v.driver)
	}
	done := false
	defer func() {
		*known = c.known
		for _, f := range c.after {
			f()
		}
		if done {
			c.reuse()
		}
	}()
	if err := attempt(c); err != nil || c.empty() {
		return err
	}
	for i := range c.cs.Tasks { // here, where no verb can forget it
		t := &c.cs.Tasks[i]
		t.DueAt = t.due()
	}
	if err := c.commit(ctx, &c.cs); err != nil {
		return err
	}
	for _, f := range kept {
		f(c)
	}
	for _, f := range c.kept {
		f()
	}
	if c.serves {
		c.then(func() { signal(s.waiting) })
	}
	done = s.tx == nil // else what the embedder's commit tells of is in it
	return nil
}

// changes are used again, for the room that rows take in them: a task is a kilobyte. A store keeps
// copies.
var changes = sync.Pool{New: func() any { return new(change) }}

// reuse gives c back, whose rows have been written.
func (c *change) reuse() {
	next := change{cs: c.cs.room(), after: c.after[:0]}
	clear(c.after)
	*c = next
	changes.Put(c)
}

// room is a changeset of nothing with the room that cs has: of events also for their words and notices.
func (cs *Changeset) room() (room Changeset) {
	const few = 4 // rows; of a longer one the room is let go
	if cap(cs.Tasks) > few || cap(cs.Drivers) > few || cap(cs.Events) > few {
		return room
	}
	clear(cs.Tasks)
	clear(cs.Drivers)
	for i := range cs.Events {
		e := &cs.Events[i]
		clear(e.Data)
		clear(e.Notices)
		*e = Event{Data: e.Data, Notices: e.Notices[:0]}
	}
	return Changeset{Tasks: cs.Tasks[:0], Drivers: cs.Drivers[:0], Events: cs.Events[:0]}
}

// asKept makes t, if it is written, what the store keeps, for the caller.
func (c *change) asKept(t *Task) {
	for i := range c.cs.Tasks {
		if kept := &c.cs.Tasks[i]; kept.ID == t.ID {
			t.Seq, t.Version, t.DueAt = kept.Seq, kept.Version, kept.DueAt
		}
	}
}

// returnTrip does so with a trip.
func (c *change) returnTrip(t *Trip) {
	c.kept = append(c.kept, func() {
		for _, kept := range c.cs.Trips {
			if kept.ID == t.ID {
				t.Seq, t.Version = kept.Seq, kept.Version
			}
		}
	})
}

func driverActor(d DriverID) string { return "driver:" + string(d) }

// commit applies cs, after the trips have ended that its fixes might carry on, and tells who
// follows.
func (s *Service) commit(ctx context.Context, cs *Changeset) error {
	cs.Deliver = s.deliver
	for _, b := range cs.Fixes {
		if len(b.Fixes) > 0 { // no fix carries on a trip whose time is up already
			if err := s.endDue(ctx, b.DriverID, b.SeenAt); err != nil {
				return err
			}
		}
	}
	back, err := s.endSilence(ctx, cs)
	if err != nil {
		return err
	}
	written, err := s.store.Commit(ctx, s.app, cs)
	if err != nil {
		return err
	}
	cs.given(written)
	if s.tx == nil { // without a function, which would go to the heap
		s.committed(cs, back)
	} else {
		s.tx.AfterCommit(func() { s.committed(cs, back) })
	}
	return nil
}

// committed tells of what is there for all; back says that a driver is silent no longer.
func (s *Service) committed(cs *Changeset, back bool) {
	s.runner.needed(cs, s.now())
	s.ways.forget(s.app, cs.Tasks)
	if back {
		signal(s.waiting)
	}
	s.announce(cs)
}

// given puts into the rows what the store has given them.
func (cs *Changeset) given(w Written) {
	for i, g := range w.Tasks {
		cs.Tasks[i].Seq, cs.Tasks[i].Version = g.Seq, g.Version
	}
	for i, g := range w.Trips {
		cs.Trips[i].Seq, cs.Trips[i].Version = g.Seq, g.Version
	}
	for i, g := range w.Drivers {
		cs.Drivers[i].Seq, cs.Drivers[i].Version = g.Seq, g.Version
	}
}

// announce wakes those who follow what cs has changed, and those who deliver its events.
func (s *Service) announce(cs *Changeset) {
	if len(cs.Events) > 0 {
		for _, b := range s.outboxes {
			signal(b.wake)
		}
	}
	if !s.hub.followed() {
		return
	}
	for i := range cs.Events { // by index, as below: each row is much to copy
		e := &cs.Events[i]
		s.hub.publish(s.app, e.Subject)
		for j := range e.Notices {
			s.hub.publish(s.app, e.Notices[j].DriverID.subject())
		}
	}
	for i := range cs.Tasks { // also what has no event, as when a link is revoked
		s.hub.publish(s.app, cs.Tasks[i].ID.subject())
	}
	for _, t := range cs.Trips {
		s.hub.publish(s.app, t.subject())
		if t.TaskID != "" {
			s.hub.publish(s.app, t.TaskID.subject())
		}
	}
	for i := range cs.Drivers { // whose name or load may show on a link
		s.hub.publish(s.app, cs.Drivers[i].ID.subject())
	}
	for _, d := range cs.DeleteDrivers {
		s.hub.publish(s.app, d.subject())
	}
	for _, t := range cs.DeleteTasks {
		s.hub.publish(s.app, t.subject())
	}
	for _, t := range cs.DeleteTrips {
		s.hub.publish(s.app, t.subject())
	}
	for _, b := range cs.Fixes {
		s.hub.moved(s.app, b.DriverID)
	}
}

// endSilence adds to cs that the drivers whose signs of life it holds are silent no longer, and
// reports whether one was.
func (s *Service) endSilence(ctx context.Context, cs *Changeset) (back bool, err error) {
	for _, b := range cs.Fixes {
		i := slices.IndexFunc(cs.Drivers, func(d Driver) bool { return d.ID == b.DriverID })
		if i < 0 {
			d, err := s.store.Driver(ctx, s.app, b.DriverID)
			switch {
			case errors.Is(err, ErrNotFound) || err == nil && !d.Silent:
				continue
			case err != nil:
				return false, err
			}
			i, cs.Drivers = len(cs.Drivers), append(cs.Drivers, d)
		}
		back = back || cs.Drivers[i].Silent
		cs.Drivers[i].Silent = false
	}
	return back, nil
}

// lock takes the locks of these things of the application.
func (s *Service) lock(ctx context.Context, subjects ...Subject) (release func(), err error) {
	if len(subjects) == 0 {
		return func() {}, nil
	}
	names := make([]appSubject, 0, len(subjects))
	for _, of := range subjects {
		names = append(names, appSubject{s.app, of})
	}
	return s.locks.take(ctx, names...)
}

// appSubject names a thing of any application.
type appSubject struct {
	app     AppID
	subject Subject
}

// now is the time of one step: UTC, whole milliseconds.
func (c *core) now() time.Time { return stamp(c.opts.Now()) }

func stamp(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// Our own clock may be wrong for a while. What was noted then, and now lies further in the future
// than clocks differ (maxAhead), never counts for longer than it could have if the clock had been
// right.

// ahead reports whether a moment that we noted lies further in our future than clocks differ: ours
// was wrong then.
func ahead(t, now time.Time) bool { return t.After(now.Add(maxAhead)) }

// within reports whether less than d has passed since a moment that we noted. What lies ahead
// counts no more.
func within(at, now time.Time, d time.Duration) bool { return now.Sub(at) < d && !ahead(at, now) }

// earlier is the earlier of two moments.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// oldestStep is how far back a step may lie that has none before it. What a phone says is older was
// not then: its clock had begun anew, or counts another calendar; and there would be no fixes to
// it, or all that the driver ever sent.
const oldestStep = 90 * day

// clampAt is when a step happened: at, but not before the step before it and, which weighs more,
// not after now; now if not given. A step that has none before it, which a zero time says, happened
// now if at is absurd.
func clampAt(at, before, now time.Time) time.Time {
	at = stamp(at)
	switch {
	case at.IsZero(), at.After(now), before.After(now), before.IsZero() && at.Before(now.Add(-oldestStep)):
		return now
	case at.Before(before):
		return before
	}
	return at
}

// stepBefore is the last of the steps before one, of those that do not lie ahead; if all do, the
// last of them.
func stepBefore(now time.Time, steps ...time.Time) time.Time {
	var last, right time.Time
	for _, at := range steps {
		if at.After(last) {
			last = at
		}
		if at.After(right) && !ahead(at, now) {
			right = at
		}
	}
	if right.IsZero() {
		return last
	}
	return right
}

// idSource makes ids that sort by age: 48 bits of milliseconds and 80 random bits in base 32, lower
// case. Within a millisecond each is greater than the one before.
type idSource struct {
	mu    sync.Mutex
	rand  io.Reader
	last  [16]byte
	drawn [10]byte // what was read last; here, as what is read into goes to the heap
}

const idDigits = "0123456789abcdefghjkmnpqrstvwxyz" // Crockford's base 32

// next is a new id, greater than all before it of this process.
func (s *idSource) next(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(max(now.UnixMilli(), 0))<<16)
	if string(b[:6]) <= string(s.last[:6]) {
		b = s.last
		for i := 15; i >= 0; i-- {
			if b[i]++; b[i] != 0 {
				break
			}
		}
	} else {
		s.read(s.drawn[:])
		copy(b[6:], s.drawn[:])
		b[6] &= 0x7f // room to count up
	}
	s.last = b
	var out [26]byte
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = idDigits[lo&31]
		hi, lo = hi>>5, hi<<59|lo>>5
	}
	return string(out[:])
}

func (s *idSource) read(b []byte) {
	if _, err := io.ReadFull(s.rand, b); err != nil {
		panic(fmt.Sprintf("tracking: Options.Rand failed: %v", err))
	}
}

// token is a random secret of n bytes, URL-safe.
func (s *idSource) token(n int) string {
	b := make([]byte, n)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// below is a random number in [0, n).
func (s *idSource) below(n uint32) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var b [4]byte
		s.read(b[:])
		if v := binary.BigEndian.Uint32(b[:]); v < math.MaxUint32/n*n { // else some would come more often
			return v % n
		}
	}
}

// nameLocks are locks by name. They only spare lost races: the store's versions guarantee. Each name
// has one of its own, since who holds it may wait for long, for a row that an embedder's transaction
// holds.
type nameLocks struct {
	mu    sync.Mutex
	of    map[appSubject]*nameLock
	spare []*nameLock // that nobody uses
}

// spareLocks is how many are kept: as many as many callers at once need.
const spareLocks = 64

// nameLock is held by who has put something into held.
type nameLock struct {
	held  chan struct{}
	users int // who hold it or wait for it
}

// take locks the names, or fails when ctx ends first. It takes them in order, so that whoever takes
// several never waits in a ring.
func (l *nameLocks) take(ctx context.Context, names ...appSubject) (release func(), err error) {
	slices.SortFunc(names, func(a, b appSubject) int {
		return cmp.Or(cmp.Compare(a.app, b.app), cmp.Compare(a.subject.Kind, b.subject.Kind),
			cmp.Compare(a.subject.ID, b.subject.ID))
	})
	names = slices.Compact(names)
	for n, name := range names {
		lock := l.use(name)
		select {
		case lock.held <- struct{}{}:
		case <-ctx.Done():
			l.mu.Lock()
			l.leave(name, lock)
			l.mu.Unlock()
			l.release(names[:n])
			return nil, ctx.Err()
		}
	}
	return func() { l.release(names) }, nil
}

// use is the lock of a name, which stays until as many have left it.
func (l *nameLocks) use(name appSubject) *nameLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock := l.of[name]
	if lock == nil {
		if last := len(l.spare) - 1; last >= 0 {
			lock, l.spare = l.spare[last], l.spare[:last]
		} else {
			lock = &nameLock{held: make(chan struct{}, 1)}
		}
		l.of[name] = lock
	}
	lock.users++
	return lock
}

// leave is for who does not hold it. All is locked.
func (l *nameLocks) leave(name appSubject, lock *nameLock) {
	if lock.users--; lock.users > 0 {
		return
	}
	delete(l.of, name)
	if len(l.spare) < spareLocks {
		l.spare = append(l.spare, lock)
	}
}

func (l *nameLocks) release(names []appSubject) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		lock := l.of[name]
		<-lock.held
		l.leave(name, lock)
	}
}

// hub wakes those who follow something. A wake-up carries nothing: who is woken reads the store
// again. Publishers share its lock, so that one burst holds up nobody else's commits.
type hub struct {
	mu     sync.RWMutex
	subs   map[appSubject]map[chan struct{}]bool
	topics map[AppID]*liveTopic
	ctx    context.Context // of the topics
	close  context.CancelFunc
	closed <-chan struct{}
}

func (h *hub) init() {
	h.subs = map[appSubject]map[chan struct{}]bool{}
	h.topics = map[AppID]*liveTopic{}
	h.ctx, h.close = context.WithCancel(context.Background())
	h.closed = h.ctx.Done()
}

// followed reports whether anybody follows anything. Who begins to follow reads afterwards.
func (h *hub) followed() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.subs)+len(h.topics) > 0
}

// publish wakes those who follow a thing whose row has changed.
func (h *hub) publish(app AppID, s Subject) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	h.wake(appSubject{app, s})
	if t := h.topics[app]; t != nil {
		t.mark(s)
	}
}

// moved wakes those who follow a driver. Topics see by themselves who has moved.
func (h *hub) moved(app AppID, d DriverID) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	h.wake(appSubject{app, d.subject()})
}

func (h *hub) wake(of appSubject) {
	for c := range h.subs[of] {
		signal(c)
	}
}

// publishAll wakes all who follow something of an application; "" for any.
func (h *hub) publishAll(app AppID) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for of, subs := range h.subs {
		if app == "" || of.app == app {
			for c := range subs {
				signal(c)
			}
		}
	}
}

func (h *hub) subscribe(c chan struct{}, app AppID, subjects ...Subject) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range subjects {
		k := appSubject{app, s}
		if h.subs[k] == nil {
			h.subs[k] = map[chan struct{}]bool{}
		}
		h.subs[k][c] = true
	}
}

func (h *hub) unsubscribe(c chan struct{}, app AppID, subjects ...Subject) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range subjects {
		k := appSubject{app, s}
		if delete(h.subs[k], c); len(h.subs[k]) == 0 {
			delete(h.subs, k)
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// compare puts drivers before tasks.
func (s Subject) compare(o Subject) int {
	return cmp.Or(cmp.Compare(s.Kind, o.Kind), cmp.Compare(s.ID, o.ID))
}

// check collects the first thing that is wrong with an input.
type check struct {
	err error
	in  string // the place whose fields are looked at; their names are joined only when one is wrong
}

func (c *check) fail(field, message string) {
	if c.err != nil {
		return
	}
	if c.in != "" {
		field = c.in + "." + field
	}
	c.err = invalid(field, message)
}

// text checks a free text: valid UTF-8, no U+0000, at most max characters.
func (c *check) text(field, v string, max int) {
	switch {
	case !utf8.ValidString(v):
		c.fail(field, "is not valid UTF-8.")
	case strings.ContainsRune(v, 0):
		c.fail(field, "must not hold the character U+0000.")
	case len(v) > max && utf8.RuneCountInString(v) > max:
		c.fail(field, fmt.Sprintf("is longer than %d characters.", max))
	}
}

func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// line checks a text that holds no control character.
func (c *check) line(field, v string, max int) {
	c.text(field, v, max)
	if strings.ContainsFunc(v, isControl) {
		c.fail(field, "must not hold control characters.")
	}
}

// name checks an id that makes something: 1 to 128 characters, no control character, no comma, no
// blank at either end.
func (c *check) name(field, v string) {
	c.line(field, v, 128)
	switch {
	case v == "":
		c.fail(field, "is required.")
	case strings.TrimSpace(v) != v:
		c.fail(field, "must not begin or end with a blank.")
	case strings.Contains(v, ","):
		c.fail(field, "must not hold a comma.")
	}
}

// note checks what a customer writes: 1 to 280 characters, plain, with lines.
func (c *check) note(field, v string) {
	c.text(field, v, 280)
	if strings.ContainsFunc(v, func(r rune) bool { return isControl(r) && r != '\n' }) {
		c.fail(field, "must not hold control characters other than newlines.")
	}
	if strings.TrimSpace(v) == "" {
		c.fail(field, "is required, and must not be blank.")
	}
}

func (c *check) lnglat(field string, p *LngLat) {
	if p != nil && !p.Valid() {
		c.fail(field, "must be a longitude from -180 to 180 and a latitude from -90 to 90.")
	}
}

// point checks a position that becomes a fix.
func (c *check) point(field string, p *LngLat) {
	c.lnglat(field, p)
	if p != nil && *p == (LngLat{}) {
		c.fail(field, "must not be 0,0, which phones send when they do not know.")
	}
}

func (c *check) place(field string, p *Place) {
	if p == nil {
		return
	}
	if p.LngLat == nil && p.Address == "" {
		c.fail(field, "needs lnglat or an address.")
	}
	c.in = field
	c.lnglat("lnglat", p.LngLat)
	c.text("address", p.Address, 1000)
	c.contact(p.Customer)
	c.in = ""
}

func (c *check) contact(p *Contact) {
	if p != nil {
		c.text("customer.name", p.Name, 200)
		c.text("customer.mobile", p.Mobile, 32)
	}
}

// proof checks the kinds of evidence that a task asks for, and puts them in order.
func (c *check) proof(field string, kinds []ProofKind) []ProofKind {
	for i, kind := range kinds {
		switch {
		case !slices.Contains(proofKinds, kind):
			c.fail(field, "takes photo, signature, name and pin.")
		case slices.Contains(kinds[:i], kind):
			c.fail(field, "must not name a kind twice.")
		}
	}
	ordered := slices.Clone(kinds)
	slices.SortFunc(ordered, func(a, b ProofKind) int {
		return cmp.Compare(slices.Index(proofKinds, a), slices.Index(proofKinds, b))
	})
	return ordered
}

// page checks a page and fills in its default.
func (c *check) page(p *Page, limit int) {
	if p.Number < 0 {
		c.fail("page", "must be 1 or more.")
	}
	if p.Limit < 0 || p.Limit > 1000 {
		c.fail("limit", "must be from 1 to 1000.")
	}
	defaultTo(&p.Number, 1)
	defaultTo(&p.Limit, limit)
}

// time checks an instant: zero, or in the years 1 to 9999 UTC, which RFC 3339 can write.
func (c *check) time(field string, t time.Time) {
	if y := t.UTC().Year(); y < 1 || y > 9999 {
		c.fail(field, "must be in the years 1 to 9999.")
	}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// lookup reports whether an id that looks something up can name anything at all; what can't is not
// asked of the store.
func lookup(id string) bool {
	return id != "" && len(id) <= 1024 && utf8.ValidString(id) && strings.IndexByte(id, 0) < 0
}

func defaultTo[T comparable](v *T, d T) {
	if *v == *new(T) {
		*v = d
	}
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// leaseFor is how long a worker may keep a subject's events to itself; longer where one call may
// take longer.
const leaseFor = 2 * time.Minute

// folded are the letters with marks of the Latin, Greek and Cyrillic scripts, in small, behind what
// each is without them: their canonical decomposition by Unicode. Those that have none, such as ß,
// ø and æ, are what people write who have no key for them.
var folded = foldTable(map[string]string{
	"a": "àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ", "ae": "æǣǽ", "b": "ḃḅḇ", "c": "çćĉċčḉ", "d": "ðďđḋḍḏḑḓ",
	"dz": "ǆǳ", "e": "èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ", "f": "ƒḟ", "g": "ĝğġģǧǵḡ", "h": "ĥħȟḣḥḧḩḫẖ",
	"i": "ìíîïĩīĭįıǐȉȋḭḯỉị", "ij": "ĳ", "j": "ĵǰ", "k": "ķĸǩḱḳḵ", "l": "ĺļľŀłḷḹḻḽ", "lj": "ǉ",
	"m": "ḿṁṃ", "n": "ñńņňŉŋǹṅṇṉṋ", "nj": "ǌ", "o": "òóôõöøōŏőơǒǫǭǿȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợ",
	"oe": "œ", "p": "ṕṗ", "r": "ŕŗřȑȓṙṛṝṟ", "s": "śŝşšſșṡṣṥṧṩẛ", "ss": "ß", "t": "ţťŧțṫṭṯṱẗ",
	"th": "þ", "u": "ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự", "v": "ṽṿ", "w": "ŵẁẃẅẇẉẘ", "x": "ẋẍ",
	"y": "ýÿŷȳẏẙỳỵỷỹ", "z": "źżžẑẓẕ", "ʒ": "ǯ", "ʹ": "ʹ", "α": "άἀἁἂἃἄἅἆἇὰάᾀᾁᾂᾃᾄᾅᾆᾇᾰᾱᾲᾳᾴᾶᾷ",
	"ε": "έἐἑἒἓἔἕὲέ", "η": "ήἠἡἢἣἤἥἦἧὴήᾐᾑᾒᾓᾔᾕᾖᾗῂῃῄῆῇ", "ι": "ΐίϊἰἱἲἳἴἵἶἷὶίιῐῑῒΐῖῗ",
	"ο": "όὀὁὂὃὄὅὸό", "ρ": "ῤῥ", "σ": "ς", "υ": "ΰϋύὐὑὒὓὔὕὖὗὺύῠῡῢΰῦῧ",
	"ω": "ώὠὡὢὣὤὥὦὧὼώᾠᾡᾢᾣᾤᾥᾦᾧῲῳῴῶῷ", "ϒ": "ϓϔ", "а": "ӑӓ", "г": "ѓ", "е": "ѐёӗ", "ж": "ӂӝ",
	"з": "ӟ", "и": "йѝӣӥ", "к": "ќ", "о": "ӧ", "у": "ўӯӱӳ", "ч": "ӵ", "ы": "ӹ", "э": "ӭ",
	"і": "ї", "ѵ": "ѷ", "ә": "ӛ", "ө": "ӫ",
})

func foldTable(groups map[string]string) map[rune]string {
	table := map[rune]string{}
	for plain, letters := range groups {
		for _, r := range letters {
			table[r] = plain
		}
	}
	return table
}

// fold is a text as searches compare it: in small letters, without accents and other marks, with 0 to 9
// for all digits.
func fold(text string) string {
	if isASCII(text) {
		return strings.ToLower(text)
	}
	text = asciiDigits(text)
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range text {
		if r < 0x80 {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			b.WriteByte(byte(r))
			continue
		}
		r = unicode.ToLower(r)
		if plain, ok := folded[r]; ok {
			b.WriteString(plain)
		} else if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// DeliverEvents hands the events that are due to each Notifier, and reports how many that were, an
// event for each Notifier that it was due to. It returns when all have answered. [Service.Run] does
// this for each Notifier by itself, and without waiting for slow receivers.
func (s *Service) DeliverEvents(ctx context.Context) (n int, err error) {
	defer s.observe(&ctx, "DeliverEvents").end(&err)
	s.runner.here.Store(true)
	var all sync.WaitGroup
	defer all.Wait()
	for _, b := range s.outboxes {
		d := newDispatch(leaseAtMost)
		took, failed := s.deliverFrom(ctx, b, d)
		n, err = n+took, cmp.Or(err, failed)
		all.Go(d.wait.Wait)
	}
	return n, err
}

const (
	leaseAtMost = 100 // events in one lease
	appAtMost   = 32  // subjects of one application under way at once to one Notifier under Run
)

// dispatch counts the subjects whose events are on their way to one Notifier, so that one
// application with a slow receiver does not hold up the others.
type dispatch struct {
	mu      sync.Mutex
	running map[AppID]int
	each    int // of one application at most
	wait    sync.WaitGroup
}

func newDispatch(each int) *dispatch { return &dispatch{running: map[AppID]int{}, each: each} }

// busy is how many are under way.
func (d *dispatch) busy() map[AppID]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.running)
}

func (d *dispatch) take(app AppID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running[app]++
}

func (d *dispatch) done(app AppID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running[app]--; d.running[app] == 0 {
		delete(d.running, app)
	}
}

// deliverFrom leases events of one outbox, as many as there is room for, and has each subject's
// delivered, in order, by a goroutine of its own; it does not wait for them.
func (s *Service) deliverFrom(ctx context.Context, b *outbox, d *dispatch) (int, error) {
	now, lasts := s.now(), max(leaseFor, 2*s.opts.NotifyTimeout)
	until := now.Add(lasts)
	owner := fmt.Sprint(s.owner, "-", s.leases.Add(1)) // word that comes too late ends no later lease
	leased, err := s.store.LeaseEvents(ctx, Lease{
		Outbox: b.name, Owner: owner, Now: now, For: lasts, MaxLease: lasts + maxAhead,
		MaxRetry: s.longestRetry() + maxAhead,
		Each:     d.each, Busy: d.busy(), Limit: leaseAtMost,
	})
	if err != nil {
		return 0, s.failure(ctx, "DeliverEvents", err)
	}
	queues := map[appSubject][]Leased{}
	var order []appSubject
	for _, l := range leased {
		k := appSubject{l.App, l.Event.Subject}
		if queues[k] == nil {
			order = append(order, k)
		}
		queues[k] = append(queues[k], l)
	}
	for _, k := range order {
		d.take(k.app)
		d.wait.Go(func() {
			defer signal(b.wake) // there is room again, and whoever looked meanwhile found the subject leased
			defer d.done(k.app)
			done := s.deliverQueue(ctx, b, owner, queues[k], until)
			// What was sent is to be noted even when ctx has ended meanwhile.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.NotifyTimeout)
			defer cancel()
			if err := s.store.FinishEvents(ctx, done); err != nil {
				s.opts.Logger.ErrorContext(ctx, "noting deliveries failed; they will be sent again", "notifier", b.name,
					"err", err)
			}
		})
	}
	return len(leased), nil
}

// deliverQueue delivers one subject's events up to the first that fails, or that there is no time
// for. Those behind it need no word: the lease ends with what is said of one.
func (s *Service) deliverQueue(
	ctx context.Context, b *outbox, owner string, queue []Leased, until time.Time,
) (done []Delivery) {
	for _, l := range queue {
		d := Delivery{Outbox: b.name, App: l.App, EventID: l.Event.ID, Owner: owner, State: DeliveryReleased}
		if ctx.Err() == nil && s.now().Add(s.opts.NotifyTimeout).Before(until) {
			err := s.notify(ctx, b.notifier, l)
			switch {
			case err == nil:
				d.State = DeliveryDone
			case ctx.Err() == nil:
				d.State, d.RetryIn = s.retryOf(l.Attempt, err)
				d.Now = s.now()
				level := slog.LevelWarn
				if d.State == DeliveryDead {
					level = slog.LevelError
				}
				s.opts.Logger.Log(ctx, level, "delivery failed", "notifier", b.name, "event", l.Event.ID, "type",
					l.Event.Type, "attempt", l.Attempt, "state", d.State, "err", err)
			}
		}
		if d.State != DeliveryReleased || done == nil {
			done = append(done, d)
		}
		if d.State == DeliveryRetry || d.State == DeliveryReleased {
			break
		}
	}
	return done
}

// notify calls a Notifier.
func (s *Service) notify(ctx context.Context, to Notifier, l Leased) error {
	return guarded(ctx, s.opts.NotifyTimeout, func(ctx context.Context) error {
		return to.Notify(ctx, Notification{App: l.App, Event: l.Event.Clone(), Attempt: l.Attempt})
	})
}

// guarded calls code of the embedder's, with a time limit; a panic of it is an error like any
// other.
func guarded(ctx context.Context, limit time.Duration, call func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a panic: %v\n%s", p, debug.Stack())
		}
	}()
	return call(ctx)
}

// retryOf says how a delivery goes on after its n-th try failed, and in what time.
func (s *Service) retryOf(n int, err error) (DeliveryState, time.Duration) {
	var e *NotifyError
	said := errors.As(err, &e)
	if said && e.Permanent || n >= len(s.opts.RetryWaits) {
		return DeliveryDead, 0
	}
	wait := s.opts.RetryWaits[n]
	if wait > 10 {
		wait += time.Duration(rand.Int64N(int64(wait / 10)))
	}
	if said {
		wait = max(wait, min(e.RetryAfter, day))
	}
	return DeliveryRetry, wait
}

// longestRetry is how far ahead a retry may lie.
func (s *Service) longestRetry() time.Duration {
	longest := slices.Max(s.opts.RetryWaits)
	return max(longest+longest/10, day)
}

// Geocode asks the Geocoder for points and addresses that are due, of all applications, and reports
// how many rows it filled in. [Service.Run] calls it.
func (s *Service) Geocode(ctx context.Context) (_ int, err error) {
	defer s.observe(&ctx, "Geocode").end(&err)
	s.runner.here.Store(true)
	if s.opts.Geocoder == nil {
		return 0, nil
	}
	l := newLookups()
	_, err = s.lookUp(ctx, l, true)
	l.wait.Wait()
	n, failed := l.result()
	return n, errors.Join(err, failed)
}

// lookups are the rows that the Geocoder is being asked about.
type lookups struct {
	slots chan struct{} // as many as are asked about at once
	wake  chan struct{} // there is room again
	wait  sync.WaitGroup

	mu       sync.Mutex
	underWay map[Due]bool
	found    int
	errs     []error
}

const lookupsAtOnce = 8

func newLookups() *lookups {
	return &lookups{slots: make(chan struct{}, lookupsAtOnce), wake: make(chan struct{}, 1), underWay: map[Due]bool{}}
}

// take reserves a row, unless it is under way already or there is no room, for which patient waits.
func (l *lookups) take(ctx context.Context, row Due, patient bool) bool {
	l.mu.Lock()
	busy := l.underWay[row]
	l.mu.Unlock()
	if busy {
		return false
	}
	select {
	case l.slots <- struct{}{}:
	default:
		if !patient {
			return false
		}
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			return false
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay[row] = true
	return true
}

func (l *lookups) done(row Due, found bool, err error) {
	<-l.slots
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.underWay, row)
	switch {
	case errors.Is(err, ErrNotFound): // it has gone meanwhile
	case err != nil:
		l.errs = append(l.errs, err)
	case found:
		l.found++
	}
	signal(l.wake)
}

// result is how many were found, and what failed, since the last result.
func (l *lookups) result() (found int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, err = l.found, errors.Join(l.errs...)
	l.found, l.errs = 0, nil
	return found, err
}

// lookUp asks the Geocoder about the rows that are due, each in a goroutine of its own, for which
// it does not wait: so one that takes long holds up no other. It reports how many it began with.
func (s *Service) lookUp(ctx context.Context, l *lookups, patient bool) (began int, err error) {
	now := s.now()
	due, err := s.store.Due(ctx, DueQuery{
		Kind: DueGeocodes, Before: now, Beyond: now.Add(geocodeMost + maxAhead), Limit: 20,
		Claim: s.claimed(now, 3*s.opts.NotifyTimeout), // for a task's two addresses, and what is done with them
	})
	if err != nil {
		return 0, s.failure(ctx, "Geocode", err)
	}
	for _, d := range due {
		if !l.take(ctx, d, patient) {
			continue
		}
		began++
		l.wait.Go(func() {
			found, err := s.ForApp(d.App).As("system").geocode(ctx, d.Subject)
			l.done(d, found, err)
		})
	}
	if err := ctx.Err(); err != nil {
		return began, s.failure(ctx, "Geocode", err)
	}
	return began, nil
}

func (s *Service) geocode(ctx context.Context, row Subject) (found bool, err error) {
	if row.Kind == KindTask {
		return s.geocodeTask(ctx, TaskID(row.ID))
	}
	return s.geocodeTrip(ctx, TripID(row.ID))
}

// ask calls the Geocoder with a time limit; ok tells that it had an answer.
func (s *Service) ask(ctx context.Context, call func(context.Context) error) (ok bool) {
	err := guarded(ctx, s.opts.NotifyTimeout, call)
	if err != nil && !errors.Is(err, ErrNotFound) {
		s.opts.Logger.WarnContext(ctx, "geocoder failed", "err", withoutURL(err))
	}
	return err == nil
}

// FindPlace asks the Geocoder where an address is, for who wants to see that before there is a task.
// A process asks at most 60 times a minute for an application. Codes: ErrInvalid; ErrNotFound when
// the Geocoder knows no such address; ErrConflict when there is no Geocoder; ErrRateLimited;
// ErrUnavailable when it does not answer.
func (s *Service) FindPlace(ctx context.Context, address string) (_ LngLat, err error) {
	defer s.observe(&ctx, "FindPlace").end(&err)
	var k check
	k.text("address", address, 1000)
	if strings.TrimSpace(address) == "" {
		k.fail("address", "must not be empty.")
	}
	switch {
	case k.err != nil:
		return LngLat{}, k.err
	case s.opts.Geocoder == nil:
		return LngLat{}, conflict("The service has no geocoder; give the point of the address.")
	}
	if wait := s.finding.take(s.app, s.now()); wait > 0 {
		return LngLat{}, &Error{
			Code: ErrRateLimited, Message: "Too many addresses were looked up; try again in a minute.", RetryAfter: wait,
		}
	}
	var at LngLat
	err = guarded(ctx, s.opts.NotifyTimeout, func(ctx context.Context) (err error) {
		at, err = s.opts.Geocoder.Point(ctx, address)
		return err
	})
	switch {
	case errors.Is(err, ErrNotFound) || err == nil && !at.Valid():
		return LngLat{}, &Error{Code: ErrNotFound, Field: "address", Message: "The address is not known; give its point."}
	case err != nil:
		return LngLat{}, &Error{
			Code: ErrUnavailable, Message: "The geocoder does not answer; give the point, or try again.",
			RetryAfter: time.Second, Err: withoutURL(err),
		}
	}
	return at, nil
}

// withoutURL is the error of a request of net/http without its URL, in which an address or a key may
// stand.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// findGuard counts what an application has looked up in the present minute.
type findGuard struct {
	mu sync.Mutex
	of map[AppID]found
}

type found struct {
	since time.Time
	n     int
}

const findMost = 60 // a minute

// take counts one; it returns how long to wait when there is none left. What was counted by a clock
// that was wrong is forgotten.
func (g *findGuard) take(app AppID, now time.Time) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = map[AppID]found{}
	}
	f := g.of[app]
	if !within(f.since, now, time.Minute) {
		maps.DeleteFunc(g.of, func(_ AppID, f found) bool { return !within(f.since, now, time.Minute) })
		f = found{since: now}
	}
	if f.n >= findMost {
		return f.since.Add(time.Minute).Sub(now)
	}
	f.n++
	g.of[app] = f
	return 0
}

// geocodeMost is the longest time between two questions about one row.
const geocodeMost = 6 * time.Hour

// dueForLookup reports whether a row is to be asked about that says so for at. It may have been
// asked about since it was listed; what is set for later than can be was so by a clock that was
// wrong.
func dueForLookup(at, now time.Time) bool {
	return !at.IsZero() && (!at.After(now) || at.After(now.Add(geocodeMost+maxAhead)))
}

// askAgain is when to ask the Geocoder again about a row that was last changed then: after as long
// as it has waited already, between a minute and geocodeMost.
func askAgain(changed, now time.Time) time.Time {
	return now.Add(min(max(now.Sub(changed), time.Minute), geocodeMost))
}

// orphanAfter is how old a file is that no task names and none is about to.
const orphanAfter = time.Hour

// Purge removes a small step of what is older than Options.KeepFixes and KeepEvents, of the store's
// files that belong to no task, and of the tasks, and what they say of persons, that ended before
// Options.KeepTasks and KeepContacts. It reports how many rows. [Service.Run] calls it.
func (s *Service) Purge(ctx context.Context) (_ Purged, err error) {
	defer s.observe(&ctx, "Purge").end(&err)
	now := s.now()
	b := Before{Limit: 1000, Files: now.Add(-orphanAfter)}
	if s.opts.KeepFixes > 0 {
		b.Fixes = now.Add(-s.opts.KeepFixes)
	}
	if s.opts.KeepEvents > 0 {
		b.Events = now.Add(-s.opts.KeepEvents)
	}
	p, err := s.store.Purge(ctx, b)
	if err != nil {
		return p, s.failure(ctx, "Purge", err)
	}
	return p, s.purgeTasks(ctx, now, &p)
}

// Run does what nobody asks for: it delivers events, serves waiting tasks, begins with those whose
// window is near, tells of late ones, ends trips whose time is up, notices drivers who have fallen
// silent, geocodes, and purges. It loops over the exported
// single steps, and returns, with ctx's error, only when ctx ends: a store that is away is logged
// and tried again. A row that somebody's transaction holds is waited for 3 seconds at most, by Run and
// by its steps, and left to a later call. Run it once in each process; several processes on one store share the work, and
// hear of what the others do within a second, sooner where the store is a [Watcher],
// where the store is one that they can share (memory and SQLite are not). In a process where
// neither Run nor one of its steps was called, a line in the log says so, once, when something has
// waited for it for a minute. End ctx and wait until Run has returned before the store is closed, else
// the log has what it could not do any more; Serve of httpadapter ends both in good order.
func (s *Service) Run(ctx context.Context) error {
	s.runner.here.Store(true)
	s = s.running()
	var wg sync.WaitGroup
	loop := func(name string, every time.Duration, wake <-chan struct{}, step func(context.Context) (int, error)) {
		wg.Go(func() { s.loop(ctx, name, every, wake, step) })
	}
	for _, b := range s.outboxes {
		d := newDispatch(appAtMost)
		defer d.wait.Wait()
		loop("DeliverEvents", time.Second, b.wake, func(ctx context.Context) (int, error) {
			return s.deliverFrom(ctx, b, d)
		})
	}
	loop("AssignWaiting", 500*time.Millisecond, s.waiting, s.AssignWaiting)
	loop("EndDueTrips", time.Second, nil, s.EndDueTrips)
	loop("MarkDueTasks", time.Second, nil, s.MarkDueTasks)
	loop("MarkSilent", time.Second, nil, s.MarkSilent)
	if s.opts.Geocoder != nil {
		l := newLookups()
		defer l.wait.Wait()
		loop("Geocode", time.Second, l.wake, func(ctx context.Context) (int, error) {
			began, err := s.lookUp(ctx, l, false)
			_, failed := l.result()
			return began, errors.Join(err, failed)
		})
	}
	if w, ok := s.store.(Watcher); ok {
		wg.Go(func() { s.watch(ctx, w) })
	}
	loop("Purge", time.Minute, nil, func(ctx context.Context) (int, error) {
		p, err := s.Purge(ctx)
		return p.Total(), err
	})
	wg.Wait()
	return ctx.Err()
}

// watch has the store tell what other processes change. When it cannot for a while, anything may have
// changed.
func (s *Service) watch(ctx context.Context, w Watcher) {
	for wait := time.Second; ; wait = min(2*wait, 30*time.Second) {
		began := s.now()
		err := w.Watch(ctx, s.heardOf)
		if ctx.Err() != nil {
			return
		}
		s.opts.Logger.WarnContext(ctx, "what other processes change is not told, and looked for; it will be tried again",
			"err", err)
		s.heardOf("", Subject{})
		if s.now().Sub(began) > time.Minute {
			wait = time.Second
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// heardOf wakes those in this process whom a change by another one concerns. A driver's own changes
// are many, as he moves; whom they may free a task for is served by the process that they came to.
func (s *Service) heardOf(app AppID, subject Subject) {
	switch {
	case subject == Subject{}:
		s.hub.publishAll(app)
	case subject.Kind == KindDriver:
		s.hub.moved(app, DriverID(subject.ID))
		return
	default:
		s.hub.publish(app, subject)
	}
	for _, b := range s.outboxes {
		signal(b.wake)
	}
	signal(s.waiting)
}

// How long Run keeps what it sweeps from other processes. What this one fails at it tries again all
// the same; what it leaves when it dies, another takes over after that.
const (
	sweepFor = 5 * time.Second
	serveFor = time.Second // tasks that wait: nobody may have to wait longer
)

// running is a copy of s that claims what it sweeps.
func (s *Service) running() *Service { c := *s; c.runs = true; return &c }

// brieflyIs is what a step of Run takes for one thing of many at most, also when it is called by itself:
// a transaction of an embedder's may hold its rows for long, and the others are not to wait for that
// one's end.
const brieflyIs = 3 * time.Second

// claimed is the claim on what is swept now; none if a step was called by itself, as whoever calls it
// wants all of it done.
func (s *Service) claimed(now time.Time, lasts time.Duration) Claim {
	if !s.runs {
		return Claim{}
	}
	return Claim{Owner: s.owner, Now: now, For: lasts}
}

// runner notices that nobody runs [Service.Run]. It has no clock and no goroutine of its own:
// operations look, on their way.
type runner struct {
	here atomic.Bool // Run, or one of its steps, was called in this process; or it has been said that none was

	mu     sync.Mutex
	since  time.Time // since when something waits, or may do so; zero: nothing does
	events bool      // there are events to deliver
}

// forgottenAfter is how long something has to wait for Run before that is worth a line.
const forgottenAfter = time.Minute

// needed notes what a changeset leaves to Run.
func (r *runner) needed(cs *Changeset, now time.Time) {
	if r.here.Load() {
		return
	}
	events := len(cs.Events) > 0 && len(cs.Deliver) > 0
	needed := events ||
		slices.ContainsFunc(cs.Trips, func(t Trip) bool { return t.Status == TripActive || !t.GeocodeAt.IsZero() })
	for i := range cs.Tasks {
		t := &cs.Tasks[i]
		needed = needed || t.Waiting || !t.GeocodeAt.IsZero() || !t.DueAt.IsZero()
	}
	if !needed {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = r.events || events
	if r.since.IsZero() {
		r.since = now
	}
}

// lookNow reports whether it is time to look what waits, and puts off the next look.
func (r *runner) lookNow(now time.Time) (look, events bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ahead(r.since, now) {
		r.since = now
	}
	if r.since.IsZero() || now.Sub(r.since) < forgottenAfter {
		return false, false
	}
	r.since = now
	return true, r.events
}

// remindOfRun logs, once for all copies of s, that Run was forgotten. What waits is looked up,
// since a person may have done it.
func (s *Service) remindOfRun(ctx context.Context, now time.Time) {
	if s.runner.here.Load() {
		return
	}
	look, events := s.runner.lookNow(now)
	if !look {
		return
	}
	what := ""
	if events {
		what = "events to deliver"
	} else if apps, err := s.store.WaitingApps(ctx); err == nil && len(apps) > 0 {
		what = "a task without a driver"
	}
	for _, d := range []struct {
		kind DueKind
		what string
	}{
		{DueTrips, "a trip whose time is up"}, {DueTasks, "a task whose time has come"},
		{DueGeocodes, "an address or a point to look up"},
	} {
		if what != "" || d.kind == DueGeocodes && s.opts.Geocoder == nil {
			continue
		}
		if due, err := s.store.Due(ctx, DueQuery{Kind: d.kind, Before: now, Limit: 1}); err == nil && len(due) > 0 {
			what = d.what
		}
	}
	if what != "" && s.runner.here.CompareAndSwap(false, true) {
		s.opts.Logger.WarnContext(ctx, "Service.Run has not been started in this process, and something waits for it; "+
			"start it once: go svc.Run(ctx)", "waits", what)
	}
}

// each does something about each row that is due, on behalf of the system, and counts for how many
// do says that it was done. One that fails holds up no other; one that has gone meanwhile is none.
func (s *Service) each(ctx context.Context, due []Due,
	do func(ctx context.Context, svc *Service, subject Subject) (bool, error)) (n int, err error) {
	var errs []error
	for _, d := range due {
		brief, cancel := context.WithTimeout(ctx, brieflyIs)
		done, err := do(brief, s.ForApp(d.App).As("system"), d.Subject)
		cancel()
		switch {
		case ctx.Err() != nil:
			return n, s.failure(ctx, "Run", ctx.Err())
		case errors.Is(err, ErrNotFound):
		case err != nil:
			errs = append(errs, err)
		case done:
			n++
		}
	}
	return n, errors.Join(errs...)
}

// inParts does something about what is due of the application, several rows in one changeset; do
// says of how many it was done. Where that fails it goes one by one, so that one which fails holds
// up no other.
func (s *Service) inParts(ctx context.Context, due []Due,
	do func(ctx context.Context, svc *Service, part []Due) (int, error)) (n int, err error) {
	var errs []error
	for part := range slices.Chunk(due, dueAtOnce) {
		brief, cancel := context.WithTimeout(ctx, brieflyIs)
		done, err := do(brief, s, part)
		late := brief.Err() != nil
		cancel()
		switch {
		case err == nil:
			n += done
		case ctx.Err() != nil:
			return n, err
		case len(part) == 1:
			errs = append(errs, err)
		default:
			one, err := s.each(ctx, part, func(ctx context.Context, svc *Service, subject Subject) (bool, error) {
				done, err := do(ctx, svc, []Due{{svc.app, subject}})
				return done > 0, err
			})
			if late && one == 0 && err == nil { // it had been done, and only its answer came too late
				one = len(part)
			}
			n, errs = n+one, append(errs, err)
		}
	}
	return n, errors.Join(errs...)
}

// loop runs a step again at once while it finds something to do, else when woken, and at least each
// time that every has passed.
func (s *Service) loop(ctx context.Context, name string, every time.Duration, wake <-chan struct{},
	step func(context.Context) (int, error)) {
	wait := time.Duration(0)
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-wake:
		case <-timer.C:
		}
		timer.Stop()
		n, err := step(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			s.opts.Logger.ErrorContext(ctx, "step failed; it will be tried again", "step", name, "err", err)
			wait = min(max(2*wait, every), 30*time.Second)
		case n > 0:
			wait = 0
		default:
			wait = every
		}
	}
}

// Moving what is kept: export and import.

// ExportFilter says what [Service.Export] writes. The zero filter is all of the Service's
// application.
type ExportFilter struct {
	// AllApps is all applications of the store, to move it; with Secrets also what the store keeps
	// for itself.
	AllApps bool

	// Driver is one driver, with the invite, requests, fixes and notices, the tasks and trips that
	// this person has or had, and the events and files of all these.
	Driver DriverID

	// Contact is whoever has this number, by its digits: the tasks, trips and requests that name
	// it, and the events and files of these. Another contact of the same task is left out of it,
	// with the address; notes, reasons and files of such a task are both's.
	Contact string

	// Secrets are the hashes of links, tokens, codes and keys, PINs, the addresses of browsers, and
	// the store's own secret where Options has none: without them whoever uses what was imported
	// has to be given new ones. They go with a whole application only.
	Secrets bool
}

// ExportVersion stands in the first line of an export.
const ExportVersion = 1

// An importer reads so many rows at most before it writes them.
const (
	importRows  = 4096
	importBytes = 4 << 20
	importLine  = 4 << 20 // the longest line; that of a file has 2.7 MiB

	// importMemo tells how far an import has come; see importer.memo.
	importMemo = "import"
)

// lineHead is what each line begins with.
type lineHead struct {
	Kind RowKind `json:"kind"`
	App  AppID   `json:"app,omitempty"`
}

type (
	lineBegin struct {
		lineHead
		Version int    `json:"version"`
		Of      string `json:"of"` // all, application, driver, contact
		Secrets bool   `json:"secrets"`
	}
	lineEnd struct {
		lineHead
		Rows int `json:"rows"`
	}
	lineSecret struct {
		lineHead
		Value string `json:"value"`
	}
	lineMemo struct {
		lineHead
		Name  string `json:"name"`
		Value []byte `json:"value"`
	}
	lineMarks struct {
		lineHead
		Version int64 `json:"last_version"`
		Notice  int64 `json:"last_notice"`
	}
	lineDriver struct {
		lineHead
		ID              DriverID          `json:"driver_id"`
		Person          string            `json:"person"`
		Version         int64             `json:"version"`
		Name            string            `json:"name,omitempty"`
		Mobile          string            `json:"mobile,omitempty"`
		Email           string            `json:"email,omitempty"`
		Available       bool              `json:"available,omitempty"`
		Properties      map[string]string `json:"properties,omitempty"`
		Route           []lineStop        `json:"route,omitempty"`
		LegAt           string            `json:"leg_at,omitempty"`
		MaxOpenTasks    *int              `json:"max_open_tasks,omitempty"`
		Silent          bool              `json:"silent,omitempty"`
		DutyAt          string            `json:"duty_at,omitempty"`
		OffDutyAt       string            `json:"off_duty_at,omitempty"`
		TokenGeneration int               `json:"token_generation,omitempty"`
		AppToken        string            `json:"app_token,omitempty"`
		IngestToken     string            `json:"ingest_token,omitempty"`
		Push            []linePush        `json:"push,omitempty"`
		CreatedAt       string            `json:"created_at"`
		UpdatedAt       string            `json:"updated_at,omitempty"`
		Position        *linePosition     `json:"position,omitempty"`
		LastNotice      int64             `json:"last_notice,omitempty"`
		PurgedNotice    int64             `json:"purged_notice,omitempty"`
	}
	lineStop struct {
		TaskID TaskID `json:"task_id"`
		Leg    Leg    `json:"leg"`
	}
	linePush struct {
		Endpoint string `json:"endpoint"`
		P256dh   string `json:"p256dh"`
		Auth     string `json:"auth"`
	}
	linePosition struct {
		Fix      *lineMeasured `json:"fix,omitempty"`
		Tail     string        `json:"tail,omitempty"`
		SeenAt   string        `json:"seen_at,omitempty"`
		Least    *float64      `json:"skew_least,omitempty"`
		Recent   *float64      `json:"skew_recent,omitempty"`
		Arrivals int           `json:"skew_arrivals,omitempty"`
		Unread   int           `json:"unread,omitempty"`
		Rewrites int           `json:"rewrites,omitempty"`
	}
	lineMeasured struct {
		LngLat   []float64 `json:"lnglat"`
		Time     string    `json:"time"`
		EventID  string    `json:"event_id,omitempty"`
		Accuracy *float64  `json:"accuracy,omitempty"`
		Speed    *float64  `json:"speed,omitempty"`
		Bearing  *float64  `json:"bearing,omitempty"`
		Battery  *float64  `json:"battery,omitempty"`
		Trusted  bool      `json:"trusted,omitempty"`
	}
	lineInvite struct {
		lineHead
		DriverID      DriverID `json:"driver_id"`
		Version       int64    `json:"version"`
		LinkHash      string   `json:"link,omitempty"`
		CodeHash      string   `json:"code,omitempty"`
		PastCodes     []string `json:"past_codes,omitempty"`
		NonceHash     string   `json:"nonce,omitempty"`
		CreatedAt     string   `json:"created_at"`
		LinkExpiresAt string   `json:"link_expires_at,omitempty"`
		CodeExpiresAt string   `json:"code_expires_at,omitempty"`
		JoinedAt      string   `json:"joined_at,omitempty"`
		Generation    int      `json:"generation,omitempty"`
	}
	lineRequest struct {
		lineHead
		DriverID   DriverID   `json:"driver_id"`
		TrackingID TrackingID `json:"tracking_id"`
		Message    string     `json:"message,omitempty"`
		Dest       *linePlace `json:"dest,omitempty"`
		Desc       string     `json:"desc,omitempty"`
		CreatedAt  string     `json:"created_at"`
	}
	lineKey struct {
		lineHead
		ID        string `json:"key_id"`
		Version   int64  `json:"version"`
		Name      string `json:"name,omitempty"`
		Hash      string `json:"hash,omitempty"`
		CreatedAt string `json:"created_at"`
		RevokedAt string `json:"revoked_at,omitempty"`
	}
	linePlace struct {
		LngLat   []float64    `json:"lnglat,omitempty"`
		Address  string       `json:"address,omitempty"`
		Customer *lineContact `json:"customer,omitempty"`
	}
	lineContact struct {
		Name   string `json:"name,omitempty"`
		Mobile string `json:"mobile,omitempty"`
	}
	lineLink struct {
		Generation int    `json:"generation,omitempty"`
		Hash       string `json:"hash,omitempty"`
		MadeAt     string `json:"made_at,omitempty"`
	}
	lineTask struct {
		lineHead
		ID               TaskID            `json:"task_id"`
		Version          int64             `json:"version"`
		Type             TaskType          `json:"type"` // 1 pickup, 2 drop, 3 both
		Status           TaskStatus        `json:"status"`
		Outcome          Outcome           `json:"outcome,omitempty"`
		Reason           string            `json:"reason,omitempty"`
		ReasonCode       ReasonCode        `json:"reason_code,omitempty"`
		Time             string            `json:"time,omitempty"`
		WindowFrom       string            `json:"window_from,omitempty"`
		WindowTo         string            `json:"window_to,omitempty"`
		Promise          string            `json:"promise,omitempty"`
		LateFor          string            `json:"late_for,omitempty"`
		AssignAt         string            `json:"assign_at,omitempty"`
		DueAt            string            `json:"due_at,omitempty"`
		Requires         map[string]string `json:"requires,omitempty"`
		Properties       map[string]string `json:"properties,omitempty"`
		Notes            string            `json:"notes,omitempty"`
		CustomerNote     string            `json:"customer_note,omitempty"`
		OrderID          string            `json:"order_id,omitempty"`
		Pickup           *linePlace        `json:"pickup,omitempty"`
		Drop             *linePlace        `json:"drop,omitempty"`
		DriverID         DriverID          `json:"driver_id,omitempty"`
		Person           string            `json:"person,omitempty"`
		AutoAssigned     bool              `json:"auto_assigned,omitempty"`
		Waiting          bool              `json:"waiting,omitempty"`
		WaitsSince       string            `json:"waits_since,omitempty"`
		Excluded         []DriverID        `json:"excluded,omitempty"`
		Proof            []ProofKind       `json:"proof,omitempty"`
		Proofs           []lineProof       `json:"proofs,omitempty"`
		ReceivedBy       string            `json:"received_by,omitempty"`
		DriverNote       string            `json:"driver_note,omitempty"`
		PIN              string            `json:"pin,omitempty"`
		WrongPINs        int               `json:"wrong_pins,omitempty"`
		CompletedFrom    *lineWhereabouts  `json:"completed_from,omitempty"`
		Stuck            []lineStuck       `json:"stuck,omitempty"`
		Settled          []lineStuck       `json:"settled,omitempty"`
		RetryOf          TaskID            `json:"retry_of,omitempty"`
		RetriedBy        TaskID            `json:"retried_by,omitempty"`
		Key              string            `json:"key,omitempty"`
		KeySum           string            `json:"key_sum,omitempty"`
		GeocodeAt        string            `json:"geocode_at,omitempty"`
		Link             *lineLink         `json:"link,omitempty"`
		CreatedAt        string            `json:"created_at"`
		AssignedAt       string            `json:"assigned_at,omitempty"`
		StartedAt        string            `json:"started_at,omitempty"`
		PickupArrivingAt string            `json:"pickup_arriving_at,omitempty"`
		PickupArrivedAt  string            `json:"pickup_arrived_at,omitempty"`
		PickedUpAt       string            `json:"picked_up_at,omitempty"`
		ArrivingAt       string            `json:"arriving_at,omitempty"`
		ArrivedAt        string            `json:"arrived_at,omitempty"`
		CompletedAt      string            `json:"completed_at,omitempty"`
		StepAt           string            `json:"step_at,omitempty"`
		UpdatedAt        string            `json:"updated_at,omitempty"`
		ErasedAt         string            `json:"erased_at,omitempty"`
	}
	lineProof struct {
		ID   string    `json:"id"`
		Kind ProofKind `json:"kind"`
		At   string    `json:"at,omitempty"`
		Type string    `json:"type"`
		Size int       `json:"size"`
		Sum  string    `json:"sum,omitempty"`
	}
	lineWhereabouts struct {
		LngLat []float64 `json:"lnglat"`
		Source string    `json:"source"`
		OffBy  float64   `json:"off_by"`
	}
	lineStuck struct {
		DriverID DriverID `json:"driver_id"`
		Step     string   `json:"step"`
		At       string   `json:"at,omitempty"`
		Why      string   `json:"why"`
	}
	lineTrip struct {
		lineHead
		ID            TripID     `json:"trip_id"`
		Version       int64      `json:"version"`
		TrackingID    TrackingID `json:"tracking_id"`
		DriverID      DriverID   `json:"driver_id"`
		Person        string     `json:"person,omitempty"`
		TaskID        TaskID     `json:"task_id,omitempty"`
		Status        TripStatus `json:"status"` // 1 active, 2 stopped, 3 discarded
		StartsAt      []float64  `json:"starts_at,omitempty"`
		EndsAt        []float64  `json:"ends_at,omitempty"`
		StartLocation string     `json:"start_location,omitempty"`
		EndLocation   string     `json:"end_location,omitempty"`
		Dest          *linePlace `json:"dest,omitempty"`
		StartedAt     string     `json:"started_at,omitempty"`
		EndedAt       string     `json:"ended_at,omitempty"`
		TTL           string     `json:"ttl,omitempty"`
		GeocodeAt     string     `json:"geocode_at,omitempty"`
		Link          *lineLink  `json:"link,omitempty"`
		CreatedAt     string     `json:"created_at"`
		UpdatedAt     string     `json:"updated_at,omitempty"`
	}
	lineFix struct {
		lineHead
		DriverID DriverID `json:"driver_id"`
		lineMeasured
		Mark   string `json:"mark"` // good, open, out, coarse, lost, forgotten
		Purged bool   `json:"purged,omitempty"`
	}
	lineNotice struct {
		lineHead
		ID         int64      `json:"notice_id"`
		DriverID   DriverID   `json:"driver_id"`
		Person     string     `json:"person,omitempty"`
		Type       NoticeKind `json:"type"`
		EventID    string     `json:"event_id,omitempty"`
		TaskID     TaskID     `json:"task_id,omitempty"`
		TrackingID TrackingID `json:"tracking_id,omitempty"`
		Time       string     `json:"time,omitempty"`
	}
	lineSubject struct {
		lineHead
		Subject lineOf `json:"subject"`
		Seq     int64  `json:"seq"`
	}
	lineOf struct {
		Kind SubjectKind `json:"kind"`
		ID   string      `json:"id"`
	}
	lineEvent struct {
		lineHead
		ID         string            `json:"event_id"`
		Type       EventType         `json:"type"`
		Time       string            `json:"time,omitempty"`
		RecordedAt string            `json:"recorded_at"`
		Actor      string            `json:"actor,omitempty"`
		Subject    lineOf            `json:"subject"`
		Person     string            `json:"person,omitempty"`
		Seq        int64             `json:"seq"`
		Data       map[string]string `json:"data,omitempty"`
		Notices    []lineTold        `json:"notices,omitempty"`
		Deliveries []lineDelivery    `json:"undelivered,omitempty"`
	}
	lineTold struct {
		ID         int64      `json:"notice_id"`
		DriverID   DriverID   `json:"driver_id"`
		Person     string     `json:"person,omitempty"`
		Type       NoticeKind `json:"type"`
		TaskID     TaskID     `json:"task_id,omitempty"`
		TrackingID TrackingID `json:"tracking_id,omitempty"`
	}
	lineDelivery struct {
		Outbox   string `json:"outbox"`
		Dead     bool   `json:"dead,omitempty"`
		Attempts int    `json:"attempts,omitempty"`
		RetryAt  string `json:"retry_at,omitempty"`
	}
	lineFile struct {
		lineHead
		ID     string `json:"file_id"`
		TaskID TaskID `json:"task_id"`
		Type   string `json:"type"`
		At     string `json:"at,omitempty"`
		Named  bool   `json:"named,omitempty"`
		Data   []byte `json:"data"` // base64
	}
)

// markWords are the words for marks of fixes.
var markWords = [...]string{
	MarkGood: "good", MarkOpen: "open", MarkOut: "out", MarkCoarse: "coarse", MarkLost: "lost",
	MarkForgotten: "forgotten",
}

// How values stand in lines.

func timeLine(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeWord)
}

func pointLine(p *LngLat) []float64 {
	if p == nil {
		return nil
	}
	return []float64{p.Lng, p.Lat}
}

func placeLine(p *Place) *linePlace {
	if p == nil {
		return nil
	}
	l := &linePlace{LngLat: pointLine(p.LngLat), Address: p.Address}
	if c := p.Customer; c != nil {
		l.Customer = &lineContact{c.Name, c.Mobile}
	}
	return l
}

func hashLine(h Hash) string {
	if h.IsZero() {
		return ""
	}
	return hexOf(h)
}

func stuckLines(steps []StuckStep) (lines []lineStuck) {
	for _, s := range steps {
		lines = append(lines, lineStuck{s.DriverID, s.Step, timeLine(s.At), s.Why})
	}
	return lines
}

func readingLine(r Reading) *float64 {
	if !r.Known {
		return nil
	}
	return &r.Value
}

func measuredLine(f Fix) lineMeasured {
	return lineMeasured{
		LngLat: pointLine(&f.LngLat), Time: timeLine(f.Time), EventID: f.EventID, Accuracy: readingLine(f.Accuracy),
		Speed: readingLine(f.Speed), Bearing: readingLine(f.Bearing), Battery: readingLine(f.Battery), Trusted: f.Trusted,
	}
}

func linkLine(l Link) *lineLink {
	if l == (Link{}) {
		return nil
	}
	return &lineLink{l.Generation, hashLine(l.Hash), timeLine(l.MadeAt)}
}

// lineOfRow is the line of a row, for encoding/json.
func lineOfRow(row Row) any {
	head := lineHead{row.Kind(), row.App}
	switch v := row.Value.(type) {
	case StoreSecret:
		return lineSecret{head, hashLine(v.Value)}
	case Memo:
		return lineMemo{head, v.Name, []byte(v.Value)}
	case Marks:
		return lineMarks{head, v.Version, v.Notice}
	case DriverRow:
		return lineOfDriver(head, v)
	case Invite:
		l := lineInvite{
			lineHead: head, DriverID: v.DriverID, Version: v.Version, LinkHash: hashLine(v.LinkHash),
			CodeHash: hashLine(v.CodeHash), NonceHash: hashLine(v.NonceHash), CreatedAt: timeLine(v.CreatedAt),
			LinkExpiresAt: timeLine(v.LinkExpiresAt), CodeExpiresAt: timeLine(v.CodeExpiresAt),
			JoinedAt: timeLine(v.JoinedAt), Generation: v.Generation,
		}
		for _, h := range v.PastCodes {
			l.PastCodes = append(l.PastCodes, hashLine(h))
		}
		return l
	case Request:
		return lineRequest{head, v.DriverID, v.TrackingID, v.Message, placeLine(v.Dest), v.Desc, timeLine(v.CreatedAt)}
	case Key:
		return lineKey{head, v.ID, v.Version, v.Name, hashLine(v.Hash), timeLine(v.CreatedAt), timeLine(v.RevokedAt)}
	case Task:
		return lineOfTask(head, v)
	case Trip:
		return lineTrip{
			lineHead: head, ID: v.ID, Version: v.Version, TrackingID: v.TrackingID, DriverID: v.DriverID,
			Person: v.Person, TaskID: v.TaskID, Status: v.Status, StartsAt: pointLine(v.StartsAt),
			EndsAt: pointLine(v.EndsAt), StartLocation: v.StartLocation, EndLocation: v.EndLocation,
			Dest: placeLine(v.Dest), StartedAt: timeLine(v.StartedAt), EndedAt: timeLine(v.EndedAt),
			TTL: timeLine(v.TTL), GeocodeAt: timeLine(v.GeocodeAt), Link: linkLine(v.Link),
			CreatedAt: timeLine(v.CreatedAt), UpdatedAt: timeLine(v.UpdatedAt),
		}
	case FixRow:
		mark := ""
		if v.Mark > 0 && int(v.Mark) < len(markWords) {
			mark = markWords[v.Mark]
		}
		return &lineFix{head, v.DriverID, measuredLine(v.Fix), mark, v.Purged}
	case Notice:
		return lineNotice{
			head, v.ID, v.DriverID, v.Person, v.Kind, v.EventID, v.TaskID, v.TrackingID, timeLine(v.Time),
		}
	case SubjectRow:
		return lineSubject{head, lineOf{v.Kind, v.ID}, v.Seq}
	case EventRow:
		l := lineEvent{
			lineHead: head, ID: v.ID, Type: v.Type, Time: timeLine(v.Time), RecordedAt: timeLine(v.RecordedAt),
			Actor: v.Actor, Subject: lineOf{v.Subject.Kind, v.Subject.ID}, Person: v.Person, Seq: v.Seq, Data: v.Data,
		}
		for _, n := range v.Notices {
			l.Notices = append(l.Notices, lineTold{n.ID, n.DriverID, n.Person, n.Kind, n.TaskID, n.TrackingID})
		}
		for _, d := range v.Deliveries {
			l.Deliveries = append(l.Deliveries, lineDelivery{d.Outbox, d.Dead, d.Attempts, timeLine(d.RetryAt)})
		}
		return l
	case FileRow:
		return lineFile{head, v.ID, v.TaskID, v.Type, timeLine(v.At), v.Named, v.Data}
	}
	return nil
}

func lineOfDriver(head lineHead, v DriverRow) lineDriver {
	p := v.Position
	l := lineDriver{
		lineHead: head, ID: v.ID, Person: v.Person, Version: v.Version, Name: v.Name, Mobile: v.Mobile, Email: v.Email,
		Available: v.Available, Properties: v.Properties, LegAt: timeLine(v.LegAt), MaxOpenTasks: v.MaxOpenTasks,
		Silent: v.Silent, DutyAt: timeLine(v.DutyAt), OffDutyAt: timeLine(v.OffDutyAt),
		TokenGeneration: v.TokenGeneration, AppToken: hashLine(v.AppToken), IngestToken: hashLine(v.IngestToken),
		CreatedAt: timeLine(v.CreatedAt), UpdatedAt: timeLine(v.UpdatedAt), LastNotice: v.LastNotice,
		PurgedNotice: v.PurgedNotice,
	}
	for _, s := range v.Route {
		l.Route = append(l.Route, lineStop(s))
	}
	for _, s := range v.Push {
		l.Push = append(l.Push, linePush{string(s.Endpoint), s.P256dh, string(s.Auth)})
	}
	if p != (Position{}) {
		l.Position = &linePosition{
			Tail: p.Tail, SeenAt: timeLine(p.SeenAt), Least: readingLine(p.Skew.Least),
			Recent: readingLine(p.Skew.Recent), Arrivals: p.Skew.Arrivals, Unread: p.Unread, Rewrites: p.Rewrites,
		}
		if p.Located() {
			l.Position.Fix = new(measuredLine(p.Fix))
		}
	}
	return l
}

func lineOfTask(head lineHead, v Task) lineTask {
	l := lineTask{
		lineHead: head, ID: v.ID, Version: v.Version, Type: v.Type, Status: v.Status, Outcome: v.Outcome,
		Reason: v.Reason, ReasonCode: v.ReasonCode, Time: timeLine(v.Time), WindowFrom: timeLine(v.Window.From),
		WindowTo: timeLine(v.Window.To), Promise: timeLine(v.Promise), LateFor: timeLine(v.LateFor),
		AssignAt: timeLine(v.AssignAt), DueAt: timeLine(v.DueAt), Requires: v.Requires, Properties: v.Properties,
		Notes: v.Notes, CustomerNote: v.CustomerNote, OrderID: v.OrderID, Pickup: placeLine(v.Pickup),
		Drop: placeLine(v.Drop), DriverID: v.DriverID, Person: v.Person, AutoAssigned: v.AutoAssigned,
		Waiting: v.Waiting, WaitsSince: timeLine(v.WaitsSince), Excluded: v.Excluded, Proof: v.Proof,
		ReceivedBy: v.ReceivedBy, DriverNote: v.DriverNote, PIN: string(v.PIN), WrongPINs: v.WrongPINs,
		RetryOf: v.RetryOf, RetriedBy: v.RetriedBy, Key: v.Key, KeySum: hashLine(v.KeySum),
		GeocodeAt: timeLine(v.GeocodeAt), Link: linkLine(v.Link), CreatedAt: timeLine(v.CreatedAt),
		AssignedAt: timeLine(v.AssignedAt), StartedAt: timeLine(v.StartedAt),
		PickupArrivingAt: timeLine(v.PickupArrivingAt), PickupArrivedAt: timeLine(v.PickupArrivedAt),
		PickedUpAt: timeLine(v.PickedUpAt), ArrivingAt: timeLine(v.ArrivingAt), ArrivedAt: timeLine(v.ArrivedAt),
		CompletedAt: timeLine(v.CompletedAt), StepAt: timeLine(v.StepAt), UpdatedAt: timeLine(v.UpdatedAt),
		ErasedAt: timeLine(v.ErasedAt),
	}
	for _, p := range v.Proofs {
		l.Proofs = append(l.Proofs, lineProof{p.ID, p.Kind, timeLine(p.At), p.Type, p.Size, hashLine(p.Sum)})
	}
	l.Stuck, l.Settled = stuckLines(v.Stuck), stuckLines(v.Settled)
	if w := v.CompletedFrom; w != nil {
		l.CompletedFrom = &lineWhereabouts{pointLine(&w.LngLat), w.Source, w.OffBy}
	}
	return l
}

// lineReader makes a row of a line. Its first error stands; it names the field.
type lineReader struct{ check }

func (r *lineReader) at(field, word string) time.Time {
	if word == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, word)
	if err != nil {
		r.fail(field, "must be a time such as 2006-01-02T15:04:05.000Z.")
		return time.Time{}
	}
	if r.time(field, t); t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// when is a time that must be there.
func (r *lineReader) when(field, word string) time.Time {
	if word == "" {
		r.fail(field, "is required.")
	}
	return r.at(field, word)
}

func (r *lineReader) lngLat(field string, p []float64) *LngLat {
	if p == nil {
		return nil
	}
	if len(p) != 2 || !(LngLat{p[0], p[1]}).Valid() {
		r.fail(field, "must be [longitude, latitude] in degrees.")
		return nil
	}
	return &LngLat{p[0], p[1]}
}

func (r *lineReader) hash(field, word string) (h Hash) {
	if word == "" {
		return Hash{}
	}
	b, err := hex.DecodeString(word)
	if err != nil || len(b) != len(h) {
		r.fail(field, "must be 64 hexadecimal digits.")
		return Hash{}
	}
	return Hash(b)
}

func (r *lineReader) id(field, id string) {
	if id == "" {
		r.fail(field, "is required.")
	}
}

// positive are numbers that begin with 1.
func (r *lineReader) positive(field string, n int64) {
	if n < 1 {
		r.fail(field, "must be 1 or more.")
	}
}

func (r *lineReader) place(field string, l *linePlace) *Place {
	if l == nil {
		return nil
	}
	p := &Place{LngLat: r.lngLat(field+".lnglat", l.LngLat), Address: l.Address}
	if c := l.Customer; c != nil {
		p.Customer = &Contact{c.Name, c.Mobile}
	}
	return p
}

func (r *lineReader) reading(v *float64) Reading {
	if v == nil {
		return Reading{}
	}
	return Known(*v)
}

func (r *lineReader) fix(field string, l lineMeasured) Fix {
	f := Fix{
		Time: r.when(field+"time", l.Time), EventID: l.EventID, Accuracy: r.reading(l.Accuracy), Speed: r.reading(l.Speed),
		Bearing: r.reading(l.Bearing), Battery: r.reading(l.Battery), Trusted: l.Trusted,
	}
	if p := r.lngLat(field+"lnglat", l.LngLat); p != nil {
		f.LngLat = *p
	} else {
		r.fail(field+"lnglat", "is required.")
	}
	return f
}

func (r *lineReader) link(l *lineLink) Link {
	if l == nil {
		return Link{}
	}
	return Link{l.Generation, r.hash("link.hash", l.Hash), r.at("link.made_at", l.MadeAt)}
}

// row reads a line of some kind. A kind that is not known is an error.
func (r *lineReader) row(kind RowKind, line []byte) Row {
	switch kind {
	case RowSecret:
		return readLine(r, line, func(l *lineSecret) (lineHead, RowValue) {
			r.id("value", l.Value)
			return l.lineHead, StoreSecret{r.hash("value", l.Value)}
		})
	case RowMemo:
		return readLine(r, line, func(l *lineMemo) (lineHead, RowValue) {
			r.id("name", l.Name)
			if isOwnMemo(l.Name) {
				r.fail("name", "is one that every store has for itself.")
			}
			return l.lineHead, Memo{l.Name, Secret(l.Value)}
		})
	case RowApplication:
		return readLine(r, line, func(l *lineMarks) (lineHead, RowValue) {
			return l.lineHead, Marks{l.Version, l.Notice}
		})
	case RowDriver:
		return readLine(r, line, func(l *lineDriver) (lineHead, RowValue) { return l.lineHead, r.driver(l) })
	case RowInvite:
		return readLine(r, line, func(l *lineInvite) (lineHead, RowValue) { return l.lineHead, r.invite(l) })
	case RowRequest:
		return readLine(r, line, func(l *lineRequest) (lineHead, RowValue) {
			r.id("driver_id", string(l.DriverID))
			r.id("tracking_id", string(l.TrackingID))
			return l.lineHead, Request{
				RequestID: RequestID{l.DriverID, l.TrackingID}, Message: l.Message, Dest: r.place("dest", l.Dest), Desc: l.Desc,
				CreatedAt: r.when("created_at", l.CreatedAt),
			}
		})
	case RowKey:
		return readLine(r, line, func(l *lineKey) (lineHead, RowValue) {
			r.id("key_id", l.ID)
			r.positive("version", l.Version)
			return l.lineHead, Key{
				ID: l.ID, Name: l.Name, Hash: r.hash("hash", l.Hash), CreatedAt: r.when("created_at", l.CreatedAt),
				RevokedAt: r.at("revoked_at", l.RevokedAt), Version: l.Version,
			}
		})
	case RowTask:
		return readLine(r, line, func(l *lineTask) (lineHead, RowValue) { return l.lineHead, r.task(l) })
	case RowTrip:
		return readLine(r, line, func(l *lineTrip) (lineHead, RowValue) { return l.lineHead, r.trip(l) })
	case RowFix:
		return readLine(r, line, func(l *lineFix) (lineHead, RowValue) {
			r.id("driver_id", string(l.DriverID))
			mark := FixMark(slices.Index(markWords[:], l.Mark))
			if mark < MarkGood {
				r.fail("mark", "must be one of "+strings.Join(markWords[MarkGood:], ", ")+".")
			}
			return l.lineHead, FixRow{l.DriverID, KeptFix{r.fix("", l.lineMeasured), mark, l.Purged}}
		})
	case RowNotice:
		return readLine(r, line, func(l *lineNotice) (lineHead, RowValue) {
			r.id("driver_id", string(l.DriverID))
			r.positive("notice_id", l.ID)
			return l.lineHead, Notice{
				ID: l.ID, DriverID: l.DriverID, Person: l.Person, Kind: l.Type, EventID: l.EventID, TaskID: l.TaskID,
				TrackingID: l.TrackingID, Time: r.when("time", l.Time),
			}
		})
	case RowSubject:
		return readLine(r, line, func(l *lineSubject) (lineHead, RowValue) {
			r.id("subject.kind", string(l.Subject.Kind))
			r.id("subject.id", l.Subject.ID)
			r.positive("seq", l.Seq)
			return l.lineHead, SubjectRow{Subject(l.Subject), l.Seq}
		})
	case RowEvent:
		return readLine(r, line, func(l *lineEvent) (lineHead, RowValue) { return l.lineHead, r.event(l) })
	case RowFile:
		return readLine(r, line, func(l *lineFile) (lineHead, RowValue) {
			r.id("file_id", l.ID)
			if len(l.Data) > MaxProofSize {
				r.fail("data", "has more bytes than a file can have.")
			}
			return l.lineHead, FileRow{l.ID, File{l.TaskID, l.Type, r.when("at", l.At), l.Data}, l.Named}
		})
	}
	r.fail("kind", "is none that this version knows.")
	return Row{}
}

// readLine decodes a line into L, and has of make a row of it.
func readLine[L any](r *lineReader, line []byte, of func(*L) (lineHead, RowValue)) Row {
	var l L
	if err := json.Unmarshal(line, &l); err != nil {
		var typ *json.UnmarshalTypeError
		if errors.As(err, &typ) && typ.Field != "" {
			r.fail(typ.Field, "has a value of another type.")
		} else {
			r.fail("the line", "is no JSON object.")
		}
		return Row{}
	}
	head, v := of(&l)
	switch kind := v.rowKind(); {
	case kind == RowSecret || kind == RowMemo:
		head.App = ""
	case head.App == "":
		r.fail("app", "is required.")
	}
	return Row{head.App, v}
}

func (r *lineReader) driver(l *lineDriver) DriverRow {
	r.id("driver_id", string(l.ID))
	r.positive("version", l.Version)
	v := DriverRow{LastNotice: l.LastNotice, PurgedNotice: l.PurgedNotice}
	v.Driver = Driver{
		ID: l.ID, Person: l.Person, Version: l.Version, Name: l.Name, Mobile: l.Mobile, Email: l.Email,
		Available: l.Available, Properties: l.Properties, LegAt: r.at("leg_at", l.LegAt), MaxOpenTasks: l.MaxOpenTasks,
		Silent: l.Silent, DutyAt: r.at("duty_at", l.DutyAt), OffDutyAt: r.at("off_duty_at", l.OffDutyAt),
		TokenGeneration: l.TokenGeneration, AppToken: r.hash("app_token", l.AppToken),
		IngestToken: r.hash("ingest_token", l.IngestToken), CreatedAt: r.when("created_at", l.CreatedAt),
		UpdatedAt: r.at("updated_at", l.UpdatedAt),
	}
	for _, s := range l.Route {
		v.Route = append(v.Route, Stop(s))
	}
	for _, s := range l.Push {
		v.Push = append(v.Push, PushSubscription{Secret(s.Endpoint), s.P256dh, Secret(s.Auth)})
	}
	if p := l.Position; p != nil {
		v.Position = Position{
			Tail: p.Tail, SeenAt: r.at("position.seen_at", p.SeenAt), Unread: p.Unread, Rewrites: p.Rewrites,
			Skew: Skew{r.reading(p.Least), r.reading(p.Recent), p.Arrivals},
		}
		if p.Fix != nil {
			v.Position.Fix = r.fix("position.fix.", *p.Fix)
		}
	}
	return v
}

func (r *lineReader) invite(l *lineInvite) Invite {
	r.id("driver_id", string(l.DriverID))
	r.positive("version", l.Version)
	v := Invite{
		DriverID: l.DriverID, LinkHash: r.hash("link", l.LinkHash), CodeHash: r.hash("code", l.CodeHash),
		CreatedAt: r.when("created_at", l.CreatedAt), LinkExpiresAt: r.at("link_expires_at", l.LinkExpiresAt),
		CodeExpiresAt: r.at("code_expires_at", l.CodeExpiresAt), JoinedAt: r.at("joined_at", l.JoinedAt),
		NonceHash: r.hash("nonce", l.NonceHash), Generation: l.Generation, Version: l.Version,
	}
	for _, h := range l.PastCodes {
		v.PastCodes = append(v.PastCodes, r.hash("past_codes", h))
	}
	return v
}

func (r *lineReader) task(l *lineTask) Task {
	r.id("task_id", string(l.ID))
	r.positive("version", l.Version)
	switch l.Status {
	case StatusCreated, StatusAssigned, StatusInProgress, StatusCompleted:
	default:
		r.fail("status", "must be created, assigned, in_progress or completed.")
	}
	if l.Type < TypePickup || l.Type > TypePickupAndDrop {
		r.fail("type", "must be 1, 2 or 3.")
	}
	v := Task{
		ID: l.ID, Version: l.Version, Type: l.Type, Status: l.Status, Outcome: l.Outcome, Reason: l.Reason,
		ReasonCode: l.ReasonCode, Time: r.at("time", l.Time),
		Window:  Window{r.at("window_from", l.WindowFrom), r.at("window_to", l.WindowTo)},
		Promise: r.at("promise", l.Promise), LateFor: r.at("late_for", l.LateFor), AssignAt: r.at("assign_at", l.AssignAt),
		DueAt: r.at("due_at", l.DueAt), Requires: l.Requires, Properties: l.Properties, Notes: l.Notes,
		CustomerNote: l.CustomerNote, OrderID: l.OrderID, Pickup: r.place("pickup", l.Pickup), Drop: r.place("drop", l.Drop),
		DriverID: l.DriverID, Person: l.Person, AutoAssigned: l.AutoAssigned, Waiting: l.Waiting,
		WaitsSince: r.at("waits_since", l.WaitsSince), Excluded: l.Excluded, Proof: l.Proof, ReceivedBy: l.ReceivedBy,
		DriverNote: l.DriverNote, PIN: Secret(l.PIN), WrongPINs: l.WrongPINs, RetryOf: l.RetryOf, RetriedBy: l.RetriedBy,
		Key: l.Key, KeySum: r.hash("key_sum", l.KeySum), GeocodeAt: r.at("geocode_at", l.GeocodeAt), Link: r.link(l.Link),
		CreatedAt: r.when("created_at", l.CreatedAt), AssignedAt: r.at("assigned_at", l.AssignedAt),
		StartedAt: r.at("started_at", l.StartedAt), PickupArrivingAt: r.at("pickup_arriving_at", l.PickupArrivingAt),
		PickupArrivedAt: r.at("pickup_arrived_at", l.PickupArrivedAt), PickedUpAt: r.at("picked_up_at", l.PickedUpAt),
		ArrivingAt: r.at("arriving_at", l.ArrivingAt), ArrivedAt: r.at("arrived_at", l.ArrivedAt),
		CompletedAt: r.at("completed_at", l.CompletedAt), StepAt: r.at("step_at", l.StepAt),
		UpdatedAt: r.at("updated_at", l.UpdatedAt), ErasedAt: r.at("erased_at", l.ErasedAt),
	}
	for _, p := range l.Proofs {
		v.Proofs = append(v.Proofs, Proof{p.ID, p.Kind, r.at("proofs.at", p.At), p.Type, p.Size, r.hash("proofs.sum", p.Sum)})
	}
	v.Stuck, v.Settled = r.stuck("stuck.at", l.Stuck), r.stuck("settled.at", l.Settled)
	if w := l.CompletedFrom; w != nil {
		v.CompletedFrom = &Whereabouts{Source: w.Source, OffBy: w.OffBy}
		if p := r.lngLat("completed_from.lnglat", w.LngLat); p != nil {
			v.CompletedFrom.LngLat = *p
		}
	}
	return v
}

func (r *lineReader) stuck(at string, lines []lineStuck) (steps []StuckStep) {
	for _, l := range lines {
		steps = append(steps, StuckStep{l.DriverID, l.Step, r.at(at, l.At), l.Why})
	}
	return steps
}

func (r *lineReader) trip(l *lineTrip) Trip {
	r.id("trip_id", string(l.ID))
	r.positive("version", l.Version)
	if l.Status < TripActive || l.Status > TripDiscarded {
		r.fail("status", "must be 1, 2 or 3.")
	}
	return Trip{
		ID: l.ID, Version: l.Version, TrackingID: l.TrackingID, DriverID: l.DriverID, Person: l.Person, TaskID: l.TaskID,
		Status: l.Status, StartsAt: r.lngLat("starts_at", l.StartsAt), EndsAt: r.lngLat("ends_at", l.EndsAt),
		StartLocation: l.StartLocation, EndLocation: l.EndLocation, Dest: r.place("dest", l.Dest),
		StartedAt: r.at("started_at", l.StartedAt), EndedAt: r.at("ended_at", l.EndedAt), TTL: r.at("ttl", l.TTL),
		GeocodeAt: r.at("geocode_at", l.GeocodeAt), Link: r.link(l.Link), CreatedAt: r.when("created_at", l.CreatedAt),
		UpdatedAt: r.at("updated_at", l.UpdatedAt),
	}
}

func (r *lineReader) event(l *lineEvent) EventRow {
	r.id("event_id", l.ID)
	r.id("subject.kind", string(l.Subject.Kind))
	r.id("subject.id", l.Subject.ID)
	r.positive("seq", l.Seq)
	v := EventRow{Event: Event{
		ID: l.ID, Type: l.Type, Time: r.at("time", l.Time), RecordedAt: r.when("recorded_at", l.RecordedAt), Actor: l.Actor,
		Subject: Subject(l.Subject), Person: l.Person, Seq: l.Seq, Data: l.Data,
	}}
	for _, n := range l.Notices {
		v.Notices = append(v.Notices, Notice{
			ID: n.ID, DriverID: n.DriverID, Person: n.Person, Kind: n.Type, EventID: l.ID, TaskID: n.TaskID,
			TrackingID: n.TrackingID, Time: v.RecordedAt,
		})
	}
	outboxes := map[string]bool{}
	for _, d := range l.Deliveries {
		if outboxes[d.Outbox] {
			r.fail("undelivered.outbox", "is named twice.")
		}
		outboxes[d.Outbox] = true
		v.Deliveries = append(v.Deliveries, DeliveryRow{d.Outbox, d.Dead, d.Attempts, r.at("undelivered.retry_at", d.RetryAt)})
	}
	return v
}

// withoutSecrets is a row that gives nobody access.
func withoutSecrets(v RowValue) RowValue {
	switch v := v.(type) {
	case DriverRow:
		v.AppToken, v.IngestToken, v.Push = Hash{}, Hash{}, nil
		return v
	case Invite:
		v.LinkHash, v.CodeHash, v.NonceHash, v.PastCodes = Hash{}, Hash{}, Hash{}, nil
		return v
	case Key:
		v.Hash = Hash{}
		return v
	case Task:
		v.Link.Hash, v.PIN = Hash{}, ""
		return v
	case Trip:
		v.Link.Hash = Hash{}
		return v
	}
	return v
}

// Export writes what f says as JSON Lines, one object in each: first
// {"kind":"export","version":1,…}, then a row in each line, and at last {"kind":"end","rows":…},
// without which it is not whole. What stands in a row's line is in the package doc. However much
// there is, it takes little memory.
//
// On SQLite and PostgreSQL all of it is of one moment, and nobody is held up. In memory the rows of
// one application are of one moment, but what fixes, notices and events were added meanwhile may be
// there or not; so stop what writes before you move a store. The bytes of files are those that the
// store keeps: what is in Options.Files stays there.
// Codes: ErrInvalid; ErrNotFound (the driver).
func (s *Service) Export(ctx context.Context, w io.Writer, f ExportFilter) (err error) {
	defer s.observe(&ctx, "Export").end(&err)
	return s.op(ctx, "Export", func(time.Time) error { return s.export(ctx, w, f) })
}

func (s *Service) export(ctx context.Context, w io.Writer, f ExportFilter) error {
	e := &exporter{
		filter: f, of: "application", out: bufio.NewWriterSize(w, 1<<16), subjects: map[Subject]bool{},
		ownSecret: s.opts.Secret != nil,
	}
	q := RowQuery{App: s.app}
	switch {
	case f.Driver != "" && f.Contact != "":
		return invalid("contact", "is another person than the driver; export one of them at a time.")
	case f.AllApps && (f.Driver != "" || f.Contact != ""):
		return invalid("all_apps", "goes with neither a driver nor a contact, who are of one application.")
	case f.Secrets && (f.Driver != "" || f.Contact != ""):
		return invalid("secrets", "go with a whole application only.")
	case f.AllApps:
		e.of, q.App = "all", ""
	case f.Driver != "":
		d, err := s.driver(ctx, f.Driver)
		if err != nil {
			return err
		}
		e.of, e.person, q.Driver = "driver", d.Person, f.Driver
		e.subjects[d.subject()] = true
		q.Kinds = []RowKind{
			RowDriver, RowInvite, RowRequest, RowTask, RowTrip, RowFix, RowNotice, RowSubject, RowEvent, RowFile,
		}
	case f.Contact != "":
		if e.digits = digitsOf(f.Contact); e.digits == "" {
			return invalid("contact", "must have digits.")
		}
		e.of, q.Kinds = "contact", []RowKind{RowRequest, RowTask, RowTrip, RowSubject, RowEvent, RowFile}
	}
	e.json = json.NewEncoder(e.out)
	e.json.SetEscapeHTML(false)
	begin := lineBegin{lineHead: lineHead{Kind: "export"}, Version: ExportVersion, Of: e.of, Secrets: f.Secrets}
	if err := e.json.Encode(begin); err != nil {
		return written(err)
	}
	if f.Secrets && q.App != "" {
		if err := e.all(s.store.Rows(ctx, RowQuery{Kinds: []RowKind{RowSecret}})); err != nil {
			return err
		}
	}
	if err := e.all(s.store.Rows(ctx, q)); err != nil {
		return err
	}
	if err := e.json.Encode(lineEnd{lineHead{Kind: "end"}, e.rows}); err != nil {
		return written(err)
	}
	return written(e.out.Flush())
}

// written is the error of whoever takes what is exported.
func written(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: ErrUnavailable, Message: "The export could not be written to its end.", Err: err}
}

// exporter writes rows.
type exporter struct {
	filter    ExportFilter
	of        string
	person    string           // of the filter's driver
	digits    string           // of the filter's contact
	subjects  map[Subject]bool // what was written of one driver or contact, and events and files are about
	ownSecret bool             // the store's is not used
	out       *bufio.Writer
	json      *json.Encoder
	fixes     []byte
	rows      int
}

func (e *exporter) all(rows iter.Seq2[Row, error]) error {
	for row, err := range rows {
		if err != nil {
			return err
		}
		if row.Value = e.pick(row.Value); row.Value == nil {
			continue
		}
		e.rows++
		if f, ok := row.Value.(FixRow); ok { // of which there are many
			e.fixes = appendFixLine(e.fixes[:0], row.App, f)
			_, err = e.out.Write(e.fixes)
		} else {
			err = e.json.Encode(lineOfRow(row))
		}
		if err != nil {
			return written(err)
		}
	}
	return nil
}

// pick is what is to be written of a row; nil: nothing.
func (e *exporter) pick(v RowValue) RowValue {
	switch v := v.(type) {
	case Memo:
		if !e.filter.Secrets || isOwnMemo(v.Name) {
			return nil
		}
	case StoreSecret:
		if !e.filter.Secrets || e.ownSecret {
			return nil
		}
	}
	if !e.filter.Secrets {
		v = withoutSecrets(v)
	}
	if e.of == "driver" || e.of == "contact" {
		return e.pickOf(v)
	}
	return v
}

// pickOf is pick for one driver or contact.
func (e *exporter) pickOf(v RowValue) RowValue {
	switch v := v.(type) {
	case Request:
		if e.of == "contact" && !e.names(v.Dest) {
			return nil
		}
	case Task:
		if e.of == "driver" && (v.DriverID != e.filter.Driver || v.Person != e.person) ||
			e.of == "contact" && !e.names(v.Pickup) && !e.names(v.Drop) {
			return nil
		}
		e.subjects[Subject{KindTask, string(v.ID)}] = true
		if e.of == "contact" {
			v.Pickup, v.Drop = e.alone(v.Pickup), e.alone(v.Drop)
		}
		return v
	case Trip:
		if e.of == "driver" && (v.DriverID != e.filter.Driver || v.Person != e.person) ||
			e.of == "contact" && !e.names(v.Dest) && !e.subjects[Subject{KindTask, string(v.TaskID)}] {
			return nil
		}
		e.subjects[Subject{KindTrip, string(v.ID)}] = true
		if e.of == "contact" {
			if v.StartLocation = ""; !e.names(v.Dest) {
				v.EndLocation = ""
			}
			v.Dest = e.alone(v.Dest)
		}
		return v
	case SubjectRow:
		if !e.subjects[v.Subject] {
			return nil
		}
	case EventRow:
		if !e.subjects[v.Subject] {
			return nil
		}
		v.Deliveries = nil // they are the store's that has them
		return v
	case FileRow:
		if !e.subjects[Subject{KindTask, string(v.TaskID)}] {
			return nil
		}
	}
	return v
}

// names reports whether a place is the contact's.
func (e *exporter) names(p *Place) bool {
	return p != nil && p.Customer != nil && digitsOf(p.Customer.Mobile) == e.digits
}

// alone is a place without the contact and the address of somebody else.
func (e *exporter) alone(p *Place) *Place {
	if p == nil || e.names(p) {
		return p
	}
	p = p.clone()
	p.Customer, p.Address = nil, ""
	return p
}

// appendFixLine is what encoding/json makes of a lineFix, in less time.
func appendFixLine(b []byte, app AppID, f FixRow) []byte {
	text := func(name, v string) {
		b = append(append(b, name...), '"')
		plain := true
		for i := range len(v) {
			if c := v[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
				plain = false
			}
		}
		if plain {
			b = append(append(b, v...), '"')
			return
		}
		quoted, _ := json.Marshal(v) // of a text: cannot fail
		b = append(b[:len(b)-1], quoted...)
	}
	number := func(name string, v float64) {
		b = strconv.AppendFloat(append(b, name...), v, 'g', -1, 64)
	}
	known := func(name string, r Reading) {
		if r.Known {
			number(name, r.Value)
		}
	}
	b = append(b, `{"kind":"fix"`...)
	text(`,"app":`, string(app))
	text(`,"driver_id":`, string(f.DriverID))
	number(`,"lnglat":[`, f.LngLat.Lng)
	number(`,`, f.LngLat.Lat)
	b = f.Time.UTC().AppendFormat(append(b, `],"time":"`...), timeWord)
	b = append(b, '"')
	if f.EventID != "" {
		text(`,"event_id":`, f.EventID)
	}
	known(`,"accuracy":`, f.Accuracy)
	known(`,"speed":`, f.Speed)
	known(`,"bearing":`, f.Bearing)
	known(`,"battery":`, f.Battery)
	if f.Trusted {
		b = append(b, `,"trusted":true`...)
	}
	if f.Mark > 0 && int(f.Mark) < len(markWords) {
		text(`,"mark":`, markWords[f.Mark])
	}
	if f.Purged {
		b = append(b, `,"purged":true`...)
	}
	return append(b, "}\n"...)
}

// Import reads what [Service.Export] has written, from any store, and writes it into this one,
// where nothing of it may exist: of an application that was exported whole there must be nothing,
// of others none of the rows, and of the store's memos none with another value. It writes some
// thousand rows at a time, all or none of these, fires no event, and returns how many there are once
// it is through. What is undelivered stays so; what comes is told to nobody.
//
// Where it breaks off, or its answer is lost, run it again with the same export: it goes on where
// it was, and where only the answer was missing it gives that one. Until then another export is
// ErrConflict. Where it meets a conflict itself, the batches before stay: it goes on once what is in
// the way is gone, and another export may be imported beside them. Until it has returned without an
// error nothing else is to be done with what it brings. Afterwards an import of the same export is a
// new one, and ErrConflict where something of it is still there; the message then says that one was
// through, for those whose answer was lost at the last moment.
//
// The Service that [New] has made imports whatever there is in the export. One of [Service.ForApp]
// writes into its application only: a line of another one, or of none, as a secret or a memo is, is
// refused, and with it all of its batch.
//
// With the secrets links, tokens, codes and keys go on. Where they come of the store's own secret,
// that one takes the place of this store's, which must have no applications then; other processes
// that have it open begin anew. Where they come of Options.Secret, it has to be the same one here.
// Codes: ErrInvalid (its message names line and field); ErrConflict.
func (s *Service) Import(ctx context.Context, r io.Reader) (rows int, err error) {
	defer s.observe(&ctx, "Import").end(&err)
	in := &importer{Service: s, ctx: ctx, in: bufio.NewReaderSize(r, 1<<16), sum: sha256.New()}
	if err := in.run(); err != nil {
		in.refused(err)
		return 0, s.failure(ctx, "Import", err)
	}
	in.through()
	return in.rows, nil
}

// importer reads lines and writes rows.
type importer struct {
	*Service
	ctx  context.Context
	in   *bufio.Reader
	line []byte // the last one, if it did not fit into the reader
	at   int    // its number
	rows int    // how many lines of rows were read
	sum  hash.Hash
	end  bool // the last line was read

	kept []byte   // what the memo has
	is   progress // of this import, as it is kept; zero: nothing is
	was  bool     // the same export, by its first batch, was imported before
}

// progress is how far an import has come, in a memo.
type progress struct {
	Rows    int    `json:"rows"`
	First   []byte `json:"first"`             // the sum of the first batch, by which an export is known
	Sum     []byte `json:"sum"`               // that of all so far
	Done    bool   `json:"done"`              // all is written
	Through bool   `json:"through,omitempty"` // and answered, as far as can be known
	Refused bool   `json:"refused,omitempty"` // what comes next was a conflict
}

// wrong is an error of the present line.
func (i *importer) wrong(err error) error { return wrongAt(i.at, err) }

// wrongAt is an error of a line.
func wrongAt(line int, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	return &Error{Code: e.Code, Field: e.Field, Message: fmt.Sprintf("line %d: %s", line, e.Message), Err: e.Err}
}

// next reads a line, without its end. It stands until the next call.
func (i *importer) next() ([]byte, error) {
	i.at++
	i.line = i.line[:0]
	for {
		part, err := i.in.ReadSlice('\n')
		if len(i.line)+len(part) > importLine {
			return nil, i.wrong(&Error{Code: ErrTooLarge, Message: "it is longer than 4 MiB."})
		}
		switch {
		case err == nil && len(i.line) == 0:
			return bytes.TrimSuffix(part, []byte("\n")), nil
		case err == nil:
			i.line = append(i.line, part...)
			return bytes.TrimSuffix(i.line, []byte("\n")), nil
		case err == bufio.ErrBufferFull:
			i.line = append(i.line, part...)
		case err == io.EOF:
			// A last line without an end may have been cut.
			return nil, i.wrong(&Error{
				Code: ErrInvalid, Message: "the export ends before its last line, of kind end; get the whole of it and import it again.",
			})
		default:
			return nil, &Error{Code: ErrUnavailable, Message: "The export could not be read to its end.", Err: err}
		}
	}
}

// kindOf is the kind of a line.
func kindOf(line []byte) (RowKind, error) {
	if rest, ok := bytes.CutPrefix(line, []byte(`{"kind":"`)); ok {
		if kind, _, ok := bytes.Cut(rest, []byte(`"`)); ok && !bytes.Contains(kind, []byte(`\`)) {
			return RowKind(kind), nil
		}
	}
	var head lineHead
	if err := json.Unmarshal(line, &head); err != nil {
		return "", invalid("the line", "is no JSON object.")
	}
	return head.Kind, nil
}

// begin reads the first line.
func (i *importer) begin() error {
	line, err := i.next()
	if err != nil {
		return err
	}
	var begin lineBegin
	if json.Unmarshal(line, &begin) != nil || begin.Kind != "export" {
		return i.wrong(&Error{Code: ErrInvalid, Field: "kind", Message: "this is no export: the first line must be of kind export."})
	}
	if begin.Version != ExportVersion {
		return i.wrong(&Error{
			Code: ErrInvalid, Field: "version",
			Message: fmt.Sprintf("version must be %d: the export is of another version of this program, which has to import it.", ExportVersion),
		})
	}
	return nil
}

// rowLine reads the next line of a row; nil at the end.
func (i *importer) rowLine() ([]byte, RowKind, error) {
	line, err := i.next()
	if err != nil {
		return nil, "", err
	}
	if !utf8.Valid(line) {
		return nil, "", i.wrong(&Error{Code: ErrInvalid, Message: "it is not valid UTF-8."})
	}
	kind, err := kindOf(line)
	if err != nil {
		return nil, "", i.wrong(err)
	}
	if kind == "end" {
		var end lineEnd
		if json.Unmarshal(line, &end) != nil || end.Rows != i.rows {
			return nil, "", i.wrong(invalid("rows", "must be how many lines there are of rows; some are missing, or there are too many."))
		}
		i.end = true
		return nil, "", nil
	}
	i.rows++
	i.sum.Write(line)
	i.sum.Write([]byte{'\n'})
	return line, kind, nil
}

// batch reads rows that are to be written together.
func (i *importer) batch() (batch []Row, err error) {
	for size := 0; len(batch) < importRows && size < importBytes; {
		line, kind, err := i.rowLine()
		if err != nil || line == nil {
			return batch, err
		}
		var r lineReader
		row := r.row(kind, line)
		if r.err == nil && bytes.Contains(line, []byte(`\u0000`)) && holdsNUL(line) {
			r.fail("the line", "holds the character U+0000.")
		}
		if i.alone && r.err == nil {
			i.checkOwn(&r, row)
		}
		if r.err != nil {
			return nil, i.wrong(r.err)
		}
		batch, size = append(batch, row), size+len(line)
	}
	return batch, nil
}

// checkOwn refuses a row that is not of the Service's application.
func (i *importer) checkOwn(r *lineReader, row Row) {
	switch row.App {
	case i.app:
	case "":
		r.fail("kind", fmt.Sprintf("is %s, which is of no application: this import is for %q alone.", row.Kind(), i.app))
	default:
		r.fail("app", fmt.Sprintf("must be %q: this import is for that application alone.", i.app))
	}
}

// memo is the name of the memo that tells how far the import has come. Each application has its own.
func (i *importer) memo() string {
	if i.alone {
		return importMemo + " " + string(i.app)
	}
	return importMemo
}

// isOwnMemo reports whether a memo is a store's own, which does not move: how far an import has come,
// and since when there are processes to hear of drivers.
func isOwnMemo(name string) bool {
	return name == hearingMemo || name == importMemo || strings.HasPrefix(name, importMemo+" ")
}

// holdsNUL reports whether a text in a line holds one: what looks like it may be a backslash and
// more.
func holdsNUL(line []byte) bool {
	for words := json.NewDecoder(bytes.NewReader(line)); ; {
		word, err := words.Token()
		if err != nil {
			return false
		}
		if text, ok := word.(string); ok && strings.ContainsRune(text, 0) {
			return true
		}
	}
}

func (i *importer) run() error {
	if err := i.begin(); err != nil {
		return err
	}
	batch, err := i.batch()
	if err != nil {
		return err
	}
	first := i.sum.Sum(nil)
	if i.kept, err = i.store.Memo(i.ctx, i.memo()); err != nil {
		return err
	}
	if len(i.kept) > 0 {
		var before progress
		if err := json.Unmarshal(i.kept, &before); err != nil {
			return err
		}
		same := bytes.Equal(before.First, first)
		switch {
		case before.Through:
			i.was = same
		case same:
			if batch, err = i.resume(before); errors.Is(err, ErrConflict) && before.Refused {
				i.keep([]byte{}) // the next one meets what is there
			}
			if err != nil || before.Done {
				return err
			}
		case !before.Done && !before.Refused:
			return &Error{
				Code:    ErrConflict,
				Message: "The store holds a part of another export. Go on with that one, or begin with an empty store.",
			}
		}
	}
	for {
		if len(batch) > 0 || i.end {
			is := progress{Rows: i.rows, First: first, Sum: i.sum.Sum(nil), Done: i.end}
			if err := i.write(batch, is); err != nil {
				return i.before(err)
			}
		}
		if i.end {
			return nil
		}
		if batch, err = i.batch(); err != nil {
			return err
		}
	}
}

// before is an error of the first batch, which says whether the same export was imported before.
func (i *importer) before(err error) error {
	var e *Error
	if !i.was || i.is.Rows > 0 || !errors.As(err, &e) || e.Code != ErrConflict {
		return err
	}
	said := *e
	said.Message += " An import of an export that begins like this one was through."
	return &said
}

// through notes that an import was answered. Where that fails, the next import of the same export
// has the same answer.
func (i *importer) through() {
	i.is.Through = true
	if is, err := json.Marshal(i.is); err == nil {
		i.keep(is)
	}
}

// refused notes that an import has met a conflict after something of it was written: nobody has to go
// on with it.
func (i *importer) refused(err error) {
	if !errors.Is(err, ErrConflict) || i.is.Rows == 0 {
		return
	}
	i.is.Refused = true
	if is, err := json.Marshal(i.is); err == nil && !bytes.Equal(is, i.kept) {
		i.keep(is)
	}
}

// keep replaces what the memo has, unless somebody else has.
func (i *importer) keep(is []byte) {
	err := i.store.Restore(i.ctx, Restoring{Memo: i.memo(), Was: i.kept, Is: is})
	if err != nil && !errors.Is(err, ErrConflict) {
		i.opts.Logger.WarnContext(i.ctx, "what became of an import could not be noted", "err", err)
	}
}

// resume passes over the rows that are there, and reads the first batch after them. The first batch
// of all was read.
func (i *importer) resume(before progress) (batch []Row, err error) {
	for !i.end && i.rows < before.Rows {
		if _, _, err := i.rowLine(); err != nil {
			return nil, err
		}
	}
	if i.rows != before.Rows || !bytes.Equal(i.sum.Sum(nil), before.Sum) || before.Done && !i.end && !i.over() {
		return nil, &Error{
			Code: ErrConflict, Message: "The store holds a part of an export that begins like this one, and goes on in another way.",
		}
	}
	if i.is = before; before.Done || i.end {
		return nil, nil
	}
	return i.batch()
}

// over reports whether there is only the last line left.
func (i *importer) over() bool {
	line, _, err := i.rowLine()
	return err == nil && line == nil
}

// write writes a batch, and how far that is.
func (i *importer) write(batch []Row, is progress) error {
	first, last := i.at-len(batch), i.at
	if i.end {
		last--
	} else {
		first++
	}
	var had *secret
	kept := batch[:0]
	for k, row := range batch {
		switch v := row.Value.(type) {
		case StoreSecret:
			need, err := i.needs(v)
			if err != nil {
				return wrongAt(first+k, err)
			}
			if !need {
				continue
			}
			had = &secret{key: v.Value[:]}
		case Marks:
			if err := i.nothingOf(row.App); err != nil {
				return wrongAt(first+k, err)
			}
		}
		kept = append(kept, row)
	}
	memo, err := json.Marshal(is)
	if err != nil {
		return err
	}
	err = i.store.Restore(i.ctx, Restoring{Rows: kept, Memo: i.memo(), Was: i.kept, Is: memo})
	var e *Error
	switch {
	case errors.Is(err, ErrConflict):
		return &Error{
			Code: ErrConflict, Err: err,
			Message: fmt.Sprintf("lines %d to %d: something of these rows is in the store already, or what they belong to is not. None of them was written.", first, last),
		}
	case errors.As(err, &e) && e.Code == ErrInvalid:
		return &Error{Code: ErrInvalid, Err: err, Message: fmt.Sprintf("lines %d to %d: %s", first, last, e.Message)}
	}
	if err != nil {
		return err
	}
	if i.kept, i.is = memo, is; had != nil && i.opts.Secret == nil {
		i.secret.Store(had)
	}
	return nil
}

// needs reports whether the store has another secret, which nothing may have come of.
func (i *importer) needs(v StoreSecret) (bool, error) {
	now, err := i.store.Secret(i.ctx)
	if err != nil || bytes.Equal(now, v.Value[:]) {
		return false, err
	}
	var apps []AppID
	for row, err := range i.store.Rows(i.ctx, RowQuery{Kinds: []RowKind{RowApplication}}) {
		if err != nil {
			return false, err
		}
		apps = append(apps, row.App)
	}
	for _, app := range apps {
		if err := i.nothingOf(app); err != nil {
			return false, &Error{
				Code: ErrConflict, Err: err,
				Message: "The store has a secret of its own that its applications use. Import into an empty store, or without secrets.",
			}
		}
	}
	return true, nil
}

// nothingOf is a conflict if there is something of an application.
func (i *importer) nothingOf(app AppID) error {
	for row, err := range i.store.Rows(i.ctx, RowQuery{App: app}) {
		if err != nil {
			return err
		}
		if row.Kind() != RowApplication {
			return &Error{
				Code: ErrConflict, Message: "The store has something of the application already. Import into a store that has nothing of it.",
			}
		}
	}
	return nil
}
