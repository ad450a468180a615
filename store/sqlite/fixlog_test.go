package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-8aba7b13/tracking"
)

// plainLog is a fixLog as a slice in order of time.
type plainLog []tracking.KeptFix

func (l plainLog) place(ms int64) int { return since(l, ms) }

func (l *plainLog) put(fixes []tracking.KeptFix) { *l = merge(*l, fixes) }

func (l plainLog) mark(fixes []tracking.KeptFix) {
	for _, f := range fixes {
		l[l.place(f.Time.UnixMilli())].Mark = f.Mark
	}
}

func (l *plainLog) purge(turn, before int64, limit int) (n int) {
	var kept plainLog
	for i, f := range *l {
		at := f.Time.UnixMilli()
		if at >= before || n == limit {
			kept = append(kept, (*l)[i:]...)
			break
		}
		if !f.Purged {
			n++
		}
		if f.Purged = true; at >= turn {
			kept = append(kept, f)
		}
	}
	*l = kept
	return n
}

// unlike tells how two lists of fixes differ; "": they do not.
func unlike(want, got []tracking.KeptFix) string {
	if slices.Equal(want, got) { // cmp takes its time
		return ""
	}
	return cmp.Diff(want, got)
}

// TestFixLog does what a driver's fixes go through, in any order, beside a slice: new ones, late ones,
// many at once, other marks, purges, and forgetting. A second driver beside stays as he is.
func TestFixLog(t *testing.T) {
	s, err := Open(Memory, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	played := 0
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		base := fromMillis(1710057600000)
		played++
		drivers := []tracking.DriverID{tracking.DriverID(fmt.Sprint("a", played)), tracking.DriverID(fmt.Sprint("b", played))}
		cs := &tracking.Changeset{Drivers: []tracking.Driver{{ID: drivers[0], CreatedAt: base}, {ID: drivers[1], CreatedAt: base}}}
		if _, err := s.Commit(ctx, tracking.DefaultApp, cs); err != nil {
			t.Fatal(err)
		}
		plain := map[tracking.DriverID]*plainLog{drivers[0]: {}, drivers[1]: {}}
		window := tracking.FixRange{Limit: 1 << 20}
		check := func(who tracking.DriverID) {
			t.Helper()
			want := *plain[who]
			got, err := s.KeptFixes(ctx, tracking.DefaultApp, who, window)
			if d := unlike(want, got); err != nil || d != "" {
				t.Fatalf("%s: error %v (-want +got):\n%s", who, err, d)
			}
			r := tracking.FixRange{Newest: rapid.Bool().Draw(t, "newest"), Limit: rapid.IntRange(1, 200).Draw(t, "limit")}
			if len(want) > 0 {
				r.From = want[rapid.IntRange(0, len(want)-1).Draw(t, "from")].Time
				r.To = want[rapid.IntRange(0, len(want)-1).Draw(t, "to")].Time
			}
			from, to := r.From.UnixMilli(), r.To.UnixMilli()
			want = want[want.place(from):max(want.place(from), want.place(to+1))]
			if want = slices.Clone(want); r.Newest {
				slices.Reverse(want)
			}
			if got, err = s.KeptFixes(ctx, tracking.DefaultApp, who, r); err != nil {
				t.Fatal(err)
			}
			if d := unlike(want[:min(len(want), r.Limit)], got); d != "" {
				t.Fatalf("%s, %+v (-want +got):\n%s", who, r, d)
			}
		}
		// on does something with a driver's log, as a transaction of its own.
		on := func(who tracking.DriverID, do func(l *fixLog) error) {
			t.Helper()
			known := rapid.Bool().Draw(t, "known")
			err := s.write(ctx, change{apply: func(x *tx) error {
				n, err := x.app(tracking.DefaultApp)
				if err != nil {
					return err
				}
				k := driverKey{n, who}
				if !known { // else it goes on behind what it has packed
					delete(x.drivers.known, k)
				}
				d, err := x.driver(k)
				if err != nil {
					return err
				}
				l := x.fixLog(n, d)
				if err := do(l); err != nil {
					return err
				}
				next := *d
				next.open, next.end = l.open, l.end
				return l.keep(k, &next)
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		some := func(who tracking.DriverID) (ms int64) {
			if list := *plain[who]; len(list) > 0 {
				ms = list[rapid.IntRange(0, len(list)-1).Draw(t, "of")].Time.UnixMilli()
			} else {
				ms = base.UnixMilli()
			}
			return ms + rapid.Int64Range(-2, 2).Draw(t, "beside")
		}
		put := func(who tracking.DriverID, at int64, n int, step int64) {
			log, seed := plain[who], rapid.Uint64().Draw(t, "seed")
			chance := rand.New(rand.NewPCG(seed, 1)) // a draw for each fix would take most of the time
			var list []tracking.KeptFix
			for range n {
				at += step
				if i := log.place(at); i == len(*log) || (*log)[i].Time.UnixMilli() != at {
					list = append(list, tracking.KeptFix{Mark: tracking.FixMark(1 + chance.IntN(6)), Fix: tracking.Fix{
						Time: fromMillis(at), LngLat: tracking.LngLat{Lng: float64(at%1000) / 1e4, Lat: 48.1},
						EventID: strings.Repeat("e", []int{0, 0, 5, 60}[chance.IntN(4)]),
					}})
				}
			}
			if len(list) > 0 {
				on(who, func(l *fixLog) error { return l.Put(slices.Clone(list)) })
				log.put(list)
			}
		}
		many := rapid.OneOf(rapid.IntRange(1, 3), rapid.IntRange(1, 60), rapid.Just(400))
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			who := rapid.SampledFrom(drivers).Draw(t, "who")
			log := plain[who]
			switch rapid.SampledFrom([]string{"new", "new", "new", "late", "late", "mark", "purge", "forget", "clear"}).Draw(t, "what") {
			case "new":
				at := base.UnixMilli()
				if n := len(*log); n > 0 {
					at = (*log)[n-1].Time.UnixMilli()
				}
				put(who, at, many.Draw(t, "n"), rapid.SampledFrom([]int64{1, 999, 5000}).Draw(t, "step"))
			case "late":
				put(who, some(who)-rapid.Int64Range(0, 60000).Draw(t, "before"), many.Draw(t, "n"),
					rapid.SampledFrom([]int64{1, 700, 20000}).Draw(t, "step"))
			case "mark":
				var list []tracking.KeptFix
				every := rapid.IntRange(1, 100).Draw(t, "every")
				for i := every - 1; i < len(*log); i += every {
					f := tracking.KeptFix{Fix: tracking.Fix{Time: (*log)[i].Time}, Mark: (*log)[i].Mark%6 + 1}
					list = append(list, f)
				}
				on(who, func(l *fixLog) error { return l.Mark(list) })
				log.mark(list)
			case "purge":
				turn, before, limit := some(who), some(who), rapid.IntRange(1, 500).Draw(t, "limit")
				turn = min(turn, before)
				var n int
				on(who, func(l *fixLog) (err error) {
					n, err = l.purge(turn, before, limit)
					return err
				})
				if want := log.purge(turn, before, limit); n != want {
					t.Fatalf("purged %d, want %d", n, want)
				}
			case "forget":
				at := some(who)
				on(who, func(l *fixLog) error { return l.Forget(fromMillis(at)) })
				*log = (*log)[:log.place(at+1)]
			case "clear":
				on(who, (*fixLog).clear)
				*log = nil
			}
			at, n := some(who), rapid.IntRange(1, 100).Draw(t, "asked")
			on(who, func(l *fixLog) error {
				i := log.place(at)
				before, err := l.Before(fromMillis(at), n)
				if err != nil {
					return err
				}
				slices.Reverse(before)
				if d := unlike((*log)[max(i-n, 0):i], before); d != "" {
					t.Errorf("%d before %d (-want +got):\n%s", n, at, d)
				}
				from, err := l.From(fromMillis(at), n)
				if d := unlike((*log)[i:min(i+n, len(*log))], from); d != "" {
					t.Errorf("%d from %d (-want +got):\n%s", n, at, d)
				}
				return err
			})
			for _, id := range drivers {
				check(id)
			}
		}
	})
}

// Bits that are not as they were written are told, or read as other fixes; nothing goes in a loop, and
// nothing ends the program.
func TestFlippedBits(t *testing.T) {
	base := fromMillis(1710057600000)
	seeds := 10
	if os.Getenv("TRACKING_LONG") == "1" {
		seeds = 200
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		s, err := Open(Memory, &Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		cs := &tracking.Changeset{Drivers: []tracking.Driver{{ID: "d", CreatedAt: base}}}
		if _, err := s.Commit(t.Context(), tracking.DefaultApp, cs); err != nil {
			t.Fatal(err)
		}
		batch := tracking.FixBatch{DriverID: "d", SeenAt: base, KeepOffDuty: true}
		for i := range 400 {
			batch.Fixes = append(batch.Fixes, tracking.Fix{
				Time: base.Add(time.Duration(i) * time.Second), EventID: "abcdefgh",
				LngLat: tracking.LngLat{Lng: 11 + float64(i*i*7919%9973)*1e-7, Lat: 48},
			})
			if len(batch.Fixes) == 40 {
				if _, err := s.RecordFixes(t.Context(), tracking.DefaultApp, batch); err != nil {
					t.Fatal(err)
				}
				batch.Fixes = batch.Fixes[:0]
			}
		}
		// What is met is seen by who called; the transaction is not kept.
		_ = s.write(t.Context(), change{atom: true, apply: func(x *tx) error {
			var list []block
			if err := x.list(&list, `SELECT n, first, fixes FROM fix_blocks`); err != nil || len(list) == 0 {
				t.Error(len(list), err)
				return err
			}
			b := list[r.IntN(len(list))]
			for range 1 + r.IntN(3) {
				b.Fixes[r.IntN(len(b.Fixes))] ^= 1 << r.IntN(8)
			}
			if err := x.exec(`UPDATE fix_blocks SET fixes = ? WHERE n = ?`, b.Fixes, b.N); err != nil {
				t.Error(err)
			}
			n, err := x.app(tracking.DefaultApp)
			if err != nil {
				t.Error(err)
			}
			for range 4 {
				at := base.Add(time.Duration(r.IntN(400_000)) * time.Millisecond)
				batch := tracking.FixBatch{DriverID: "d", SeenAt: base, KeepOffDuty: true}
				switch r.IntN(4) {
				case 0:
					var p tracking.Purged
					_ = x.purge(tracking.Before{Fixes: at, Limit: 1 + r.IntN(200)}, &p)
				case 1:
					batch.Latest = at
					_, _ = x.record(n, batch, true)
				default:
					batch.Fixes = []tracking.Fix{
						{Time: at, LngLat: tracking.LngLat{Lng: 11, Lat: 48}},
						{Time: at.Add(5 * time.Second), LngLat: tracking.LngLat{Lng: 11, Lat: 48}},
					}
					_, _ = x.record(n, batch, true)
				}
			}
			return errPacked
		}})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
