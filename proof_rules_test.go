package tracking

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a driver must have given to succeed: every set of kinds that a task asks for, against every
// set of what is there.
func TestProven(t *testing.T) {
	fields := map[ProofKind]string{
		ProofPhoto: "proof", ProofSignature: "proof", ProofName: "received_by", ProofPIN: "pin",
	}
	pick := func(set int) (kinds []ProofKind) {
		for i, kind := range proofKinds {
			if set&(1<<i) != 0 {
				kinds = append(kinds, kind)
			}
		}
		return kinds
	}
	now := t0.Add(time.Hour)
	for asked := range 16 {
		for given := range 16 {
			task, how := taskStates()["in_progress"], Completion{Outcome: OutcomeSucceeded}
			task.Proof = pick(asked)
			if slices.Contains(task.Proof, ProofPIN) {
				task.PIN = "0421"
			}
			for _, kind := range pick(given) {
				switch kind {
				case ProofName:
					how.ReceivedBy = "Priya"
				case ProofPIN:
					how.PIN = "0421"
				default:
					task.Proofs = append(task.Proofs, Proof{ID: string(kind), Kind: kind})
				}
			}
			lacks := pick(asked &^ given)
			after, changed, err := task.completed("own", how, time.Time{}, now)
			name := fmt.Sprintf("asked %q, given %q", task.Proof, pick(given))
			var e *Error
			switch {
			case len(lacks) == 0 && (err != nil || !changed || after.Outcome != OutcomeSucceeded):
				t.Errorf("%s: changed %v, error %v", name, changed, err)
			case len(lacks) == 0:
			case !errors.As(err, &e) || e.Code != ErrConflict || e.Field != fields[lacks[0]] || changed:
				t.Errorf("%s: changed %v, error %v, want a conflict of %s", name, changed, err, fields[lacks[0]])
			default:
				for _, kind := range proofKinds {
					_, list, _ := strings.Cut(e.Message, "it lacks:")
					if strings.Contains(list, string(kind)) != slices.Contains(lacks, kind) {
						t.Errorf("%s: %s", name, e.Message)
					}
				}
			}

			// Nothing of it binds who fails, or who does it for the application.
			for by, outcome := range map[DriverID]Outcome{"own": OutcomeFailed, "": OutcomeSucceeded} {
				_, changed, err := task.completed(by, Completion{Outcome: outcome}, time.Time{}, now)
				if err != nil || !changed {
					t.Errorf("%s: %s by %q: changed %v, error %v", name, outcome, by, changed, err)
				}
			}
		}
	}
}

// A wrong PIN is refused, the right one too after 10 of them, and only the application begins anew.
func TestPINs(t *testing.T) {
	now := t0.Add(time.Hour)
	task := taskStates()["in_progress"]
	task.Proof, task.PIN = []ProofKind{ProofPhoto, ProofPIN}, "0421"
	try := func(pin Secret) error {
		_, _, err := task.completed("own", Completion{Outcome: OutcomeSucceeded, PIN: pin}, time.Time{}, now)
		return err
	}
	if a, b := try("0421"), try("1111"); a == nil || b == nil || a.Error() != b.Error() {
		t.Errorf("while a photo lacks, a right PIN and a wrong one are told apart: %v, %v", a, b)
	}
	task.Proofs = []Proof{{ID: "p", Kind: ProofPhoto}}
	for n := range maxWrongPINs + 2 {
		task.WrongPINs = n
		right, wrong := try("0421"), try("1111")
		if locked := n >= maxWrongPINs; locked && (right != errManyPINs || wrong != errManyPINs) ||
			!locked && (right != nil || wrong != errWrongPIN) {
			t.Errorf("after %d wrong ones: the right one %v, a wrong one %v", n, right, wrong)
		}
	}
	if try("") != errManyPINs {
		t.Errorf("locked, and none given: %v", try(""))
	}
	done, _, err := task.completed("", Completion{Outcome: OutcomeSucceeded}, time.Time{}, now)
	if err != nil || done.WrongPINs != 0 {
		t.Errorf("completed by the application: %d wrong ones, error %v", done.WrongPINs, err)
	}
	unasked := taskStates()["in_progress"]
	if _, _, err := unasked.completed("own", Completion{Outcome: OutcomeSucceeded, PIN: "1111"}, time.Time{},
		now); err != nil {
		t.Errorf("a PIN that nobody asked for: %v", err)
	}
}

