package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
	_ "time/tzdata" // where the machine has none, as an empty container

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/internal/commandline"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
)

// config is what the command line says.
type config struct {
	addr    string
	metrics string // where Prometheus asks; "": nowhere
	store   storeFlags
	keys    []string // none: the store keeps them
	baseURL string
	demo    bool
	mapFile string // "": none
	options tracking.Options
	site    web.Site

	proxies       []netip.Prefix // in front; none: clients come by themselves
	proxiesHeader string

	webhook        string   // URL; "": none
	webhookSecrets []string // none: one that is kept with the store
	webhookPrivate bool

	pushContact string // "": no Web Push

	backup      string // "": none
	backupEvery time.Duration
}

const about = "Serves the delivery-tracking service over HTTP. Durations are written like 90s, 10m or 2h30m."

// parseFlags reads the command line and the environment. Its error is for the person who typed it.
func parseFlags(args []string, std streams) (config, error) {
	var c config
	line := c.line(std)
	if err := line.Parse(args); err != nil {
		return c, err
	}
	if err := c.check(line.Args()); err != nil {
		return c, line.Wrong(err.Error())
	}
	given := map[string]bool{}
	line.Flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["demo"] {
		c.demo = !given["store"] // who names a store has data of his own
	}
	return c, nil
}

