package web

import (
	"embed"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

//go:embed texts/*.json
var textFiles embed.FS

// fallback is the language whose texts stand in where another one has none.
const fallback = "en"

// Languages are the languages shipped, the default first.
func Languages() []string { return []string{fallback, "de"} }

// Words returns the texts shipped for a language, by key, or nil when it is not shipped. Texts may
// hold places such as {name} and {n}.
func Words(lang string) map[string]string {
	if !slices.Contains(Languages(), lang) {
		return nil
	}
	data, err := textFiles.ReadFile("texts/" + lang + ".json")
	if err != nil {
		panic(err) // embedded
	}
	words := map[string]string{}
	if err := json.Unmarshal(data, &words); err != nil {
		panic(err)
	}
	return words
}

func checkWords(words map[string]map[string]string, bad func(format string, args ...any)) {
	known := Words(fallback)
	for _, lang := range slices.Sorted(maps.Keys(words)) {
		if !langPattern.MatchString(lang) {
			bad("Words: %q is not a language tag", lang)
		}
		for _, key := range slices.Sorted(maps.Keys(words[lang])) {
			if _, ok := known[key]; !ok {
				bad("Words[%q]: there is no text %q", lang, key)
			}
		}
		if dir := words[lang]["lang.dir"]; dir != "" && dir != "ltr" && dir != "rtl" {
			bad("Words[%q]: lang.dir must be ltr or rtl", lang)
		}
	}
}

// words picks the language of a page by the Accept-Language header and returns its tag and complete
// table.
func (f *Fronts) words(s Site, accept string) (string, map[string]string) {
	have := Languages()
	for _, lang := range slices.Sorted(maps.Keys(s.Words)) {
		if !slices.ContainsFunc(have, func(h string) bool { return strings.EqualFold(h, lang) }) {
			have = append(have, lang)
		}
	}
	lang := match(accept, have)
	table := maps.Clone(f.texts[fallback])
	for _, tag := range []string{base(lang), lang} { // the words for "de" also serve a page in "de-AT"
		maps.Copy(table, f.texts[tag])
		for _, own := range slices.Sorted(maps.Keys(s.Words)) {
			if strings.EqualFold(own, tag) {
				maps.Copy(table, s.Words[own])
			}
		}
	}
	return lang, table
}

// reasons are the words of each reason_code that is not left out: the Site's, or those of the table.
func (s Site) reasons(table map[string]string) map[string]string {
	const prefix = "reason."
	words := map[string]string{}
	for key, text := range part(table, prefix) {
		words[strings.TrimPrefix(key, prefix)] = text
	}
	maps.Copy(words, s.Reasons)
	maps.DeleteFunc(words, func(_, text string) bool { return text == "" })
	return words
}

func base(tag string) string { b, _, _ := strings.Cut(tag, "-"); return b }

// match picks from have by an Accept-Language header (RFC 9110, 12.5.4), the best weight first and
// in the header's order among equals. A range matches its tag, else a tag of the same primary
// language.
func match(accept string, have []string) string {
	type want struct {
		tag string
		q   float64
	}
	var wants []want
	for part := range strings.SplitSeq(accept, ",") {
		if len(wants) == 32 { // no browser sends more
			break
		}
		tag, params, _ := strings.Cut(part, ";")
		w := want{strings.TrimSpace(tag), 1}
		if v, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			q, err := strconv.ParseFloat(v, 64)
			if err != nil || !(q >= 0 && q <= 1) {
				continue
			}
			w.q = q
		}
		if w.tag != "" && w.q > 0 {
			wants = append(wants, w)
		}
	}
	slices.SortStableFunc(wants, func(a, b want) int {
		switch {
		case a.q > b.q:
			return -1
		case a.q < b.q:
			return 1
		}
		return 0
	})
	for _, w := range wants {
		if w.tag == "*" {
			return have[0]
		}
		for _, h := range have {
			if strings.EqualFold(h, w.tag) {
				return h
			}
		}
		for _, h := range have {
			if strings.EqualFold(base(h), base(w.tag)) {
				return h
			}
		}
	}
	return have[0]
}

// fill puts values into the {places} of a text; pairs are name, value, name, value.
func fill(text string, pairs ...string) string {
	for i := range len(pairs) / 2 {
		pairs[2*i] = "{" + pairs[2*i] + "}"
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// part is the texts whose key begins with one of the given words, for the page that needs only
// these.
func part(table map[string]string, prefixes ...string) map[string]string {
	out := map[string]string{}
	for k, v := range table {
		for _, p := range prefixes {
			if strings.HasPrefix(k, p) {
				out[k] = v
			}
		}
	}
	return out
}