// A PIN is shown from when the driver comes near the place of who watches, and while he is at work.
func TestPinShown(t *testing.T) {
	for name, task := range taskStates() {
		for _, typ := range []TaskType{TypePickup, TypeDrop, TypePickupAndDrop} {
			for _, near := range []struct {
				set func(*Task)
				leg Leg
			}{
				{func(t *Task) {}, ""},
				{func(t *Task) { t.PickupArrivingAt = t0 }, LegPickup},
				{func(t *Task) { t.PickupArrivedAt = t0 }, LegPickup},
				{func(t *Task) { t.ArrivingAt = t0 }, LegDrop}, {func(t *Task) { t.ArrivedAt = t0 }, LegDrop},
			} {
				task := task.Clone()
				near.set(&task)
				task.Type, task.PIN = typ, "0421"
				want := task.Status == StatusInProgress && near.leg != "" &&
					(near.leg == LegPickup) == (typ == TypePickup)
				if pinShown(task) != want {
					t.Errorf("%s, of type %d, near the %s: shown %v", name, typ, near.leg, !want)
				}
				if task.PIN = ""; pinShown(task) {
					t.Errorf("%s: none is shown", name)
				}
			}
		}
	}
}

// What a completion leaves of what was given before.
func TestGivenAtTheEnd(t *testing.T) {
	task := taskStates()["in_progress"]
	task.ReceivedBy, task.DriverNote, task.CompletedFrom = "Noor", "blue door", &Whereabouts{}
	for _, c := range []struct{ by, note, wantBy, wantNote string }{
		{"", "", "Noor", "blue door"}, {"Priya", "", "Priya", "blue door"}, {"", "left at 4", "Noor", "left at 4"},
	} {
		after, _, err := task.completed("own", Completion{
			Outcome: OutcomeSucceeded, ReceivedBy: c.by, Note: c.note,
		}, time.Time{}, t0.Add(time.Hour))
		if err != nil || after.ReceivedBy != c.wantBy || after.DriverNote != c.wantNote || after.CompletedFrom != nil {
			t.Errorf("%+v: %q, %q, from %v, error %v", c, after.ReceivedBy, after.DriverNote, after.CompletedFrom, err)
		}
	}
}

// When, and by whom, a file may be given.
func TestProvedTable(t *testing.T) {
	const c404, c409, yes = "not_found", "conflict", ""
	late := t0.Add(24*time.Hour + 3*time.Minute)
	for _, c := range []struct {
		state string
		by    DriverID
		after time.Duration // its end was noted
		want  ErrorCode
	}{
		{"created", "own", 0, c404}, {"waiting", "own", 0, c404}, {"created", "", 0, c404},
		{"assigned", "own", 0, c409}, {"assigned", "other", 0, c404},
		{"in_progress", "own", 0, yes}, {"in_progress", "own", 100 * time.Hour, yes}, {"in_progress", "other", 0, c404},
		{"picked up", "own", 0, yes},
		{"succeeded", "own", 24*time.Hour - 1, yes}, {"succeeded", "own", 24 * time.Hour, c409},
		{"failed", "own", time.Hour, yes}, {"cancelled", "own", time.Hour, yes},
		{"cancelled", "own", 24 * time.Hour, c409},
		{"succeeded", "other", 0, c404}, {"succeeded", "", 0, c404},
		{"succeeded", "own", -time.Hour, c409}, // by a clock that was wrong: else it would be for ever
	} {
		t.Run(fmt.Sprint(c.state, "/", c.by, "/", c.after), func(t *testing.T) {
			task := taskStates()[c.state]
			task.UpdatedAt = late.Add(-time.Minute) // by whatever it was
			if noted := late.Add(-c.after); !task.StepAt.IsZero() {
				task.StepAt = noted
			} else if !task.CompletedAt.IsZero() {
				task.CompletedAt = noted
			}
			before := task.Clone()
			p := Proof{ID: "new", Kind: ProofPhoto, Sum: Hash{1}}
			after, given, changed, err := task.proved(c.by, p, late)
			var e *Error
			if errors.As(err, &e); c.want == yes && err != nil || c.want != yes && (e == nil || e.Code != c.want) {
				t.Fatalf("error %v, want code %q", err, c.want)
			}
			if diff := cmp.Diff(before, task); diff != "" {
				t.Error("the task passed in was altered:", diff)
			}
			if c.want != yes {
				return
			}
			if !changed || given != p || !slices.Equal(after.Proofs, []Proof{p}) || !after.UpdatedAt.Equal(late) {
				t.Errorf("changed %v, %+v, %+v", changed, given, after)
			}
			same := Proof{ID: "another", Kind: ProofPhoto, Sum: Hash{1}}
			again, given, changed, err := after.proved(c.by, same, late.Add(48*time.Hour))
			if err != nil || changed || given != p || len(again.Proofs) != 1 {
				t.Errorf("the same bytes two days later: changed %v, %+v, error %v", changed, given, err)
			}
			same.Kind = ProofSignature
			if _, given, changed, err := after.proved(c.by, same, late); err != nil || !changed || given != same {
				t.Errorf("the same bytes as another kind: changed %v, %+v, error %v", changed, given, err)
			}
		})
	}
	full := taskStates()["in_progress"]
	for i := range MaxProofs {
		full.Proofs = append(full.Proofs, Proof{ID: fmt.Sprint(i), Kind: ProofPhoto, Sum: Hash{byte(i)}})
	}
	if _, _, _, err := full.proved("own", Proof{Kind: ProofPhoto, Sum: Hash{99}}, late); !errors.Is(err, ErrConflict) {
		t.Errorf("the eleventh file: %v", err)
	}
	if _, _, changed, err := full.proved("own", Proof{Kind: ProofPhoto, Sum: Hash{3}}, late); err != nil || changed {
		t.Errorf("one of the ten again: changed %v, error %v", changed, err)
	}
}