// line is the command line that sets c.
func (c *config) line(std streams) *commandline.Line {
	line := newLine("server", "server [flags]", about+"\n\n"+aboutEnvironment, std)
	flags := line.Flags
	flags.StringVar(&c.addr, "addr", "127.0.0.1:8080", "`HOST:PORT` to listen on; port 0 takes a free one")
	flags.Func("metrics-addr",
		"`HOST:PORT` at which /metrics is for Prometheus, and for whoever else reaches it: no key is asked for (default: nowhere)",
		func(addr string) error {
			if _, _, err := net.SplitHostPort(addr); err != nil {
				return errors.New("it must be HOST:PORT, such as 127.0.0.1:9464")
			}
			c.metrics = addr
			return nil
		})
	c.store.add(flags)
	flags.StringVar(&c.backup, "backup", "",
		"copy the store to `FILE` while the server runs, at once and every -backup-every (sqlite only); start from the copy with -store sqlite:FILE")
	flags.Func("key",
		"API `KEY` that callers use, any text, besides those that the store keeps; may be given several times (default: at the first start one is made, kept with the store and printed)",
		func(key string) error {
			if key == "" {
				return errors.New("it is empty")
			}
			c.keys = append(c.keys, key)
			return nil
		})
	flags.StringVar(&c.baseURL, "base-url", "",
		"public `URL` that links begin with; the browsers of phones give their position to https addresses only (default: as each request was addressed)")
	flags.Func("trusted-proxies",
		"`ADDRESSES` of the proxies in front, or ranges such as 10.0.0.0/8, with commas between them; what they say of where a request came from counts for limits and stands in the log (default: none)", c.addProxies)
	flags.StringVar(&c.proxiesHeader, "forwarded-header", "X-Forwarded-For",
		"`NAME` of the header in which they say it: X-Forwarded-For, or Forwarded (RFC 7239)")
	flags.StringVar(&c.site.Name, "name", "", "`NAME` on the tracking page and the driver app (default Tracking)")
	flags.StringVar(&c.site.Logo, "logo", "",
		"`URL` of an image that stands for the name on the tracking page: http, https, data, or a path that a proxy in front serves (default: none)")
	flags.StringVar(&c.site.Color, "color", "", "`#RRGGBB` of the brand, on all pages (default "+web.DefaultColor+")")
	flags.Func("time-zone",
		"`ZONE` of the times on all pages, such as Europe/Berlin (default: that of each browser)", func(name string) (err error) {
			if c.site.TimeZone, err = time.LoadLocation(name); err != nil {
				return errors.New("it is no time zone such as Europe/Berlin")
			}
			return nil
		})
	flags.StringVar(&c.site.Tiles.URL, "tiles", "",
		"`URL` of the tiles of maps, with {z}, {x} and {y}, such as https://tiles.example.com/{z}/{x}/{y}.png (default: none, and maps show a plain grid)")
	flags.StringVar(&c.site.Tiles.Attribution, "tiles-attribution", "",
		"`TEXT` on the maps that says whose the tiles are; most sources ask for one")
	flags.StringVar(&c.mapFile, "map", "",
		"`FILE.pmtiles` with a map of streets, which browsers read from this server alone; the README says how to get one (default: none)")
	flags.StringVar(&c.site.ContactURL, "contact-url", "",
		"`URL` on the tracking page where a customer reaches you, such as tel:+491701 or mailto:shop@example.com; {order_id} and {task_id} in it stand for the delivery's (default: none)")
	flags.StringVar(&c.site.HelpURL, "help-url", "", "`URL` on the tracking page where a customer gets help (default: none)")
	flags.StringVar(&c.site.FeedbackURL, "feedback-url", "",
		"`URL` on the tracking page where a customer says how it was (default: none)")
	flags.BoolVar(&c.site.ShowProof, "show-proof", false,
		"show on the tracking page who received a delivery, and its photos")
	flags.Func("reason",
		"`CODE=WORDS` for why a delivery fails, such as no_lift=\"The lift is broken\": a reason of your own, or other words for a usual one; may be given several times",
		c.addReason)
	flags.IntVar(&c.options.MaxOpenTasks, "max-open-tasks", 1,
		"how `many` open tasks a driver may get automatically; negative: no limit")
	flags.Float64Var(&c.options.MaxAssignDistance, "max-assign-distance", 0,
		"how far away in `metres` a driver may be to get a task automatically; 0: no limit")
	flags.StringVar(&c.webhook, "webhook", "",
		"`URL` that is told of every event, by POST after Standard Webhooks 1.0.0")
	flags.Func("webhook-secret",
		"`SECRET` that webhooks are signed with, whsec_ and the base64 of 24 to 64 bytes; two while receivers change over (default: one is kept with the store, and printed once)", func(secret string) error {
			if _, err := httpadapter.Webhook("https://example.com", []string{secret}, nil); err != nil {
				return errors.New("it must be whsec_ and the base64 of 24 to 64 bytes")
			}
			c.webhookSecrets = append(c.webhookSecrets, secret)
			return nil
		})
	flags.BoolVar(&c.webhookPrivate, "webhook-allow-private", false,
		"allow that -webhook leads to this machine or its own network")
	flags.StringVar(&c.pushContact, "push-contact", "",
		"`URL` where operators of push services reach you, mailto:ops@example.com or https://example.com; with one, drivers' locked phones are told of new tasks by Web Push (default: -base-url if it is https and public, else no Web Push)")
	duration := func(v *time.Duration, name string, d time.Duration, what string) {
		*v = d
		ever := "for ever"
		if d > 0 {
			ever = short(d)
		}
		flags.Func(name, fmt.Sprintf("%s (default %s)", what, ever), func(text string) error {
			d, err := time.ParseDuration(text)
			switch {
			case err != nil:
				return errors.New("it is no duration such as 90s, 10m or 2h30m")
			case d <= 0:
				return errors.New("it must be positive")
			}
			*v = max(d, time.Millisecond) // the service counts in them
			return nil
		})
	}
	duration(&c.options.MaxFixAge, "max-fix-age", 10*time.Minute,
		"`DURATION` without a sign of life after which a driver counts as gone")
	duration(&c.options.TripTTL, "trip-ttl", 2*time.Hour, "`DURATION` that a trip lives without a fix")
	duration(&c.options.LinkTTL, "link-ttl", 24*time.Hour, "`DURATION` that a tracking link outlives its task or trip")
	duration(&c.options.InviteTTL, "invite-ttl", 24*time.Hour, "`DURATION` for which the link of an invite can be used")
	duration(&c.options.CodeTTL, "code-ttl", time.Hour, "`DURATION` for which the code of an invite can be used")
	duration(&c.options.StopTime, "stop-time", 2*time.Minute,
		"`DURATION` of a stop, in the expected times of those after it")
	duration(&c.options.AssignLead, "assign-lead", time.Hour,
		"`DURATION` before its window from which a driver is looked for")
	duration(&c.options.ReopenFor, "reopen-for", 24*time.Hour, "`DURATION` for which a task that has ended can be reopened")
	duration(&c.options.UndoFor, "undo-for", 10*time.Minute, "`DURATION` for which drivers can take a step back")
	duration(&c.options.KeepFixes, "keep-fixes", 90*24*time.Hour, "`DURATION` for which fixes are kept")
	duration(&c.options.KeepEvents, "keep-events", 30*24*time.Hour,
		"`DURATION` for which events are kept that were delivered, and what drivers were told")
	duration(&c.options.KeepTasks, "keep-tasks", 0, "`DURATION` after its end for which a task is kept")
	duration(&c.options.KeepContacts, "keep-contacts", 0,
		"`DURATION` after its end for which a task says whom it was for: contacts, addresses, notes, proofs")
	duration(&c.backupEvery, "backup-every", time.Hour, "`DURATION` between two backups")
	flags.BoolVar(&c.demo, "demo", false,
		"let couriers deliver along streets, so that something moves, and log of the requests only those that fail (default true unless -store is given)")

	return line
}

