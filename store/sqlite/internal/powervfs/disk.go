package powervfs

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// Survival is what a power cut leaves of changes that were not synced.
type Survival int

const (
	None Survival = iota // nothing
	// of each sector, by chance, the change or what was there; so with each truncation, creation
	// and deletion
	Some
	Torn // as Some, and some sectors that survive hold garbage

	numSurvivals
)

// Survivals lists them all.
func Survivals() []Survival {
	list := make([]Survival, numSurvivals)
	for i := range list {
		list[i] = Survival(i)
	}
	return list
}

// sector is what a disk writes as a whole, in bytes.
const sector = 512

// Disk is the state of a disk: what is there for sure, and what has been asked for since the last
// sync.
type Disk struct {
	files map[string]*content
	Acked int // of the last Mark
}

// content is a file.
type content struct {
	durable []byte
	pending []Op // writes and truncations since the last sync
	named   bool // its name is in the directory for sure
	deleted bool // asked for, but not for sure
}

// LoadDisk is a disk that holds the files of a directory for sure.
func LoadDisk(dir string) (*Disk, error) {
	d := &Disk{files: map[string]*content{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || shared(e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		d.files[e.Name()] = &content{durable: b, named: true}
	}
	return d, nil
}

// apply performs a write or a truncation on b.
func apply(b []byte, op Op) []byte {
	end := op.Offset
	if op.Kind == Write {
		end += int64(len(op.Data))
	}
	if int64(len(b)) < end {
		b = append(b, make([]byte, end-int64(len(b)))...)
	}
	if op.Kind == Truncate {
		return b[:end]
	}
	copy(b[op.Offset:], op.Data)
	return b
}

// Step shows the disk the next operation.
func (d *Disk) Step(op Op) {
	if op.Kind == Mark {
		d.Acked = op.Mark
		return
	}
	if op.File == "" || shared(op.File) {
		return
	}
	f := d.files[op.File]
	if f == nil || f.deleted && op.Kind != Delete { // a new file of that name
		f = &content{}
		d.files[op.File] = f
	}
	switch op.Kind {
	case Write, Truncate:
		f.pending = append(f.pending, op)
	case Sync:
		for _, p := range f.pending {
			f.durable = apply(f.durable, p)
		}
		f.pending, f.named = nil, true // SQLite syncs the directory when it has made a file
	case Delete:
		f.deleted = true
		if op.SyncDir {
			for name, f := range d.files {
				if f.deleted {
					delete(d.files, name)
				}
			}
		}
	}
}

// Image writes into an empty directory what a power cut may leave now.
func (d *Disk) Image(dir string, s Survival, r *rand.Rand) error {
	chance := func() bool { return s != None && r.IntN(2) == 0 }
	for _, name := range d.names() {
		f := d.files[name]
		if f.deleted && chance() || !f.named && !chance() {
			continue
		}
		b := slices.Clone(f.durable)
		for _, op := range f.pending {
			if op.Kind == Truncate {
				if chance() {
					b = apply(b, op)
				}
				continue
			}
			for rest := op; len(rest.Data) > 0; {
				n := min(int(sector-rest.Offset%sector), len(rest.Data))
				if chance() {
					part := Op{Kind: Write, Offset: rest.Offset, Data: rest.Data[:n]}
					if s == Torn && r.IntN(8) == 0 {
						part.Data = garbage(n, r)
					}
					b = apply(b, part)
				}
				rest.Offset, rest.Data = rest.Offset+int64(n), rest.Data[n:]
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// names in a fixed order, so that the same chance gives the same image.
func (d *Disk) names() []string {
	var list []string
	for name := range d.files {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func garbage(n int, r *rand.Rand) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
