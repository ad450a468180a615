//go:build race

package sqlite_test

// raceDetector slows SQLite down ten times and more: the sizes of tests are cut for it.
const raceDetector = true
