package texts

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"golang.org/x/text/language"
)

// Set holds the texts of a project. It is immutable, and safe for concurrent use.
type Set struct {
	// own are the texts for requests that name no language.
	own Texts
	// all are the texts by language, a canonical BCP 47 tag.
	all map[string]*Texts
	// prepared are the prepared texts of all languages, each once.
	prepared []string
	// notMe are the titles of ButtonNotMe in all languages, each once.
	notMe []string

	matcher func() (language.Matcher, []string)
}

// builtInSet is the set of projects without texts of their own.
var builtInSet = sync.OnceValue(func() *Set { return NewSet(Texts{}, nil) })

// BuiltIn returns the set of a project that has no texts of its own.
func BuiltIn() *Set { return builtInSet() }

// NewSet returns the set of a project. byLanguage are its texts by language, a BCP 47 tag, and forAll those for every language
// that byLanguage has no text for. The rest is built in.
func NewSet(forAll Texts, byLanguage map[string]Texts) *Set {
	forAll = forAll.ForBoth()
	s := &Set{own: forAll.orElse(builtIn[english]), all: make(map[string]*Texts, len(builtIn)+len(byLanguage))}
	for tag, t := range builtIn {
		merged := forAll.orElse(t)
		s.all[tag] = &merged
	}
	for _, tag := range slices.Sorted(maps.Keys(byLanguage)) {
		canonical, base, ok := parseOwn(tag)
		if _, listed := byLanguage[canonical]; !ok || listed && canonical != tag {
			continue // malformed, or listed under its present name, too
		}
		own := byLanguage[tag]
		merged := own.ForBoth().orElse(forAll).orElse(builtIn[base]).orElse(builtIn[english])
		s.all[canonical] = &merged
	}
	tags := slices.Sorted(maps.Keys(s.all))
	s.prepared, s.notMe = []string{s.own.Prepared}, []string{s.own.ButtonNotMe}
	for _, tag := range tags {
		s.prepared, s.notMe = appendNew(s.prepared, s.all[tag].Prepared), appendNew(s.notMe, s.all[tag].ButtonNotMe)
	}
	// The tables of x/text are built once and only where a request names a language.
	s.matcher = sync.OnceValues(func() (language.Matcher, []string) { return newMatcher(tags) })
	return s
}

func newMatcher(tags []string) (language.Matcher, []string) {
	var (
		parsed []language.Tag
		known  []string
	)
	for _, tag := range tags {
		if t, err := language.Parse(tag); err == nil { // else it matches itself alone
			parsed, known = append(parsed, t), append(known, tag)
		}
	}
	return language.NewMatcher(parsed), known
}

// parseOwn returns the canonical form of a project's tag and its language; false if it is not well-formed. A language that no
// registry has stays as it is.
func parseOwn(tag string) (canonical, base string, ok bool) {
	parsed, err := language.Parse(tag)
	if _, unknown := errors.AsType[language.ValueError](err); unknown {
		return tag, "", true
	}
	return parsed.String(), baseOf(parsed), err == nil
}

// baseOf returns the language of a tag without script and region; empty if the tag names none.
func baseOf(tag language.Tag) string {
	canonical, err := language.All.Canonicalize(tag)
	if err != nil {
		return ""
	}
	base, confidence := canonical.Base()
	if confidence != language.Exact { // guessed from a script or a region
		return ""
	}
	return base.String()
}

// Match returns the tag of the set that suits a BCP 47 tag best; empty if the set has no text in that language. Another language that
// many of its speakers read does not count: whether Spanish is welcome does not follow from a request in Basque.
func (s *Set) Match(tag string) string {
	if tag == "" {
		return ""
	}
	if _, exact := s.all[tag]; exact {
		return tag
	}
	parsed, err := language.Parse(tag)
	if err != nil {
		return ""
	}
	matcher, tags := s.matcher()
	nearest, i, confidence := matcher.Match(parsed)
	if confidence == language.No || baseOf(nearest) != baseOf(parsed) {
		return ""
	}
	return tags[i]
}

// In returns the texts in the language that suits a BCP 47 tag best; those for requests without one if none does.
func (s *Set) In(tag string) *Texts {
	if t := s.all[s.Match(tag)]; t != nil {
		return t
	}
	return &s.own
}

// Prepared returns the prepared texts of all languages, each once. The caller must not change them.
func (s *Set) Prepared() []string { return s.prepared }
