//go:build !windows

package sqlite

import (
	"errors"
	"os"
)

// syncDir makes a new name in a directory survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
