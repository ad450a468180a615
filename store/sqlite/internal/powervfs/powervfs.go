// Package powervfs lets tests see what a disk would hold after a power cut, and what a store does
// when its disk fails.
//
// [Register] puts a VFS between SQLite and the system's own. It notes every change of a file and
// every sync ([VFS.Log]), and a [Disk] that is shown the notes one by one can write out what may be
// left at that moment ([Disk.Image]). With a [Fault], operations fail as the test wants.
//
// SQLite calls a VFS through C function pointers, which this package answers with Go functions, in
// memory that Go does not own.
package powervfs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/sqlite/lib"
)

// Kind is what an operation does.
type Kind uint8

const (
	Open Kind = iota
	Read
	Write
	Truncate
	Sync
	Delete
	Size
	MapShared // of the -shm file
	Mark      // nothing is done; see [VFS.Mark]
)

func (k Kind) String() string {
	return [...]string{"open", "read", "write", "truncate", "sync", "delete", "size", "map", "mark"}[k]
}

// Op is one operation on a file.
type Op struct {
	Kind    Kind
	File    string // without its directory
	Offset  int64  // of a write; the new length of a truncation
	Data    []byte // of a write
	SyncDir bool   // of a deletion: the directory is synced too
	Mark    int
}

// Fault decides over an operation before it is done: a result code other than 0 is its answer, and
// it is not done.
type Fault func(op Op) (code int32)

// VFS is a registered VFS.
type VFS struct {
	name string
	tls  *libc.TLS
	vfs  uintptr // *Tsqlite3_vfs, in C memory
	next *sqlite3.Tsqlite3_vfs
	keep []any // the Go functions that C memory points to

	mu     sync.Mutex
	log    []Op
	record bool
	fault  Fault
	files  map[uintptr]*file    // by *Tsqlite3_file
	tables map[uintptr]*methods // by the system's method table, of which it has several
}

// file is an open file.
type file struct {
	name string
	*methods
}

// methods are a method table of the system's, and ours in its place.
type methods struct {
	theirs sqlite3.Tsqlite3_io_methods
	ours   uintptr
}

// C signatures.
type (
	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	deleteFunc   = func(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
	transferFunc = func(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
	sizeFunc     = func(tls *libc.TLS, file, size uintptr) int32
	mapFunc      = func(tls *libc.TLS, file uintptr, region, size, extend int32, out uintptr) int32
)

// pointer makes a Go function callable from translated C. The function has to be kept alive by
// somebody else.
func pointer[F any](v *VFS, f F) uintptr {
	v.keep = append(v.keep, f)
	return *(*uintptr)(unsafe.Pointer(&f))
}

// function makes a function of translated C callable from Go.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

// at is the T at an address in C memory. The garbage collector neither moves nor frees what is
// there, so that an address may be kept as a number, which go vet warns of for memory of Go's.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// Register puts a VFS with that name before the system's. It records nothing yet.
func Register(name string) (*VFS, error) {
	v := &VFS{name: name, tls: libc.NewTLS(), files: map[uintptr]*file{}, tables: map[uintptr]*methods{}}
	system := sqlite3.Xsqlite3_vfs_find(v.tls, 0)
	if system == 0 {
		return nil, fmt.Errorf("powervfs: there is no default VFS")
	}
	v.next = at[sqlite3.Tsqlite3_vfs](system)
	v.vfs = libc.Xmalloc(v.tls, libc.Tsize_t(unsafe.Sizeof(*v.next)))
	c := at[sqlite3.Tsqlite3_vfs](v.vfs)
	*c = *v.next
	c.FpNext = 0
	var err error
	if c.FzName, err = libc.CString(name); err != nil {
		return nil, err
	}
	c.FxOpen, c.FxDelete = pointer[openFunc](v, v.open), pointer[deleteFunc](v, v.delete)
	if rc := sqlite3.Xsqlite3_vfs_register(v.tls, v.vfs, 0); rc != 0 {
		return nil, fmt.Errorf("powervfs: register %s: %d", name, rc)
	}
	return v, nil
}

// Unregister takes the VFS away. No file may be open.
func (v *VFS) Unregister() {
	sqlite3.Xsqlite3_vfs_unregister(v.tls, v.vfs)
	libc.Xfree(v.tls, at[sqlite3.Tsqlite3_vfs](v.vfs).FzName)
	libc.Xfree(v.tls, v.vfs)
	for _, m := range v.tables {
		libc.Xfree(v.tls, m.ours)
	}
	v.tls.Close()
}

// Name is the name it is registered under.
func (v *VFS) Name() string { return v.name }

// Record begins to note what is done, or ends it.
func (v *VFS) Record(on bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.record = on
}

// Mark notes that n things have been acknowledged.
func (v *VFS) Mark(n int) { v.note(Op{Kind: Mark, Mark: n}) }

// Log lists what was noted.
func (v *VFS) Log() []Op {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.log)
}

// SetFault has f decide from now on; nil ends it. f is called by one goroutine at a time.
func (v *VFS) SetFault(f Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fault = f
}

// Files counts the files that are open.
func (v *VFS) Files() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.files)
}

func (v *VFS) note(op Op) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.record {
		v.log = append(v.log, op)
	}
}

