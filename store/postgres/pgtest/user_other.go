//go:build !unix

package pgtest

import (
	"errors"
	"syscall"
)

func unprivileged(string) (*syscall.SysProcAttr, error) {
	return nil, errors.New("TRACKING_POSTGRES is not set, and a server is started on Unix only")
}
