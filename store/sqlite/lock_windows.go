package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes the lock that keeps a second Store away: a file open for nobody else. The system
// closes it when the process ends, however it ends.
func lockFile(path string) (release func() error, err error) {
	const sharingViolation = syscall.Errno(32) // ERROR_SHARING_VIOLATION
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const shareNothing = 0
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, shareNothing, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, ErrInUse
	}
	if err != nil {
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() error { return syscall.CloseHandle(h) }, nil
}