// refuse asks the fault.
func (v *VFS) refuse(op Op) int32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fault == nil {
		return 0
	}
	return v.fault(op)
}

// do performs an operation unless it is refused, and notes one that has changed something.
func (v *VFS) do(op Op, f func() int32) int32 {
	if code := v.refuse(op); code != 0 {
		return code
	}
	code := f()
	if code == 0 {
		switch op.Kind {
		case Write, Truncate, Sync, Delete:
			v.note(op)
		}
	}
	return code
}

func (v *VFS) of(p uintptr) *file {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.files[p]
}

func base(name uintptr) string {
	if name == 0 {
		return ""
	}
	return filepath.Base(libc.GoString(name))
}

func (v *VFS) open(tls *libc.TLS, _, name, p uintptr, flags int32, outFlags uintptr) int32 {
	f := at[sqlite3.Tsqlite3_file](p)
	f.FpMethods = 0 // SQLite closes what has methods, even after an error
	return v.do(Op{Kind: Open, File: base(name)}, func() int32 {
		code := function[openFunc](v.next.FxOpen)(tls, uintptr(unsafe.Pointer(v.next)), name, p, flags, outFlags)
		if code != 0 || f.FpMethods == 0 {
			return code
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		m := v.tables[f.FpMethods]
		if m == nil {
			m = v.wrap(tls, f.FpMethods)
			v.tables[f.FpMethods] = m
		}
		v.files[p] = &file{base(name), m}
		f.FpMethods = m.ours
		return code
	})
}

// wrap makes our table for one of the system's.
func (v *VFS) wrap(tls *libc.TLS, theirs uintptr) *methods {
	m := &methods{theirs: *at[sqlite3.Tsqlite3_io_methods](theirs)}
	m.ours = libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(m.theirs)))
	c := at[sqlite3.Tsqlite3_io_methods](m.ours)
	*c = m.theirs
	c.FiVersion = min(c.FiVersion, 2) // without xFetch, or pages could be written past us
	c.FxClose = pointer[closeFunc](v, v.close)
	c.FxRead = pointer[transferFunc](v, v.read)
	c.FxWrite = pointer[transferFunc](v, v.write)
	c.FxTruncate = pointer[truncateFunc](v, v.truncate)
	c.FxSync = pointer[syncFunc](v, v.sync)
	c.FxFileSize = pointer[sizeFunc](v, v.size)
	if c.FxShmMap != 0 {
		c.FxShmMap = pointer[mapFunc](v, v.mapShared)
	}
	return m
}

func (v *VFS) close(tls *libc.TLS, p uintptr) int32 {
	f := v.of(p)
	v.mu.Lock()
	delete(v.files, p)
	v.mu.Unlock()
	return function[closeFunc](f.theirs.FxClose)(tls, p)
}

func (v *VFS) read(tls *libc.TLS, p, buf uintptr, n int32, offset int64) int32 {
	f := v.of(p)
	return v.do(Op{Kind: Read, File: f.name, Offset: offset}, func() int32 {
		return function[transferFunc](f.theirs.FxRead)(tls, p, buf, n, offset)
	})
}

func (v *VFS) write(tls *libc.TLS, p, buf uintptr, n int32, offset int64) int32 {
	f := v.of(p)
	data := slices.Clone(unsafe.Slice(at[byte](buf), n))
	return v.do(Op{Kind: Write, File: f.name, Offset: offset, Data: data}, func() int32 {
		return function[transferFunc](f.theirs.FxWrite)(tls, p, buf, n, offset)
	})
}

func (v *VFS) truncate(tls *libc.TLS, p uintptr, size int64) int32 {
	f := v.of(p)
	return v.do(Op{Kind: Truncate, File: f.name, Offset: size}, func() int32 {
		return function[truncateFunc](f.theirs.FxTruncate)(tls, p, size)
	})
}

func (v *VFS) sync(tls *libc.TLS, p uintptr, flags int32) int32 {
	f := v.of(p)
	return v.do(Op{Kind: Sync, File: f.name}, func() int32 {
		return function[syncFunc](f.theirs.FxSync)(tls, p, flags)
	})
}

func (v *VFS) size(tls *libc.TLS, p, size uintptr) int32 {
	f := v.of(p)
	return v.do(Op{Kind: Size, File: f.name}, func() int32 {
		return function[sizeFunc](f.theirs.FxFileSize)(tls, p, size)
	})
}

func (v *VFS) mapShared(tls *libc.TLS, p uintptr, region, size, extend int32, out uintptr) int32 {
	f := v.of(p)
	return v.do(Op{Kind: MapShared, File: f.name + "-shm"}, func() int32 {
		return function[mapFunc](f.theirs.FxShmMap)(tls, p, region, size, extend, out)
	})
}

func (v *VFS) delete(tls *libc.TLS, _, name uintptr, syncDir int32) int32 {
	return v.do(Op{Kind: Delete, File: base(name), SyncDir: syncDir != 0}, func() int32 {
		return function[deleteFunc](v.next.FxDelete)(tls, uintptr(unsafe.Pointer(v.next)), name, syncDir)
	})
}

// shared reports whether a file is shared memory, which a power cut ends anyway.
func shared(name string) bool { return strings.HasSuffix(name, "-shm") }
