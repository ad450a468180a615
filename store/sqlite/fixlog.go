package sqlite

import (
	"context"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking"
)

// A driver's newest fixes lie packed beside his position, which changes with them: so a fix is one change
// in the journal, or of one row. Once they are openBytes long all but the newest become a block. Blocks
// are written one behind another whosever they are, so that they fill pages that are written once. They
// are written again only for late fixes, for marks that these change, and by a purge.
const (
	openBytes  = 985  // so that a page has four blocks of them
	blockBytes = 4000 // a row of up to 4061 bytes stays in one page of 4096
)

const (
	selectBlockUntil = `SELECT n, first, fixes FROM fix_blocks INDEXED BY fix_blocks_by_time
		WHERE driver = ? AND first <= ? ORDER BY first DESC LIMIT 1`
	selectBlockFrom = `SELECT n, first, fixes FROM fix_blocks INDEXED BY fix_blocks_by_time
		WHERE driver = ? AND first >= ? ORDER BY first LIMIT 1`
	selectNextFirst = `SELECT first FROM fix_blocks INDEXED BY fix_blocks_by_time
		WHERE driver = ? AND first > ? ORDER BY first LIMIT 1`
	insertBlock  = `INSERT INTO fix_blocks (driver, first, fixes) VALUES (?, ?, ?)`
	updateBlock  = `UPDATE fix_blocks SET first = ?, fixes = ? WHERE n = ?`
	deleteBlock  = `DELETE FROM fix_blocks WHERE n = ?`
	deleteBlocks = `DELETE FROM fix_blocks WHERE driver = ?`
)

// block is a driver's fixes from a time, UTC ms, until the next block begins.
type block struct {
	N, First int64
	Fixes    []byte
}

// list unpacks a block, which is never empty and begins when it says.
func (b *block) list() (list []tracking.KeptFix, err error) {
	if list, err = unpack(b.Fixes); err != nil {
		return nil, err
	}
	if len(list) == 0 || list[0].Time.UnixMilli() != b.First {
		return nil, errPacked
	}
	return list, nil
}

// fixLog is a driver's fixes inside the writer's transaction.
type fixLog struct {
	*tx
	app    int64
	driver *driverState
	open   []byte // what the driver's is to be; the bytes are never changed
	end    packer // see driverState
	wrote  bool   // blocks

	ofCommit bool // the fixes come with other rows
}

var _ tracking.FixLog = (*fixLog)(nil)

// fixLog makes the only one that there is at a time.
func (x *tx) fixLog(app int64, d *driverState) *fixLog {
	x.log = fixLog{tx: x, app: app, driver: d, open: d.open, end: d.end}
	return &x.log
}

func (l *fixLog) exec(query string, args ...any) error {
	l.wrote = true
	return l.tx.exec(query, args...)
}

func (l *fixLog) InTrip(t time.Time) (in bool, err error) {
	ms := t.UnixMilli()
	err = l.get(&in, selectInTrip, l.app, l.driver.ID, ms, ms, l.driver.Person)
	return in, err
}

// opened is when the first of the open fixes was; never reached where there is none.
func (l *fixLog) opened() (int64, error) {
	if len(l.open) == 0 {
		return endless, nil
	}
	return firstPacked(l.open)
}

// since is the place in a list of the first fix at or after ms.
func since(list []tracking.KeptFix, ms int64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].Time.UnixMilli() >= ms })
}

// back calls do with the fixes before ms, newest first, until it returns false.
func (l *fixLog) back(ms int64, do func(tracking.KeptFix) bool) error {
	before := ms
	until := func(list []tracking.KeptFix) (more bool, err error) {
		for _, f := range slices.Backward(list[:since(list, ms)]) {
			at := f.Time.UnixMilli()
			if at >= before { // blocks that overlap: the file is damaged
				return false, errPacked
			}
			if before = at; !do(f) {
				return false, nil
			}
		}
		return true, nil
	}
	list, err := unpack(l.open)
	if err != nil {
		return err
	}
	if more, err := until(list); err != nil || !more {
		return err
	}
	for at := ms; at > math.MinInt64; {
		var b block
		found, err := l.find(&b, selectBlockUntil, l.driver.Seq, at)
		if err != nil || !found {
			return err
		}
		if list, err = b.list(); err != nil {
			return err
		}
		if more, err := until(list); err != nil || !more {
			return err
		}
		at = b.First - 1
	}
	return nil
}

