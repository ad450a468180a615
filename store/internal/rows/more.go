package rows

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// more is what most tasks do not have: the fields that stand in one column, as JSON. Names are
// short, as they stand in every row, and are never given anew.
type more struct {
	Promise          milli                `json:"promise,omitzero"`
	LateFor          milli                `json:"late,omitzero"`
	AssignAt         milli                `json:"assign,omitzero"`
	WaitsSince       milli                `json:"since,omitzero"`
	Requires         map[string]string    `json:"req,omitempty"`
	Properties       map[string]string    `json:"props,omitempty"`
	ReasonCode       tracking.ReasonCode  `json:"code,omitempty"`
	CustomerNote     string               `json:"note,omitempty"`
	Proof            []tracking.ProofKind `json:"ask,omitempty"`
	Proofs           []proof              `json:"proofs,omitempty"`
	ReceivedBy       string               `json:"by,omitempty"`
	DriverNote       string               `json:"said,omitempty"`
	PIN              string               `json:"pin,omitempty"`
	WrongPINs        int                  `json:"wrong,omitempty"`
	CompletedFrom    *whereabouts         `json:"from,omitempty"`
	RetryOf          tracking.TaskID      `json:"of,omitempty"`
	RetriedBy        tracking.TaskID      `json:"again,omitempty"`
	PickupArrivingAt milli                `json:"nearp,omitzero"`
	PickupArrivedAt  milli                `json:"atp,omitzero"`
	ArrivingAt       milli                `json:"near,omitzero"`
	ArrivedAt        milli                `json:"at,omitzero"`
	StepAt           milli                `json:"step,omitzero"`
	Stuck            []stuck              `json:"stuck,omitempty"`
	Settled          []stuck              `json:"seen,omitempty"`
	ErasedAt         milli                `json:"erased,omitzero"`
}

type stuck struct {
	Driver tracking.DriverID `json:"d"`
	Step   string            `json:"step"`
	At     milli             `json:"at"`
	Why    string            `json:"why,omitempty"`
}

type proof struct {
	ID   string             `json:"id"`
	Kind tracking.ProofKind `json:"kind"`
	At   milli              `json:"at"`
	Type string             `json:"type"`
	Size int                `json:"size"`
	Sum  []byte             `json:"sum"`
}

type whereabouts struct {
	Lng    float64 `json:"lng"`
	Lat    float64 `json:"lat"`
	Source string  `json:"source"`
	OffBy  float64 `json:"off"`
}

// milli is a time as whole milliseconds.
type milli struct{ time.Time }

func (m milli) MarshalJSON() ([]byte, error) { return json.Marshal(m.UnixMilli()) }

func (m *milli) UnmarshalJSON(b []byte) error {
	var ms int64
	err := json.Unmarshal(b, &ms)
	m.Time = time.UnixMilli(ms).UTC()
	return err
}

// MoreOf is the column that holds what most tasks do not have; "" when t has nothing of it. JSON
// would change a text that is not valid UTF-8: see [ChangesetTexts].
func MoreOf(t *tracking.Task) (string, error) {
	m := more{
		Promise: milli{t.Promise}, LateFor: milli{t.LateFor}, AssignAt: milli{t.AssignAt},
		WaitsSince: milli{t.WaitsSince}, Requires: t.Requires, Properties: t.Properties,
		ReasonCode: t.ReasonCode, CustomerNote: t.CustomerNote, Proof: t.Proof, ReceivedBy: t.ReceivedBy,
		DriverNote: t.DriverNote, PIN: string(t.PIN), WrongPINs: t.WrongPINs, RetryOf: t.RetryOf, RetriedBy: t.RetriedBy,
		PickupArrivingAt: milli{t.PickupArrivingAt}, PickupArrivedAt: milli{t.PickupArrivedAt},
		ArrivingAt: milli{t.ArrivingAt}, ArrivedAt: milli{t.ArrivedAt}, StepAt: milli{t.StepAt},
		ErasedAt: milli{t.ErasedAt},
	}
	for _, p := range t.Proofs {
		m.Proofs = append(m.Proofs, proof{p.ID, p.Kind, milli{p.At}, p.Type, p.Size, p.Sum[:]})
	}
	m.Stuck, m.Settled = stuckOf(t.Stuck), stuckOf(t.Settled)
	if w := t.CompletedFrom; w != nil {
		m.CompletedFrom = &whereabouts{w.LngLat.Lng, w.LngLat.Lat, w.Source, w.OffBy}
	}
	if reflect.ValueOf(m).IsZero() {
		return "", nil
	}
	b, err := json.Marshal(m)
	return string(b), err
}

// AddMore fills in what MoreOf has written.
func AddMore(t *tracking.Task, column string) error {
	if column == "" {
		return nil
	}
	var m more
	if err := json.Unmarshal([]byte(column), &m); err != nil {
		return fmt.Errorf("what else a stored task has does not parse: %w", err)
	}
	t.Promise, t.LateFor, t.AssignAt, t.Requires = m.Promise.Time, m.LateFor.Time, m.AssignAt.Time, m.Requires
	t.Properties = m.Properties
	t.WaitsSince = m.WaitsSince.Time
	t.ReasonCode, t.CustomerNote, t.Proof, t.ReceivedBy = m.ReasonCode, m.CustomerNote, m.Proof, m.ReceivedBy
	t.DriverNote, t.PIN, t.WrongPINs, t.RetryOf, t.RetriedBy = m.DriverNote, tracking.Secret(m.PIN), m.WrongPINs, m.RetryOf, m.RetriedBy
	t.PickupArrivingAt, t.PickupArrivedAt = m.PickupArrivingAt.Time, m.PickupArrivedAt.Time
	t.ArrivingAt, t.ArrivedAt, t.StepAt = m.ArrivingAt.Time, m.ArrivedAt.Time, m.StepAt.Time
	t.ErasedAt = m.ErasedAt.Time
	for _, p := range m.Proofs {
		kept := tracking.Proof{ID: p.ID, Kind: p.Kind, At: p.At.Time, Type: p.Type, Size: p.Size}
		copy(kept.Sum[:], p.Sum)
		t.Proofs = append(t.Proofs, kept)
	}
	t.Stuck, t.Settled = stuckSteps(m.Stuck), stuckSteps(m.Settled)
	if w := m.CompletedFrom; w != nil {
		t.CompletedFrom = &tracking.Whereabouts{
			LngLat: tracking.LngLat{Lng: w.Lng, Lat: w.Lat}, Source: w.Source, OffBy: w.OffBy,
		}
	}
	return nil
}

func stuckOf(steps []tracking.StuckStep) (kept []stuck) {
	for _, s := range steps {
		kept = append(kept, stuck{s.DriverID, s.Step, milli{s.At}, s.Why})
	}
	return kept
}

func stuckSteps(kept []stuck) (steps []tracking.StuckStep) {
	for _, s := range kept {
		steps = append(steps, tracking.StuckStep{DriverID: s.Driver, Step: s.Step, At: s.At.Time, Why: s.Why})
	}
	return steps
}
