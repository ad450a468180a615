package rows

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/seed-8aba7b13/tracking"
)

// Terms are what an index finds a task by: every beginning of its words, every end of its numbers
// from 3 digits on, and its properties, each once. So what is looked for is always a whole term, and
// those that have it can be read in order. Beginnings and ends are no longer than longest, in bytes;
// what an index finds by such a one is to be looked at again. Terms are of letters and digits only.
func Terms(t *tracking.Task, longest int) []string {
	words, tails := t.SearchTerms()
	list := make([]string, 0, 8*(len(words)+len(tails))+len(t.Properties))
	for _, word := range words {
		word = "w" + beginning(word, longest) // once, for all that it begins with
		for i, r := range word {
			if end := i + utf8.RuneLen(r); end > 1 {
				list = append(list, word[:end])
			}
		}
	}
	for _, digits := range tails {
		for n := 3; n <= min(len(digits), longest); n++ {
			list = append(list, "n"+digits[len(digits)-n:])
		}
	}
	for k, v := range t.Properties {
		list = append(list, propertyTerm(k, v))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// SameTerms reports whether two states of a task have the same terms, at little cost.
func SameTerms(a, b *tracking.Task) bool {
	return a.OrderID == b.OrderID && sameTexts(a.Pickup, b.Pickup) && sameTexts(a.Drop, b.Drop) &&
		maps.Equal(a.Properties, b.Properties)
}

func sameTexts(a, b *tracking.Place) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Address == b.Address &&
		(a.Customer == b.Customer || a.Customer != nil && b.Customer != nil && *a.Customer == *b.Customer)
}

// Wanted are the terms that a filter asks for: all of one of these lists. Found says whether it asks
// for any; with none, nothing is found.
func Wanted(f tracking.TaskFilter, longest int) (lists [][]string, asks bool) {
	var properties []string
	for _, k := range slices.Sorted(maps.Keys(f.Properties)) {
		properties = append(properties, propertyTerm(k, f.Properties[k]))
	}
	if f.Query == "" {
		if properties == nil {
			return nil, false
		}
		return [][]string{properties}, true
	}
	s := tracking.ParseSearch(f.Query)
	if len(s.Words) > 0 {
		all := slices.Clone(properties)
		for _, word := range s.Words {
			all = append(all, "w"+beginning(word, longest))
		}
		lists = append(lists, all)
	}
	if s.Tail != "" {
		lists = append(lists, append(slices.Clone(properties), "n"+s.Tail[max(0, len(s.Tail)-longest):]))
	}
	return lists, true
}

// beginning is at most longest bytes of a word, in whole letters.
func beginning(word string, longest int) string {
	if len(word) <= longest {
		return word
	}
	end := 0
	for i, r := range word {
		if i+utf8.RuneLen(r) > longest {
			break
		}
		end = i + utf8.RuneLen(r)
	}
	return word[:end]
}

// propertyTerm is a term that no other property has.
func propertyTerm(key, value string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(key), key, value))
	return "p" + hex.EncodeToString(sum[:16])
}
