package sqlite

import "io/fs"

// WithVFS returns options for a store on another VFS.
func (o Options) WithVFS(name string) *Options { o.vfs = name; return &o }

// WithSynchronous returns options for a store with another setting of synchronous.
func (o Options) WithSynchronous(mode string) *Options { o.synchronous = mode; return &o }

// WithMigrations returns options for a store with other migrations.
func (o Options) WithMigrations(dir fs.FS) *Options { o.migrations = dir; return &o }
