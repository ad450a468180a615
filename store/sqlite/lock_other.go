//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package sqlite

import "errors"

// lockFile refuses: without a lock that the system gives back by itself, two processes could write
// the same file.
func lockFile(string) (release func() error, err error) {
	return nil, errors.ErrUnsupported
}