// check refuses what cannot be meant, flag by flag.
func (c *config) check(rest []string) error {
	if len(rest) > 0 {
		return errors.New("only flags are expected, no other arguments")
	}
	if c.options.MaxOpenTasks == 0 {
		return errors.New("-max-open-tasks cannot be 0: give how many, or a negative number for no limit")
	}
	if d := c.options.MaxAssignDistance; !(d >= 0) || math.IsInf(d, 0) {
		return errors.New("-max-assign-distance must be a number of metres, or 0 for no limit")
	}
	if c.baseURL != "" {
		u, err := url.Parse(c.baseURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" ||
			u.Fragment != "" || u.User != nil {
			return errors.New("-base-url must be an http or https address without a query, such as https://example.com")
		}
		c.baseURL = strings.TrimRight(c.baseURL, "/")
	}
	if c.backup != "" && !strings.HasPrefix(c.store.spec, "sqlite:") {
		return errors.New("-backup needs a store in a file: -store sqlite:FILE")
	}
	if c.webhook == "" && (c.webhookSecrets != nil || c.webhookPrivate) {
		return errors.New("-webhook-secret and -webhook-allow-private need a -webhook")
	}
	if c.webhook != "" {
		if _, err := httpadapter.Webhook(c.webhook, []string{webhook.NewSecret()}, nil); err != nil {
			return errors.New("-webhook must be an http or https address, such as https://example.com/hooks/tracking")
		}
	}
	if err := c.checkSite(); err != nil {
		return err
	}
	if _, err := httpadapter.BehindProxies(c.proxiesHeader); err != nil {
		return errors.New("-forwarded-header must be X-Forwarded-For or Forwarded")
	}
	if err := c.checkPush(); err != nil {
		return err
	}
	return c.store.check()
}

// clientIP is httpadapter.Options.ClientIP.
func (c *config) clientIP() (func(*http.Request) netip.Addr, error) {
	if c.proxies == nil {
		return nil, nil
	}
	return httpadapter.BehindProxies(c.proxiesHeader, c.proxies...)
}

// addProxies takes addresses and ranges.
func (c *config) addProxies(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		p, err := netip.ParsePrefix(part)
		if err != nil {
			var a netip.Addr
			if a, err = netip.ParseAddr(part); err == nil {
				p, err = a.Prefix(a.BitLen())
			}
		}
		if err != nil {
			return errors.New("it must be addresses or ranges such as 10.0.0.0/8, with commas between them")
		}
		c.proxies = append(c.proxies, p.Masked())
	}
	return nil
}

func (c *config) checkSite() error {
	if (web.Site{Color: c.site.Color}).Check() != nil {
		return errors.New("-color must have the form #rrggbb")
	}
	if c.mapFile != "" && c.site.Tiles.URL != "" {
		return errors.New("-map and -tiles cannot both be given")
	}
	if t := c.site.Tiles; t.URL == "" && t.Attribution != "" {
		return errors.New("-tiles-attribution needs -tiles")
	} else if (web.Site{Tiles: t}).Check() != nil {
		return errors.New("-tiles must be an http or https address, or a path, with {z}, {x} and {y}, such as https://tiles.example.com/{z}/{x}/{y}.png")
	}
	if (web.Site{Logo: c.site.Logo}).Check() != nil {
		return errors.New("-logo must be the address of an image, such as https://example.com/logo.svg, or data:image/…, or a path that begins with a slash")
	}
	for _, l := range []struct{ flag, url string }{
		{"-contact-url", c.site.ContactURL}, {"-help-url", c.site.HelpURL}, {"-feedback-url", c.site.FeedbackURL},
	} {
		if (web.Site{HelpURL: l.url}).Check() != nil {
			return fmt.Errorf("%s must be an http, https, mailto, tel or sms address, or a path that begins with a slash", l.flag)
		}
	}
	return nil
}

// addReason takes a reason in its own words.
func (c *config) addReason(text string) error {
	code, words, _ := strings.Cut(text, "=")
	site := web.Site{Reasons: map[string]string{code: words}}
	if words == "" || site.Check() != nil {
		return errors.New("it must be a code of a to z, 0 to 9 and _, then =, then words")
	}
	if _, again := c.site.Reasons[code]; again {
		return errors.New("its code was given before")
	}
	if own := tracking.ReasonCode(code); !own.Usual() {
		c.options.Reasons = append(c.options.Reasons, own)
	}
	if c.site.Reasons == nil {
		c.site.Reasons = map[string]string{}
	}
	c.site.Reasons[code] = words
	return nil
}

// demoTiles are those of the demo's town, as browsers see them.
func (c *config) demoTiles() web.Tiles {
	path := ""
	if u, err := url.Parse(c.baseURL); err == nil {
		path = u.EscapedPath()
	}
	return web.Tiles{
		URL: path + "/demo/light/{z}/{x}/{y}.svg", DarkURL: path + "/demo/dark/{z}/{x}/{y}.svg",
		Attribution: "A town of our own making",
	}
}

// publicURL is where callers on this machine find a server that listens at addr.
func (c *config) publicURL(addr net.Addr) string {
	if c.baseURL != "" {
		return c.baseURL
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "http://" + addr.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// short writes a duration without units that are 0.
func short(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}
