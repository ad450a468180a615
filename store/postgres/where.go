package postgres

import (
	"strconv"
	"strings"
)

// where builds the conditions of a query, and numbers their parameters. The parts are constants, so
// there are few texts in all.
type where struct {
	sql  string
	args []any
}

// and adds a condition, whose parameter stands as %d.
func (w *where) and(condition string, value any) {
	w.args = append(w.args, value)
	w.sql += param(condition, len(w.args))
}

// param is a condition with the number of its parameter.
func param(condition string, n int) string {
	return strings.ReplaceAll(condition, "%d", "$"+strconv.Itoa(n))
}
