package postgres

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
)

var _ tracking.Watcher = (*Store)(nil)

const (
	tellEvery   = 10 * time.Millisecond // so many changes go in one notification
	pollEvery   = 500 * time.Millisecond
	pingEvery   = 20 * time.Second // of a connection that hears nothing
	pingTimeout = 5 * time.Second
	mostTold    = 100 // subjects in one notification, whose texts the server limits to 8,000 bytes
	mostBytes   = 7000

	// Not to wait for the disk: what is lost with a server is looked for.
	notify = `SELECT pg_notify($1, $2), set_config('synchronous_commit', 'off', true)`
)

// told is what one process tells the others. The list has the application, and the kind and id of the
// subject; an application alone stands for anything of it, and no list for anything.
type told struct {
	From    string     `json:"from"`
	Changed [][]string `json:"changed,omitempty"`
}

// teller tells other processes what this one has changed: all that comes together in one
// notification, after the commits and outside of them. The server holds one lock for all that notify,
// from there to the end of their transactions, which would put all commits in a row.
type teller struct {
	mu      sync.Mutex
	changed map[appSubject]struct{}
	wake    chan struct{}
	done    chan struct{}
	name    string // of this store among others
	channel string
}

type appSubject struct {
	app     tracking.AppID
	subject tracking.Subject
}

// start runs the teller until the store is closed.
func (t *teller) start(s *Store) {
	h := fnv.New64a()
	h.Write([]byte(s.opts.Schema))
	t.name, t.channel = rand.Text(), fmt.Sprintf("tracking_%016x", h.Sum64())
	t.wake, t.done = make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(t.done)
		for {
			select {
			case <-t.wake:
			case <-s.closing.Done():
				return
			}
			if payload := t.payload(); payload != "" && s.able.notify {
				// What is not told is looked for some time.
				_ = s.call(s.closing, func(ctx context.Context) error {
					_, err := s.pool.Exec(ctx, notify, t.channel, payload)
					return err
				})
			}
			select {
			case <-time.After(tellEvery):
			case <-s.closing.Done():
				return
			}
		}
	}()
}

// tell notes what was changed of an application.
func (t *teller) tell(app tracking.AppID, subjects ...tracking.Subject) {
	t.mu.Lock()
	if t.changed == nil {
		t.changed = map[appSubject]struct{}{}
	}
	for _, s := range subjects {
		t.changed[appSubject{app, s}] = struct{}{}
	}
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// payload is what there is to tell; "" for nothing.
func (t *teller) payload() string {
	t.mu.Lock()
	changed := t.changed
	t.changed = nil
	t.mu.Unlock()
	if len(changed) == 0 {
		return ""
	}
	all, apps := told{From: t.name}, told{From: t.name}
	seen := map[tracking.AppID]bool{}
	for c := range changed {
		all.Changed = append(all.Changed, []string{string(c.app), string(c.subject.Kind), c.subject.ID})
		if !seen[c.app] {
			seen[c.app] = true
			apps.Changed = append(apps.Changed, []string{string(c.app)})
		}
	}
	for _, m := range []told{all, apps} {
		if len(m.Changed) <= mostTold {
			if b, err := json.Marshal(m); err == nil && len(b) <= mostBytes {
				return string(b)
			}
		}
	}
	b, _ := json.Marshal(told{From: t.name}) // of a text: cannot fail
	return string(b)
}

// subjectsOf are what a changeset changes, in the eyes of those who follow it.
func subjectsOf(cs *tracking.Changeset) (list []tracking.Subject) {
	add := func(kind tracking.SubjectKind, id string) { list = append(list, tracking.Subject{Kind: kind, ID: id}) }
	for i := range cs.Tasks {
		add(tracking.KindTask, string(cs.Tasks[i].ID))
	}
	for i := range cs.Trips {
		add(tracking.KindTrip, string(cs.Trips[i].ID))
	}
	for i := range cs.Drivers {
		add(tracking.KindDriver, string(cs.Drivers[i].ID))
	}
	for i := range cs.DeleteDrivers {
		add(tracking.KindDriver, string(cs.DeleteDrivers[i].ID))
	}
	for i := range cs.DeleteTasks {
		add(tracking.KindTask, string(cs.DeleteTasks[i].ID))
	}
	for i := range cs.DeleteTrips {
		add(tracking.KindTrip, string(cs.DeleteTrips[i].ID))
	}
	for i := range cs.Fixes {
		if len(cs.Fixes[i].Fixes) > 0 {
			add(tracking.KindDriver, string(cs.Fixes[i].DriverID))
		}
	}
	for i := range cs.Events {
		list = append(list, cs.Events[i].Subject)
		for _, n := range cs.Events[i].Notices {
			add(tracking.KindDriver, string(n.DriverID))
		}
	}
	return list
}

// Watch implements [tracking.Watcher]. It listens on a connection of its own, or else, where the pool
// goes through a pooler and Options.Listen says nothing, or the server does not notify, says twice a second that anything may have
// changed.
func (s *Store) Watch(ctx context.Context, changed func(tracking.AppID, tracking.Subject)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	config := s.pool.Config().ConnConfig
	switch {
	case s.opts.Listen != "" && s.able.notify:
		var err error
		if config, err = pgx.ParseConfig(s.opts.Listen); err != nil {
			return err
		}
	case config.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement, !s.able.notify:
		return s.poll(ctx, changed)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return failure(ctx, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, `LISTEN `+s.teller.channel); err != nil {
		return failure(ctx, err)
	}
	changed("", tracking.Subject{}) // until now nobody has listened
	for {
		if err := s.hear(ctx, conn, changed); err != nil {
			return failure(ctx, err)
		}
	}
}

// hear waits for one notification. Where none comes for a while it looks whether the server is there.
func (s *Store) hear(ctx context.Context, conn *pgx.Conn, changed func(tracking.AppID, tracking.Subject)) error {
	waiting, cancel := context.WithTimeout(ctx, pingEvery)
	defer cancel()
	n, err := conn.WaitForNotification(waiting)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && waiting.Err() != nil && !conn.IsClosed():
		ping, cancel := context.WithTimeout(ctx, pingTimeout)
		defer cancel()
		return conn.Ping(ping)
	case err != nil:
		return err
	}
	var m told
	if err := json.Unmarshal([]byte(n.Payload), &m); err != nil || len(m.Changed) == 0 && m.From != s.teller.name {
		changed("", tracking.Subject{}) // by another version, maybe
		return nil
	}
	if m.From == s.teller.name {
		return nil
	}
	for _, c := range m.Changed {
		switch len(c) {
		case 1:
			changed(tracking.AppID(c[0]), tracking.Subject{})
		case 3:
			changed(tracking.AppID(c[0]), tracking.Subject{Kind: tracking.SubjectKind(c[1]), ID: c[2]})
		}
	}
	return nil
}

// poll says again and again that anything may have changed.
func (s *Store) poll(ctx context.Context, changed func(tracking.AppID, tracking.Subject)) error {
	for {
		select {
		case <-time.After(pollEvery):
			changed("", tracking.Subject{})
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
