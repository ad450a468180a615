package rows

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-8aba7b13/tracking"
)

// Terms are what an index finds a task by: every beginning of its words, every end of its numbers
// from 3 digits on, and its properties, each once. So what is looked for is always a whole term, and
// those that have it can be read in order. Beginnings and ends are no longer than longest, in bytes;
// what an index finds by such a one is to be looked at again. Terms are of letters and digits only.
func Terms(t *tracking.Task, longest int) []string {
	list := strings.Fields(string(AppendTerms(nil, t, longest, "")))
	slices.Sort(list)
	return list
}

// AppendTerms appends the terms of a task to a text, in no order, each behind what comes before and
// followed by a space.
func AppendTerms(text []byte, t *tracking.Task, longest int, before string) []byte {
	words, tails := t.SearchTerms()
	last := ""
	for _, word := range words { // in order: what a word begins with like any other, it does like the last one
		word = beginning(word, longest)
		known := 0
		for known < min(len(last), len(word)) && last[known] == word[known] {
			known++
		}
		for i, r := range word {
			if end := i + utf8.RuneLen(r); end > known {
				text = append(append(append(append(text, before...), 'w'), word[:end]...), ' ')
			}
		}
		last = word
	}
	for i, digits := range tails {
		for n := 3; n <= min(len(digits), longest); n++ {
			tail := digits[len(digits)-n:]
			if !slices.ContainsFunc(tails[:i], func(d string) bool { return strings.HasSuffix(d, tail) }) {
				text = append(append(append(append(text, before...), 'n'), tail...), ' ')
			}
		}
	}
	for k, v := range t.Properties {
		text = append(append(append(text, before...), propertyTerm(k, v)...), ' ')
	}
	return text
}

// longestCoded is how much of a beginning or an end a code goes by, in bytes.
const longestCoded = 8

// Codes appends the codes of a task's terms to a list, some perhaps twice: numbers, for an index that
// keeps them in memory, where the terms themselves would cost more than what they lead to. Several terms
// may have one code, and all that begin or end alike for long do, so that what is found is to be looked
// at again.
func Codes(codes []uint64, t *tracking.Task) []uint64 {
	all, ascii := asciiCodes(codes, t)
	if !ascii {
		all = textCodes(codes, t)
	}
	for k, v := range t.Properties {
		all = append(all, propertyCode(k, v))
	}
	return all
}

// textCodes are the codes but for those of properties.
func textCodes(codes []uint64, t *tracking.Task) []uint64 {
	words, tails := t.SearchTerms()
	for _, word := range words {
		word = beginning(word, longestCoded)
		var code uint64
		for i := range len(word) {
			code = code<<8 | uint64(word[i])
			if i+1 == len(word) || utf8.RuneStart(word[i+1]) {
				codes = append(codes, code)
			}
		}
	}
	for _, digits := range tails {
		for n := 3; n <= min(len(digits), longestCoded); n++ {
			codes = append(codes, tailCode(digits[len(digits)-n:]))
		}
	}
	return codes
}

// asciiCodes is textCodes for texts of ASCII alone, as most are, and reports whether they are: to take
// them apart here takes a tenth of the time, and no memory.
func asciiCodes(codes []uint64, t *tracking.Task) (_ []uint64, ascii bool) {
	if codes, ascii = asciiWords(codes, t.OrderID); !ascii {
		return nil, false
	}
	if n := len(t.OrderID); n > 0 && isDigit(t.OrderID[n-1]) {
		codes, _ = asciiTails(codes, t.OrderID)
	}
	for _, p := range [...]*tracking.Place{t.Pickup, t.Drop} {
		if p == nil {
			continue
		}
		if codes, ascii = asciiWords(codes, p.Address); !ascii {
			return nil, false
		}
		if p.Customer == nil {
			continue
		}
		if codes, ascii = asciiWords(codes, p.Customer.Name); !ascii {
			return nil, false
		}
		if codes, ascii = asciiTails(codes, p.Customer.Mobile); !ascii {
			return nil, false
		}
	}
	return codes, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// asciiWords appends the codes of a text's words, and reports whether it is of ASCII alone.
func asciiWords(codes []uint64, text string) (_ []uint64, ascii bool) {
	var code uint64
	length := 0
	for i := range len(text) {
		c := text[i]
		if c >= utf8.RuneSelf {
			return nil, false
		}
		if small := c | 0x20; 'a' <= small && small <= 'z' {
			c = small
		} else if !isDigit(c) {
			code, length = 0, 0
			continue
		}
		if length++; length <= longestCoded {
			code = code<<8 | uint64(c)
			codes = append(codes, code)
		}
	}
	return codes, true
}

// asciiTails appends the codes of a number's ends, and reports whether it is of ASCII alone.
func asciiTails(codes []uint64, number string) (_ []uint64, ascii bool) {
	var code uint64
	digits := 0
	for i := len(number) - 1; i >= 0; i-- {
		c := number[i]
		if c >= utf8.RuneSelf {
			return nil, false
		}
		if isDigit(c) && digits < longestCoded {
			code |= uint64(c) << (8 * digits)
			if digits++; digits >= 3 {
				codes = append(codes, ^code)
			}
		}
	}
	return codes, true
}

func wordCode(word string) (code uint64) {
	for i := range len(word) {
		code = code<<8 | uint64(word[i])
	}
	return code
}

// tailCode is other than that of a word of these digits.
func tailCode(digits string) uint64 { return ^wordCode(digits) }

func propertyCode(key, value string) uint64 {
	sum := propertySum(key, value)
	return binary.BigEndian.Uint64(sum[:])
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

// WantedCodes are the codes that [Wanted] would be with terms.
func WantedCodes(f tracking.TaskFilter) (lists [][]uint64) {
	wanted, _ := Wanted(f, longestCoded)
	for _, terms := range wanted {
		codes := make([]uint64, len(terms))
		for i, term := range terms {
			switch term[0] {
			case 'w':
				codes[i] = wordCode(term[1:])
			case 'n':
				codes[i] = tailCode(term[1:])
			default:
				codes[i], _ = strconv.ParseUint(term[1:17], 16, 64) // see propertyTerm
			}
		}
		lists = append(lists, codes)
	}
	return lists
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
	sum := propertySum(key, value)
	return "p" + hex.EncodeToString(sum[:16])
}

func propertySum(key, value string) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(key), key, value))
}
