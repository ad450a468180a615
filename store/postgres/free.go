package postgres

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A sweep takes what nobody else holds, and leaves the rest to the next one: a row in a transaction that
// stays open must stop none. For that there is SKIP LOCKED. A server that has none is asked for all of
// them without waiting, and where one is held, for each by itself.

// lockable are the rows of a query that are to be locked, but those that somebody else holds.
type lockable[T any] struct {
	query string // ends with a condition
	order string // ORDER BY …; the last parameter is its LIMIT, if it has one
	lock  string
	key   string // the columns that name a row
	keyOf func(T) []any
	scan  pgx.RowToFunc[T]
}

const limited = ` LIMIT`

// free sees to it that list is set to what could be locked, by the next flush.
func (l *lockable[T]) free(ctx context.Context, x *tx, list *[]T, args ...any) error {
	if x.store.able.skip {
		queueRows(x, list, l.scan, l.all(len(args))+l.lock+` SKIP LOCKED`, args...)
		return nil
	}
	*list = nil
	if err := x.flush(ctx); err != nil {
		return err
	}
	held, err := x.refuses(ctx, func() { queueRows(x, list, l.scan, l.all(len(args))+l.lock+` NOWAIT`, args...) })
	if err != nil || !held {
		return err
	}
	return l.eachFree(ctx, x, list, args...)
}

// all finds all rows, with so many parameters.
func (l *lockable[T]) all(params int) string {
	if strings.HasSuffix(l.order, limited) {
		return l.query + l.order + ` $` + strconv.Itoa(params)
	}
	return l.query + l.order
}

// eachFree tries row by row. What is held must not use up the limit.
func (l *lockable[T]) eachFree(ctx context.Context, x *tx, list *[]T, args ...any) error {
	most, last := -1, len(args)-1
	keyAt := len(args)
	args = slices.Clone(args)
	if strings.HasSuffix(l.order, limited) {
		most, keyAt = min(args[last].(int), math.MaxInt32/4), last // twice that is a number still
	}
	for ask := 2*most + 1; ; ask *= 2 {
		if most >= 0 {
			args[last] = ask
		}
		var found []T
		queueRows(x, &found, l.scan, l.all(len(args)), args...)
		if err := x.flush(ctx); err != nil {
			return err
		}
		*list = nil
		for _, v := range found {
			if len(*list) == most {
				return nil
			}
			key := l.keyOf(v)
			params := make([]string, len(key))
			for i := range key {
				params[i] = `$` + strconv.Itoa(keyAt+i+1)
			}
			one := l.query + ` AND (` + l.key + `) = (` + strings.Join(params, `, `) + `)` + l.lock + ` NOWAIT`
			var got []T
			_, err := x.refuses(ctx, func() {
				queueRows(x, &got, l.scan, one, append(args[:keyAt:keyAt], key...)...)
			})
			if err != nil {
				return err
			}
			*list = append(*list, got...)
		}
		if most < 0 || len(found) < ask {
			return nil
		}
	}
}

// refuses flushes what queue adds, and reports whether it has met a row that somebody holds. Then it
// has locked nothing.
func (x *tx) refuses(ctx context.Context, queue func()) (held bool, err error) {
	x.queue(`SAVEPOINT free`)
	queue()
	x.queue(`RELEASE SAVEPOINT free`)
	if err = x.flush(ctx); code(err) != codeLockTimeout {
		return false, err
	}
	x.queue(`ROLLBACK TO SAVEPOINT free`)
	return true, x.flush(ctx)
}