// What evidence is asked for can be changed until the task is started, and the PIN goes with it.
func TestAskingForProof(t *testing.T) {
	now := t0.Add(time.Hour)
	for name, task := range taskStates() {
		next, fields, err := task.updated(TaskUpdate{Proof: []ProofKind{ProofPIN}}, time.Hour, now)
		if allowed := task.Status == StatusCreated || task.Status == StatusAssigned; allowed != (err == nil) {
			t.Errorf("%s: error %v", name, err)
			continue
		} else if !allowed {
			continue
		}
		if !slices.Equal(fields, []string{"proof"}) || !next.lacksPIN() {
			t.Errorf("%s: %q, %+v", name, fields, next)
		}
		next.PIN, next.WrongPINs = "0421", 3
		more, fields, err := next.updated(TaskUpdate{Proof: []ProofKind{ProofPhoto, ProofPIN}}, time.Hour, now)
		if err != nil || fields == nil || more.PIN != "0421" || more.WrongPINs != 3 || more.lacksPIN() {
			t.Errorf("%s, a photo too: %q, %+v, error %v", name, fields, more, err)
		}
		_, fields, _ = more.updated(TaskUpdate{Proof: []ProofKind{ProofPhoto, ProofPIN}}, time.Hour, now)
		if fields != nil {
			t.Errorf("%s, the same again: %q", name, fields)
		}
		none, fields, err := more.updated(TaskUpdate{Proof: []ProofKind{}}, time.Hour, now)
		if err != nil || fields == nil || none.Proof != nil || none.PIN != "" || none.WrongPINs != 0 {
			t.Errorf("%s, nothing any more: %q, %+v, error %v", name, fields, none, err)
		}
	}
}

func TestProofKinds(t *testing.T) {
	for _, c := range []struct {
		in, want []ProofKind
		ok       bool
	}{
		{nil, nil, true},
		{[]ProofKind{}, []ProofKind{}, true},
		{[]ProofKind{"pin", "photo"}, []ProofKind{"photo", "pin"}, true},
		{[]ProofKind{"name", "pin", "signature", "photo"}, proofKinds, true},
		{[]ProofKind{"photo", "photo"}, nil, false},
		{[]ProofKind{"photo", "video"}, nil, false},
		{[]ProofKind{"Photo"}, nil, false},
		{[]ProofKind{""}, nil, false},
	} {
		in := slices.Clone(c.in)
		n := NewTask{Type: TypeDrop, Drop: &Place{Address: "x"}, Proof: in}
		u := TaskUpdate{Proof: in}
		for what, err := range map[string]error{"create": n.normalize(false), "update": u.normalize()} {
			var e *Error
			errors.As(err, &e)
			if c.ok && err != nil || !c.ok && (e == nil || e.Code != ErrInvalid || e.Field != "proof") {
				t.Errorf("%s %q: %v", what, c.in, err)
			}
		}
		if !slices.Equal(in, c.in) {
			t.Errorf("what was passed in is %q now, it was %q", in, c.in)
		}
		if c.ok && (!slices.Equal(n.Proof, c.want) || !slices.Equal(u.Proof, c.want) ||
			(u.Proof == nil) != (c.in == nil)) {
			t.Errorf("%q: %q and %q", c.in, n.Proof, u.Proof)
		}
	}
}

