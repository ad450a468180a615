package web

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	schemePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+-]*$`)
	hostPattern   = regexp.MustCompile(`^(\*|(\*\.)?[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*)$`)
)

// checkAncestors says in a sentence what is wrong with the sources of frame-ancestors, or nil. A
// browser passes over a source that it does not understand, and takes a keyword without its quotes
// for the name of a host: then nobody may frame the page, or somebody else, and nothing says why.
func checkAncestors(sources []string) error {
	for _, s := range sources {
		if err := checkAncestor(s); err != nil {
			return fmt.Errorf("FrameAncestors: %w", err)
		}
		if strings.EqualFold(s, "'none'") && len(sources) > 1 {
			return fmt.Errorf("FrameAncestors: %s stands beside others, and browsers then pass over it; leave it out, or leave out the others", s)
		}
	}
	return nil
}

// checkAncestor checks one source by CSP Level 3, section 2.3.1: 'self', 'none', a scheme, or a
// host with a scheme and a port or without. What that leaves out for frame-ancestors, a path, is
// refused too.
func checkAncestor(s string) error {
	const such = "a source is written like https://shop.example, https://*.shop.example, https:, 'self', 'none' or *"
	switch lower := strings.ToLower(s); {
	case lower == "'self'", lower == "'none'", s == "*":
		return nil
	case lower == "self", lower == "none":
		return fmt.Errorf("%s without quotes is a host of that name; write '%s'", s, lower)
	case s == "", strings.ContainsAny(s, "'\" ,;\t\r\n"):
		return fmt.Errorf("%q is no source; %s, and each has an entry of its own", s, such)
	}

	scheme, rest, hasScheme := strings.Cut(s, "://")
	if !hasScheme {
		rest = s
		if name, ok := strings.CutSuffix(s, ":"); ok {
			if !schemePattern.MatchString(name) {
				return fmt.Errorf("%q is neither a scheme, such as https:, nor a host with its port, such as shop.example:8443", s)
			}
			return nil
		}
	} else if !schemePattern.MatchString(scheme) {
		return fmt.Errorf("%q is no source; %s", s, such)
	}

	if before, _, found := strings.Cut(rest, "/"); found {
		if before == "" {
			return fmt.Errorf("%q names no host; %s", s, such)
		}
		return fmt.Errorf("%q has a path, but a frame is allowed to a whole origin; write %q", s,
			strings.TrimSuffix(s, rest)+before)
	}
	host, port, hasPort := strings.Cut(rest, ":")
	if !hostPattern.MatchString(host) {
		if strings.Contains(host, "*") {
			return fmt.Errorf("%q has its * in another place than CSP knows: it stands for the whole first part of a host, as in https://*.shop.example", s)
		}
		return fmt.Errorf("%q has no host of plain letters, digits, dots and hyphens; write other scripts as xn--…, and addresses of IPv6 by a name", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); hasPort && port != "*" && (err != nil || n == 0) {
		return fmt.Errorf("%q has a port that is no number from 1 to 65535 and not *", s)
	}
	return nil
}
