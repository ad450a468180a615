// Package store is for those who write a store: it has no code, and tells what the others have.
//
// Three stores are here: [memory] and [sqlite] of one process, [postgres] of many. Another one
// implements tracking.Store, whose comments are the contract, and shows by [storetest.Run] that it keeps it: the suite has a check for each
// sentence, and a failing one names the rule. This page has the words first, then the methods, the
// order of work, and what each call may cost.
//
// # Words
//
//   - A row is what is kept of one task, trip, driver, invite, key or trip request of one
//     application. Rows of different applications never meet, also where their ids are the same.
//   - A row's version counts its changes. Who replaces a row names the version that he has read; at
//     another one he is refused, reads again and decides again. Nobody waits for a lock that
//     somebody else holds while he thinks.
//   - A sequence number (Seq) is given to each task, trip and driver when it is inserted, and
//     orders those of one moment. An event's is another one: it counts the events of its subject,
//     1, 2, 3 …, without gaps.
//   - A subject is what an event is about: one task, trip or driver.
//   - A changeset is all that one step of the service changes: rows, fixes, and the events that
//     tell of it.
//   - A fix is one position by a phone. Which of a driver's fixes are good is decided by
//     tracking.FixBatch.Record, never by a store: that keeps them by time, with the mark that
//     Record gives each, and hands back what Record asks for.
//   - A good fix is one that its neighbours in time bear out. Only these are in a path, and the
//     newest of them is where the driver is.
//   - The position of a driver is what Record has made of the fixes. It is no part of the row:
//     fixes change it without a new version.
//   - A person is who had a driver's id from its insertion to its deletion. The next one with the
//     id is another.
//   - An outbox is a name under which events wait to be delivered, with a queue for each subject.
//     What becomes of an event in one outbox is nothing to another.
//   - A lease gives a subject's queue in an outbox to one owner for a while. Nobody else is given its
//     events before that is over.
//   - The store's clock says when a while is over. A store of one process has none of its own, and
//     goes by the Now that comes with a call.
//   - A delivery ends delivered or dead: given up, and out of the way of the next event of its
//     subject.
//   - A text is valid UTF-8 without U+0000. Commit, RecordFixes, SetMemo, Restore and Files.Put refuse any
//     other with ErrInvalid, before anything is written, and a look-up by one finds nothing.
//   - A passing clash is a ConflictError without a kind, for stores whose transactions may fail
//     though no row has moved. The service reads and decides again, as after any other.
//   - A sweep is a call that looks over all applications: Due, WaitingApps, LeaseEvents, Stats, Purge.
//   - A claim keeps what Due and Matches have handed out from other processes for a while. It spares
//     work and guards nothing, so a store of one process keeps it in memory.
//   - A file is the bytes of one proof of a task. It is put before the task's row names it, by an id
//     that is the service's; one that no row comes to name is an orphan, which Purge removes.
//
// # Methods
//
//	method                                 what it does                         shown by
//	Commit                                 applies a changeset, all or nothing  Commit/…, unique/…, DeleteDrivers/…,
//	                                                                            DeleteTasks/…, DropFiles/…
//	RecordFixes                            keeps fixes, moves the driver        RecordFixes/…
//	Task, Trip, Driver, Invite, Request    reads one row by its id              Store/…, Commit/…
//	TaskByKey, ActiveTrip                  reads one by a unique value          TaskByKey/…, ActiveTrip/…
//	TaskByLink, TripByLink, InviteByHash,
//	KeyByHash, DriverByToken               finds a row of any application       TaskByLink/…, TripByLink/…, …
//	Tasks, Trips, Drivers                  a page of a list                     Tasks/…, Trips/…, Drivers/…
//	TaskCounts                             how many tasks are how far           TaskCounts/…
//	Stats                                  numbers to watch, of all             Stats/…
//	Keys, Requests                         a whole list, which is short         Keys/…, Requests/…
//	Fixes                                  the good fixes of a range            Fixes/…
//	KeptFixes                              all fixes of a range, with marks     KeptFixes/…
//	Offers                                 drivers whom a task may go to        Offers/…, place/…
//	Waiting, Matches, WaitingApps          tasks that wait, or could be served  Waiting/…, Matches/…, WaitingApps/…
//	Events, Notices                        what was told, in order              Events/…, Notices/…
//	LeaseEvents, FinishEvents              hands events out, notes their end    LeaseEvents/…, FinishEvents/…
//	Due                                    what has come due                    Due/…
//	Purge                                  removes what is old, with positions  Purge/…
//	Files                                  the bytes of proofs, not in Commits  Files/…, Purge/…
//	Secret, Memo, SetMemo                  the service's own few values         Secret/…, Memo/…
//	Rows, Restore                          moves rows as they are, all kinds    Rows/…, Restore/…
//	Close                                  releases what the store has opened   Store/…
//
// What not every store can do is an interface of one method, which the service looks for:
// tracking.Watcher tells a process what others have changed, tracking.Limiter counts for all of them,
// and tracking.Transactor writes in a transaction of the embedder's.
//
// # The order of work in a Commit
//
//  1. DeleteDrivers: the drivers, and what belongs to them. What there may be much of may be taken
//     away later, by Purge, if nobody can find it any more. DeleteTasks and DeleteTrips: the rows,
//     their events and the notices of these. DropFiles.
//  2. Tasks, Trips, Drivers and Keys that replace a row, then those that are new: so a unique value
//     can go from one row to another in one changeset.
//  3. Invites: all of them, and only then whether a code is taken, as one may leave its code to
//     another.
//  4. Push, then CloseRequests.
//  5. Fixes, by the rule of RecordFixes.
//  6. Events, each with its Seq, its notices with their ids, and the outboxes of Deliver.
//
// The first refusal undoes all of it. A refused Commit leaves no gap in the Seq of a subject's
// events.
//
// For each row the decision is the same, by the version that it names and the one that is there:
//
//	names   present  what becomes of it
//	0       none    inserted, at a version greater than any that a row of its id has had
//	0       any     a conflict of the id
//	n       n       replaced; it is at n + 1, its Seq and CreatedAt stay
//	n       other   a conflict of the id
//
// Invites differ in one thing: 0 replaces whatever was there, and goes on from its version. Which
// of several conflicts a Commit names is the store's affair.
//
// # What calls may cost
//
// A service asks some things with every request or many times a second. With n rows in the store:
//
//   - a row by its id, a key, a link, a token or a hash: a look-up in an index;
//   - a near page of a list with one filter at most, of tasks also by driver and status: its
//     length, and never n; TaskCounts and Stats what they count;
//   - RecordFixes: the number of the fixes, and of those around a late one that are judged again;
//   - Offers, and Drivers with a point: what lies around the point, however many drivers stand in
//     one spot; of drivers with a rare property, how many have it;
//   - Waiting and Matches in vain: next to nothing, however many tasks wait, be it for somebody who
//     is near or for a property that nobody has;
//   - LeaseEvents: what it hands out, and the number of applications that have something to
//     deliver;
//   - Due with App, and Driver or TrackingID: its length;
//   - Purge: Limit. It is called again as long as it removes something. A file that it has found
//     named it need not look at again;
//   - a file: its length.
//
// # What helps
//
// What every store needs is there already. The packages of store/internal are open to stores of
// this module:
//
//   - claims: what sweeps have handed out, in memory.
//   - rows: the form in which rows are kept, the decision above, its errors, and which texts can be
//     kept.
//   - nearby: which drivers are near a place, on offer or silent, and which waiting tasks somebody
//     could get. A store that answers these by its own indices needs none of it.
//   - tracking.FixBatch.Record, which is no internal one: the rule of fixes, over the few methods
//     of tracking.FixLog.
//
// [memory] is the shorter one to read. [sqlite] shows how a writer that is alone groups what many
// want to write at once (writer.go, group.go, tx.go), and how it tells its index of what it has
// committed. [postgres] shows how many processes share one truth: locks in one order, and an order of
// events that waits for nobody (commit.go, place.go, outbox.go).
//
// [memory]: https://pkg.go.dev/github.com/seed-8aba7b13/tracking/store/memory
// [sqlite]: https://pkg.go.dev/github.com/seed-8aba7b13/tracking/store/sqlite
// [postgres]: https://pkg.go.dev/github.com/seed-8aba7b13/tracking/store/postgres
// [storetest.Run]: https://pkg.go.dev/github.com/seed-8aba7b13/tracking/store/storetest#Run
package store