// A task that asks for nothing has the sum that it had before there was anything to ask for.
func TestKeySumWithProof(t *testing.T) {
	with := func(kinds ...ProofKind) NewTask {
		n := keyed()
		n.Proof = kinds
		if err := n.normalize(false); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if none := with(); with([]ProofKind{}...).sum() != none.sum() {
		t.Error("to ask for nothing is other content than not to ask")
	}
	if with("pin", "photo").sum() != with("photo", "pin").sum() {
		t.Error("the order of kinds makes other content")
	}
	if with("pin").sum() == with("photo").sum() || with("photo").sum() == with("photo", "pin").sum() {
		t.Error("other kinds are the same content")
	}
}

func TestCompletionLimits(t *testing.T) {
	n := func(n int) string { return strings.Repeat("ü", n) }
	for _, c := range []struct {
		how   Completion
		field string
	}{
		{Completion{ReceivedBy: n(200), Note: n(1000), PIN: "0000"}, ""},
		{Completion{ReceivedBy: n(201)}, "received_by"}, {Completion{ReceivedBy: "a\x00"}, "received_by"},
		{Completion{ReceivedBy: "\xff"}, "received_by"},
		{Completion{Note: n(1001)}, "note"}, {Completion{Note: "a\x00"}, "note"},
		{Completion{PIN: "123"}, "pin"}, {Completion{PIN: "12345"}, "pin"}, {Completion{PIN: "12a4"}, "pin"},
		{Completion{PIN: " 123"}, "pin"}, {Completion{PIN: "１2"}, "pin"},
	} {
		err := c.how.normalize(nil)
		var e *Error
		if errors.As(err, &e); c.field == "" && err != nil || c.field != "" && (e == nil || e.Field != c.field) {
			t.Errorf("%.60q: %v, want it to blame %q", fmt.Sprint(c.how), err, c.field)
		}
	}
}

func TestNewProofLimits(t *testing.T) {
	jpeg := []byte("\xff\xd8\xff\xe0")
	for _, c := range []struct {
		p     NewProof
		code  ErrorCode
		field string
	}{
		{NewProof{ProofPhoto, "image/jpeg", jpeg}, "", ""},
		{NewProof{ProofSignature, "image/png", []byte("\x89PNG\r\n\x1a\n…")}, "", ""},
		{NewProof{ProofPhoto, "image/webp", []byte("RIFF\x04\x00\x00\x00WEBPVP8 ")}, "", ""},
		{NewProof{ProofPhoto, "image/jpeg", append(jpeg, make([]byte, MaxProofSize-len(jpeg))...)}, "", ""},
		{NewProof{ProofPhoto, "image/jpeg", append(jpeg, make([]byte, MaxProofSize)...)}, ErrTooLarge, ""},
		{NewProof{ProofName, "image/jpeg", jpeg}, ErrInvalid, "kind"},
		{NewProof{"", "image/jpeg", jpeg}, ErrInvalid, "kind"},
		{NewProof{ProofPhoto, "image/png", jpeg}, ErrInvalid, "type"},
		{NewProof{ProofPhoto, "image/jpeg", nil}, ErrInvalid, "type"},
		{NewProof{ProofPhoto, "image/webp", []byte("RIFF\x04\x00\x00\x00WAVE")}, ErrInvalid, "type"},
		{NewProof{ProofPhoto, "image/svg+xml", []byte("<svg/>")}, ErrInvalid, "type"},
		{NewProof{ProofPhoto, "", jpeg}, ErrInvalid, "type"},
	} {
		err := c.p.check()
		var e *Error
		errors.As(err, &e)
		if c.code == "" && err != nil || c.code != "" && (e == nil || e.Code != c.code || e.Field != c.field) {
			t.Errorf("%s as %s, %d bytes: %v, want %q of %q", c.p.Kind, c.p.Type, len(c.p.Data), err, c.code, c.field)
		}
	}
}
