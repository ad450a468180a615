package sqlite

import (
	"errors"
	"os"
	"syscall"
)

const (
	setOpenFileLock = 37      // F_OFD_SETLK: the lock is the open file's, not the process's
	fileLockAt      = 1 << 61 // far behind any byte that SQLite locks or writes
)

// lockInode keeps away whoever opens the file by another name: a hard link, or a directory that is
// mounted twice. The lock lies on the file itself, so it can be taken only when the file is there.
// Where locks of open files are not to be had, the lock file beside it has to do.
func lockInode(path string) (release func() error, err error) {
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	err = syscall.FcntlFlock(uintptr(fd), setOpenFileLock, &syscall.Flock_t{
		Type: syscall.F_WRLCK, Start: fileLockAt, Len: 1,
	})
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
		// fd stays open for good. This process may be the one that has the file open, and to close
		// any descriptor of a file takes away all the locks that SQLite holds on it in this process
		// (fcntl(2)): others could then take away its log.
		return nil, ErrInUse
	case err != nil:
		return func() error { return nil }, syscall.Close(fd)
	}
	return func() error { return syscall.Close(fd) }, nil
}
