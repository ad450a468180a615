package sqlite

import (
	"errors"
	"fmt"
)

const (
	maxLog = 32 << 20 // bytes; a log that has grown beyond is cut when it starts again

	// checkpointPages is how many pages of 4 KiB the log gathers before the writer, when it has a
	// moment, copies them into the file. The log then starts from its beginning again as soon as
	// nobody reads from it. From twice as many on the writer waits a little for that moment.
	checkpointPages = 2000
)

// tidy copies the log into the file when it has grown, so that it can start again, and when it is not
// to hold any longer what was erased.
func (w *writer) tidy() {
	w.groups++
	pages := w.store.opts.checkpointPages
	w.compactAsDue()
	if w.store.path == "" || w.conn == nil || w.store.health.Load() != nil {
		return
	}
	if w.wipes && !w.store.backingUp() {
		_, err := w.wipeLog()
		w.looked(err)
	}
	if w.groups < min(16, pages/16) {
		return
	}
	w.groups = 0
	r, err := w.logState("NOOP")
	waiting := r.Log - r.Checkpointed
	switch {
	case err != nil:
	case r.Log >= 2*pages && r.Log >= w.logAtLast+pages && !w.store.backingUp():
		_, err = w.restartLog("RESTART")
	case waiting >= pages:
		_, err = w.logState("PASSIVE")
	}
	w.looked(err)
}

// looked sees to an error of looking after the log.
func (w *writer) looked(err error) {
	switch {
	case err == nil:
		w.untidy = false
	case stopsWriting(err):
		w.store.halt(err)
	case !w.untidy: // nothing is lost by it, and it is tried again; but if it goes on failing, the log grows
		w.untidy = true
		w.store.opts.Logger.Error("sqlite: the log could not be copied into the file", "path", w.store.path, "err", err)
	}
}

// restartLog has the log start from its beginning, and waits a little for those who read from it.
func (w *writer) restartLog(mode string) (done bool, err error) {
	x := &tx{writer: w}
	if err := x.exec("PRAGMA busy_timeout = 50"); err != nil {
		return false, err
	}
	r, err := w.logState(mode)
	w.logAtLast = 0
	if r.Busy {
		w.logAtLast = r.Log
	}
	return !r.Busy && err == nil,
		errors.Join(err, x.exec(fmt.Sprintf("PRAGMA busy_timeout = %d", w.store.opts.BusyTimeout.Milliseconds())))
}

// wipeLog empties the log, as it holds what was erased. While somebody reads from it it cannot: then
// the next purge has it tried again.
func (w *writer) wipeLog() (done bool, err error) {
	w.wipes = false
	done, err = w.restartLog("TRUNCATE")
	if done {
		w.erased = false
	}
	return done, err
}

// logRow is what PRAGMA wal_checkpoint answers: pages in the log, and those of them that are in the
// file.
type logRow struct {
	Busy              bool
	Log, Checkpointed int
}

func (w *writer) logState(mode string) (r logRow, err error) {
	x := &tx{writer: w}
	err = x.get(&r, "PRAGMA wal_checkpoint("+mode+")")
	return r, err
}

// syncLog copies the log of the last process into the file and syncs it there, before anything is
// added to it.
//
// A log left by a process that saw an fsync fail may be whole in the kernel's memory and not on the
// disk; commits that followed in the same log would be lost with it. On a full disk there may be no
// room for that now. Then reads go on, and the first write tries it again.
func (w *writer) syncLog(get func(dest any, query string, args ...any) error) error {
	w.logUnsynced = true
	var r logRow
	if err := get(&r, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return err
	}
	if r.Busy {
		return errors.New("something else holds the file; close it first")
	}
	w.logUnsynced = false
	return nil
}
