package memory

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// secrets finds rows of any application by the hash of a secret. What a commit changes there it
// changes while it holds its application's lock.
type secrets struct {
	// unique is held by a commit from its look whether a code or a key's hash is taken until it has
	// taken it.
	unique sync.Mutex

	taskLinks    hashes[tracking.TaskID]
	tripLinks    hashes[tracking.TripID]
	appTokens    hashes[tracking.DriverID]
	ingestTokens hashes[tracking.DriverID]
	inviteLinks  hashes[tracking.DriverID]
	codes        codes
	keys         hashes[string]
}

// hashes are the rows that hashes belong to, in parts with a lock each: commits of different
// applications meet only in one of them, for a moment.
type hashes[ID comparable] [16]hashesPart[ID]

// hashesPart keeps what a map would, in lists: to put a new hash into a map of Go's takes half as long again.
type hashesPart[ID comparable] struct {
	mu   sync.RWMutex
	by   lists // by codeOfHash, of numbers in rows
	rows slab[hashRow[ID]]
}

// hashRow is a hash and whose it is.
type hashRow[ID comparable] struct {
	owner[ID]
	hash tracking.Hash
	no   uint32
}

// owner is a row that a secret belongs to.
type owner[ID comparable] struct {
	app *application
	id  ID
}

// codeOfHash is what a hash is found by. It is not of the bytes that choose its part.
func codeOfHash(h tracking.Hash) uint64 { return binary.LittleEndian.Uint64(h[8:]) & codeBits }

func (x *hashes[ID]) part(h tracking.Hash) *hashesPart[ID] { return &x[int(h[0])%len(x)] }

// row is a hash's, nil if it is nobody's.
func (p *hashesPart[ID]) row(h tracking.Hash) *hashRow[ID] {
	return find(&p.by, codeOfHash(h), func(no uint32) *hashRow[ID] {
		if r := p.rows.at(no); r.hash == h {
			return r
		}
		return nil
	})
}

func (x *hashes[ID]) find(h tracking.Hash) (o owner[ID], ok bool) {
	part := x.part(h)
	part.mu.RLock()
	defer part.mu.RUnlock()
	if r := part.row(h); r != nil {
		return r.owner, true
	}
	return o, false
}

// move notes that a row's hash has changed from old to now; either may be zero.
func (x *hashes[ID]) move(o owner[ID], old, now tracking.Hash) {
	if old == now {
		return
	}
	if !old.IsZero() {
		x.drop(o, old)
	}
	if now.IsZero() {
		return
	}
	part := x.part(now)
	part.mu.Lock()
	defer part.mu.Unlock()
	r := part.row(now)
	if r == nil {
		no := part.rows.put(hashRow[ID]{})
		part.by.insert(codeOfHash(now), no, cmp.Compare[uint32])
		r = part.rows.at(no)
		r.hash, r.no = now, no
	}
	r.owner = o
}

// drop forgets a hash of o's, unless it has gone to another row.
func (x *hashes[ID]) drop(o owner[ID], h tracking.Hash) {
	part := x.part(h)
	part.mu.Lock()
	defer part.mu.Unlock()
	if r := part.row(h); r != nil && r.owner == o {
		part.by.remove(codeOfHash(h), r.no, cmp.Compare[uint32])
		part.rows.drop(r.no)
	}
}

// findSecret finds the row with a hash and its application, which it leaves locked for reading. The
// function row returns the row with that id if it still has the hash, or nil.
func findSecret[ID comparable, R any](
	ctx context.Context, s *Store, x *hashes[ID], hash tracking.Hash, row func(*application, ID) *R,
) (*application, *R, error) {
	if err := s.ready(ctx); err != nil {
		return nil, nil, err
	}
	if hash.IsZero() {
		return nil, nil, tracking.ErrNotFound
	}
	for {
		o, ok := x.find(hash)
		if !ok {
			return nil, nil, tracking.ErrNotFound
		}
		o.app.mu.RLock()
		if r := row(o.app, o.id); r != nil {
			return o.app, r, nil
		}
		o.app.mu.RUnlock() // it changed hands in between: look again
	}
}

// codes are those that invites have, live or over, and have had. One may have been that of several,
// one after another.
type codes struct {
	mu   sync.RWMutex
	has  map[tracking.Hash][]codeOwner
	past map[tracking.Hash][]owner[tracking.DriverID]
}

// codeOwner is a driver whose invite has a code, and from when until when nobody else can have it.
type codeOwner struct {
	owner[tracking.DriverID]
	since, until time.Time
}

// of lists who has a code and who has had it.
func (x *codes) of(code tracking.Hash) (has []codeOwner, past []owner[tracking.DriverID]) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Clone(x.has[code]), slices.Clone(x.past[code])
}

// add and drop note whose an invite's codes are, and are no longer.
func (x *codes) add(o owner[tracking.DriverID], i *tracking.Invite) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.has == nil {
		x.has, x.past = make(map[tracking.Hash][]codeOwner), make(map[tracking.Hash][]owner[tracking.DriverID])
	}
	if !i.CodeHash.IsZero() {
		x.has[i.CodeHash] = append(x.has[i.CodeHash], codeOwner{o, i.CreatedAt, i.CodeExpiresAt})
	}
	for _, h := range i.PastCodes {
		x.past[h] = append(x.past[h], o)
	}
}

func (x *codes) drop(o owner[tracking.DriverID], i *tracking.Invite) {
	x.mu.Lock()
	defer x.mu.Unlock()
	dropOwner(x.has, i.CodeHash, func(c codeOwner) bool { return c.owner == o })
	for _, h := range i.PastCodes {
		dropOwner(x.past, h, func(p owner[tracking.DriverID]) bool { return p == o })
	}
}

func dropOwner[O any](m map[tracking.Hash][]O, h tracking.Hash, del func(O) bool) {
	left := slices.DeleteFunc(m[h], del)
	if m[h] = left; len(left) == 0 {
		delete(m, h)
	}
}

// inviteByCode finds the invite that has a code, of several the one that has it the longest, and
// else one that has had it.
func (s *Store) inviteByCode(code tracking.Hash) (app tracking.AppID, found tracking.Invite, err error) {
	look := func(o owner[tracking.DriverID], fits func(*tracking.Invite) bool) {
		o.app.mu.RLock()
		defer o.app.mu.RUnlock()
		if d := o.app.drivers.row(o.id); d != nil {
			if i := d.others().invite; i != nil && fits(i) {
				app, found = o.app.id, i.Clone()
			}
		}
	}
	for {
		has, past := s.secrets.codes.of(code)
		if len(has)+len(past) == 0 {
			return "", tracking.Invite{}, tracking.ErrNotFound
		}
		for _, o := range has {
			look(o.owner, func(i *tracking.Invite) bool {
				return i.CodeHash == code && (found.Version == 0 || i.CodeExpiresAt.After(found.CodeExpiresAt))
			})
		}
		if found.Version == 0 && len(past) > 0 {
			look(past[0], func(i *tracking.Invite) bool { return slices.Contains(i.PastCodes, code) })
		}
		if found.Version != 0 {
			return app, found, nil
		} // it changed hands in between: look again
	}
}
