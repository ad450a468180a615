package webhook

import (
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// Data is an event as it stands under "data". A type for [Options.Fill] may embed it and add what
// it knows.
type Data struct {
	ID         string             `json:"id"`
	Type       tracking.EventType `json:"type"`
	Time       string             `json:"time"`        // when it happened
	RecordedAt string             `json:"recorded_at"` // when it reached us
	Actor      string             `json:"actor"`
	Subject    Subject            `json:"subject"`
	Seq        int64              `json:"seq"` // 1, 2, 3 … for its subject
	Data       map[string]string  `json:"data"`
}

// Subject is what an event is about.
type Subject struct {
	Kind tracking.SubjectKind `json:"kind"`
	ID   string               `json:"id"`
}

// DataOf is e as it stands under "data".
func DataOf(e tracking.Event) Data {
	d := Data{
		ID: e.ID, Type: e.Type, Time: timestamp(e.Time), RecordedAt: timestamp(e.RecordedAt), Actor: e.Actor,
		Subject: Subject{e.Subject.Kind, e.Subject.ID}, Seq: e.Seq, Data: e.Data,
	}
	if d.Data == nil {
		d.Data = map[string]string{}
	}
	return d
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
