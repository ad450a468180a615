package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
)

// errUsage is returned when the command line was wrong and that has been said.
var errUsage = errors.New("the command line is wrong")

// config is what the command line says.
type config struct {
	addr    string
	store   string
	keys    []string
	keyMade bool // nobody gave one
	baseURL string
	demo    bool
	options tracking.Options
	site    web.Site

	webhook        string   // URL; "": none
	webhookSecrets []string // at least one with a webhook
	webhookPrivate bool
	secretMade     bool // nobody gave one

	pushContact string // "": no Web Push

	backup      string // "": none
	backupEvery time.Duration
}

const usage = `Usage: server [flags]

Serves the delivery-tracking service over HTTP. Durations are written like 90s, 10m or 2h30m.

`

func parseFlags(args []string, log io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&c.addr, "addr", "127.0.0.1:8080", "`HOST:PORT` to listen on; port 0 takes a free one")
	flags.StringVar(&c.store, "store", "memory", "where the data is: `memory|sqlite:FILE`; in memory it is gone when the server ends")
	flags.StringVar(&c.backup, "backup", "", "copy the store to `FILE` while the server runs, at once and every -backup-every (sqlite only); start from the copy with -store sqlite:FILE")
	flags.Func("key", "API `KEY` that callers use, any text; may be given several times (default: one is made and printed)", func(key string) error {
		if key == "" {
			return errors.New("it is empty")
		}
		c.keys = append(c.keys, key)
		return nil
	})
	flags.StringVar(&c.baseURL, "base-url", "", "public `URL` that links begin with; the browsers of phones give their position to https addresses only (default: as each request was addressed)")
	flags.StringVar(&c.site.Name, "name", "", "`NAME` on the tracking page and the driver app (default Tracking)")
	flags.StringVar(&c.site.Logo, "logo", "", "`URL` of an image that stands for the name on the tracking page: http, https, data, or a path that a proxy in front serves (default: none)")
	flags.StringVar(&c.site.Tiles.URL, "tiles", "", "`URL` of the tiles of maps, with {z}, {x} and {y}, such as https://tiles.example.com/{z}/{x}/{y}.png (default: none, and maps show a plain grid)")
	flags.StringVar(&c.site.Tiles.Attribution, "tiles-attribution", "", "`TEXT` on the maps that says whose the tiles are; most sources ask for one")
	flags.IntVar(&c.options.MaxOpenTasks, "max-open-tasks", 1, "how `many` open tasks a driver may get automatically; negative: no limit")
	flags.Float64Var(&c.options.MaxAssignDistance, "max-assign-distance", 0, "how far away in `metres` a driver may be to get a task automatically; 0: no limit")
	flags.StringVar(&c.webhook, "webhook", "", "`URL` that is told of every event, by POST after Standard Webhooks 1.0.0")
	flags.Func("webhook-secret", "`SECRET` that webhooks are signed with, whsec_ and the base64 of 24 to 64 bytes; two while receivers change over (default: one is made and printed)", func(secret string) error {
		if _, err := httpadapter.Webhook("https://example.com", []string{secret}, nil); err != nil {
			return errors.New("it must be whsec_ and the base64 of 24 to 64 bytes")
		}
		c.webhookSecrets = append(c.webhookSecrets, secret)
		return nil
	})
	flags.BoolVar(&c.webhookPrivate, "webhook-allow-private", false, "allow that -webhook leads to this machine or its own network")
	flags.StringVar(&c.pushContact, "push-contact", "", "`URL` where operators of push services reach you, mailto:ops@example.com or https://example.com; with one, drivers' locked phones are told of new tasks by Web Push (default: -base-url if it is https and public, else no Web Push)")
	duration := func(v *time.Duration, name string, d time.Duration, what string) {
		*v = d
		flags.Func(name, fmt.Sprintf("%s (default %v)", what, short(d)), func(text string) error {
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
	duration(&c.options.MaxFixAge, "max-fix-age", 10*time.Minute, "`DURATION` without a sign of life after which a driver counts as gone")
	duration(&c.options.TripTTL, "trip-ttl", 2*time.Hour, "`DURATION` that a trip lives without a fix")
	duration(&c.options.LinkTTL, "link-ttl", 24*time.Hour, "`DURATION` that a tracking link outlives its task or trip")
	duration(&c.options.InviteTTL, "invite-ttl", 24*time.Hour, "`DURATION` for which the link of an invite can be used")
	duration(&c.options.CodeTTL, "code-ttl", time.Hour, "`DURATION` for which the code of an invite can be used")
	duration(&c.backupEvery, "backup-every", time.Hour, "`DURATION` between two backups")
	flags.BoolVar(&c.demo, "demo", false, "let couriers deliver along streets, so that something moves, and log of the requests only those that fail (default true when no flag is given)")

	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, err
		}
		return c, errUsage
	}
	if err := c.check(flags.Args()); err != nil {
		fmt.Fprintf(log, "server: %v\n\n", err)
		flags.Usage()
		return c, errUsage
	}
	if flags.NFlag() == 0 {
		c.demo = true
	}
	if c.keys == nil {
		c.keys, c.keyMade = []string{rand.Text()}, true
	}
	if c.webhook != "" && c.webhookSecrets == nil {
		c.webhookSecrets, c.secretMade = []string{webhook.NewSecret()}, true
	}
	return c, nil
}

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
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return errors.New("-base-url must be an http or https address without a query, such as https://example.com")
		}
		c.baseURL = strings.TrimRight(c.baseURL, "/")
	}
	if c.backup != "" && c.store == "memory" {
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
	if err := c.checkPush(); err != nil {
		return err
	}
	return checkStore(c.store)
}

func (c *config) checkSite() error {
	if t := c.site.Tiles; t.URL == "" && t.Attribution != "" {
		return errors.New("-tiles-attribution needs -tiles")
	} else if (web.Site{Tiles: t}).Check() != nil {
		return errors.New("-tiles must be an http or https address, or a path, with {z}, {x} and {y}, such as https://tiles.example.com/{z}/{x}/{y}.png")
	}
	if (web.Site{Logo: c.site.Logo}).Check() != nil {
		return errors.New("-logo must be the address of an image, such as https://example.com/logo.svg, or data:image/…, or a path that begins with a slash")
	}
	return nil
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