// ahead calls do with the fixes at or after ms, oldest first, until it returns false.
func (l *fixLog) ahead(ms int64, do func(tracking.KeptFix) bool) error {
	after, begun := int64(0), false
	from := func(list []tracking.KeptFix) (more bool, err error) {
		for _, f := range list[since(list, ms):] {
			at := f.Time.UnixMilli()
			if begun && at <= after {
				return false, errPacked
			}
			if after, begun = at, true; !do(f) {
				return false, nil
			}
		}
		return true, nil
	}
	opened, err := l.opened()
	if err != nil {
		return err
	}
	if ms < opened {
		b, found, err := l.blockOf(ms)
		for found && err == nil {
			list, err := b.list()
			if err != nil {
				return err
			}
			if more, err := from(list); err != nil || !more {
				return err
			}
			if found, err = l.blockAfter(&b); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
	list, err := unpack(l.open)
	if err == nil {
		_, err = from(list)
	}
	return err
}

// blockOf finds the block that has the fixes of a time, or would have them: that which begins before,
// else the first of all.
func (l *fixLog) blockOf(ms int64) (b block, found bool, err error) {
	if found, err = l.find(&b, selectBlockUntil, l.driver.Seq, ms); err != nil || found {
		return b, found, err
	}
	found, err = l.find(&b, selectBlockFrom, l.driver.Seq, atOnce)
	return b, found, err
}

// blockAfter moves on to the next block.
func (l *fixLog) blockAfter(b *block) (found bool, err error) {
	if b.First == math.MaxInt64 {
		return false, nil
	}
	return l.find(b, selectBlockFrom, l.driver.Seq, b.First+1)
}

func (l *fixLog) Before(t time.Time, n int) (list []tracking.KeptFix, err error) {
	err = l.back(t.UnixMilli(), func(f tracking.KeptFix) bool {
		list = append(list, f)
		return len(list) < n
	})
	return list, err
}

func (l *fixLog) From(t time.Time, n int) (list []tracking.KeptFix, err error) {
	err = l.ahead(t.UnixMilli(), func(f tracking.KeptFix) bool {
		list = append(list, f)
		return len(list) < n
	})
	return list, err
}

// merge brings two lists in order of time, which have no time in common, into one.
func merge(a, b []tracking.KeptFix) []tracking.KeptFix {
	list := make([]tracking.KeptFix, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].Time.Before(b[0].Time) {
			list, a = append(list, a[0]), a[1:]
		} else {
			list, b = append(list, b[0]), b[1:]
		}
	}
	return append(append(list, a...), b...)
}

func (l *fixLog) Put(fixes []tracking.KeptFix) error {
	opened, err := l.opened()
	if err != nil {
		return err
	}
	late := 0
	if len(l.open) > 0 {
		late = since(fixes, opened)
	}
	if err := l.putLate(fixes[:late]); err != nil {
		return err
	}
	if fixes = fixes[late:]; len(fixes) == 0 {
		return nil
	}
	p := l.end
	if !p.has(l.open) {
		if p, err = packBehind(l.open, len(fixes)); err != nil {
			return err
		}
	}
	if len(l.open) > 0 && fixes[0].Time.UnixMilli() < p.at { // it comes between open ones
		list, err := unpack(l.open)
		if err != nil {
			return err
		}
		p, fixes = packer{}, merge(list, fixes)
	}
	first, older := min(opened, fixes[0].Time.UnixMilli()), 0
	for _, f := range fixes {
		older = len(p.packed)
		p.add(f)
	}
	if len(p.packed) <= openBytes || older == 0 { // one fix with a long event id may be longer
		l.open, l.end = p.packed, p
		return nil
	}
	if older <= blockBytes {
		err = l.exec(insertBlock, l.driver.Seq, first, p.packed[:older])
	} else {
		var list []tracking.KeptFix
		if list, err = unpack(p.packed[:older]); err == nil {
			err = l.putBlocks(list, blockBytes)
		}
	}
	l.open = pack(fixes[len(fixes)-1:])
	return err
}

// closeAll leaves no fix open, as the position that they stand beside is to go.
func (l *fixLog) closeAll() error {
	list, err := unpack(l.open)
	if err != nil || len(list) == 0 {
		return err
	}
	l.open = nil
	return l.putBlocks(list, blockBytes)
}

// putBlocks writes fixes as blocks of up to so many bytes.
func (l *fixLog) putBlocks(list []tracking.KeptFix, limit int) error {
	for len(list) > 0 {
		packed, rest := packUpTo(list, limit)
		if err := l.exec(insertBlock, l.driver.Seq, list[0].Time.UnixMilli(), packed); err != nil {
			return err
		}
		list = rest
	}
	return nil
}

// replace writes other fixes in place of a block's.
func (l *fixLog) replace(b block, list []tracking.KeptFix, limit int) error {
	if len(list) == 0 {
		return l.exec(deleteBlock, b.N)
	}
	packed, rest := packUpTo(list, limit)
	if err := l.exec(updateBlock, list[0].Time.UnixMilli(), packed, b.N); err != nil {
		return err
	}
	return l.putBlocks(rest, limit)
}

// evenly is the limit for blocks of these that leaves room for more in each.
func evenly(list []tracking.KeptFix) int {
	size := len(pack(list))
	if size <= blockBytes {
		return blockBytes
	}
	return min(size/(size/blockBytes+1)+64, blockBytes)
}

// putLate puts fixes before the open ones.
func (l *fixLog) putLate(fixes []tracking.KeptFix) error {
	for len(fixes) > 0 {
		b, found, err := l.blockOf(fixes[0].Time.UnixMilli())
		if err != nil {
			return err
		}
		if !found {
			return l.putBlocks(fixes, blockBytes)
		}
		n, err := l.within(b, fixes)
		if err != nil {
			return err
		}
		list, err := b.list()
		if err != nil {
			return err
		}
		merged, limit := merge(list, fixes[:n]), blockBytes
		if fixes[0].Time.Before(list[len(list)-1].Time) { // else more may follow behind them
			limit = evenly(merged)
		}
		if err := l.replace(b, merged, limit); err != nil {
			return err
		}
		fixes = fixes[n:]
	}
	return nil
}

// within is how many of fixes come before the next block.
func (l *fixLog) within(b block, fixes []tracking.KeptFix) (n int, err error) {
	var next int64
	found, err := l.find(&next, selectNextFirst, l.driver.Seq, b.First)
	if err != nil || !found {
		return len(fixes), err
	}
	return since(fixes, next), nil
}

func (l *fixLog) Mark(fixes []tracking.KeptFix) error {
	marks := make(map[int64]tracking.FixMark, len(fixes))
	for _, f := range fixes {
		marks[f.Time.UnixMilli()] = f.Mark
	}
	mark := func(list []tracking.KeptFix) {
		for i := range list {
			at := list[i].Time.UnixMilli()
			if m, ok := marks[at]; ok {
				list[i].Mark = m
				delete(marks, at)
			}
		}
	}
	list, err := unpack(l.open)
	if err != nil {
		return err
	}
	mark(list)
	if len(marks) < len(fixes) {
		l.open = pack(list)
	}
	for len(marks) > 0 {
		var at int64
		for at = range marks {
			break
		}
		b, found, err := l.blockOf(at)
		if err != nil {
			return err
		}
		if found {
			if list, err = b.list(); err != nil {
				return err
			}
			mark(list)
			if err := l.replace(b, list, evenly(list)); err != nil {
				return err
			}
		}
		delete(marks, at) // there may be none of that time
	}
	return nil
}

func (l *fixLog) Forget(t time.Time) error {
	end := t.UnixMilli() + 1
	list, err := unpack(l.open)
	if err != nil {
		return err
	}
	if list = list[:since(list, end)]; len(list) > 0 {
		l.open = pack(list)
		return nil
	}
	for {
		var b block
		found, err := l.find(&b, selectBlockUntil, l.driver.Seq, endless)
		if err != nil || !found {
			l.open = nil
			return err
		}
		if list, err = b.list(); err != nil {
			return err
		}
		if list = list[:since(list, end)]; len(list) == 0 {
			if err := l.exec(deleteBlock, b.N); err != nil {
				return err
			}
			continue
		}
		newest := len(list) - 1
		l.open = pack(list[newest:])
		return l.replace(b, list[:newest], blockBytes)
	}
}

// clear removes all fixes.
func (l *fixLog) clear() error {
	l.open = nil
	return l.exec(deleteBlocks, l.driver.Seq)
}

// purge goes on with the fixes before a time, UTC ms, until it has purged limit of them: what is before
// turn goes, and the rest stays unseen.
func (l *fixLog) purge(turn, before int64, limit int) (n int, err error) {
	some := func(list []tracking.KeptFix) (kept []tracking.KeptFix, done bool) {
		for i, f := range list {
			at := f.Time.UnixMilli()
			if done = at >= before || n == limit; done {
				return append(kept, list[i:]...), true
			}
			if !f.Purged {
				n++
			}
			if f.Purged = true; at >= turn {
				kept = append(kept, f)
			}
		}
		return kept, false
	}
	b, found, err := l.blockOf(atOnce)
	for ; found && err == nil; found, err = l.blockAfter(&b) {
		list, err := b.list()
		if err != nil {
			return n, err
		}
		was := n
		kept, done := some(list)
		if n > was || len(kept) < len(list) {
			if err := l.replace(b, kept, blockBytes); err != nil {
				return n, err
			}
		}
		if done {
			return n, nil
		}
	}
	if err != nil {
		return n, err
	}
	list, err := unpack(l.open)
	if err != nil {
		return n, err
	}
	kept, _ := some(list)
	l.open = pack(kept)
	return n, nil
}

const (
	selectUnpacked = `SELECT driver, mark, time, lng, lat, event_id, accuracy, speed, bearing, battery, trusted
		FROM fixes WHERE (driver, time) > (?, ?) ORDER BY driver, time LIMIT 1000`
	deletePacked = `DELETE FROM fixes WHERE (driver, time) <= (?, ?)`
	openPacked   = `INSERT INTO positions (driver, open) SELECT seq, ? FROM drivers WHERE seq = ?
		ON CONFLICT DO UPDATE SET open = excluded.open`
)

// packAll packs the fixes that there are, as they have been since version 11. What is packed is deleted
// at once, so that blocks take its room, and there is nothing in the table when it is dropped: SQLite
// keeps in memory what one statement changes.
func packAll(ctx context.Context, tx *sqlx.Tx) error {
	type row struct {
		Driver int64
		fixRow
		Mark tracking.FixMark
	}
	var (
		driver = int64(math.MinInt64)
		list   []tracking.KeptFix // of it, that are not packed
	)
	block := func(packed []byte) error {
		_, err := tx.ExecContext(ctx, insertBlock, driver, list[0].Time.UnixMilli(), packed)
		return err
	}
	full := func() error {
		for {
			packed, rest := packUpTo(list, blockBytes)
			if len(rest) == 0 {
				return nil
			}
			if err := block(packed); err != nil {
				return err
			}
			list = rest
		}
	}
	end := func() error { // what is left is less than a block
		if len(list) == 0 {
			return nil
		}
		newest := len(list) - 1
		r, err := tx.ExecContext(ctx, openPacked, pack(list[newest:]), driver)
		if err != nil {
			return err
		}
		opened, err := r.RowsAffected()
		if err != nil {
			return err
		}
		if opened == 0 { // the driver is deleted, and has no position
			newest++
		}
		if newest > 0 {
			err = block(pack(list[:newest]))
		}
		list = list[:0]
		return err
	}
	for at := int64(math.MinInt64); ; {
		var rows []row
		if err := tx.SelectContext(ctx, &rows, selectUnpacked, driver, at); err != nil {
			return err
		}
		if len(rows) == 0 {
			return end()
		}
		for _, r := range rows {
			if r.Driver != driver {
				if err := full(); err != nil {
					return err
				}
				if err := end(); err != nil {
					return err
				}
			}
			driver, at = r.Driver, r.Time.Int64
			list = append(list, tracking.KeptFix{Fix: r.fix(), Mark: max(r.Mark, -r.Mark), Purged: r.Mark < 0})
		}
		if err := full(); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, deletePacked, driver, at); err != nil {
			return err
		}
	}
}
