// Courier plays a recorded drive against a running server, as the phone of a driver: it joins with
// an invite code, goes on duty, starts a trip, sends the fixes, stops the trip and goes off duty.
// At the end it says what became of every point.
//
//	go run ./examples/courier -code 123456 drive.gpx
//	go run ./examples/courier -code 123456 -fast munich-1hz.json
//
// With -as it is a phone GPS app instead, which sends to the driver's ingest address in its own
// way; the trip still goes by the driver's app.
//
//	go run ./examples/courier -code 123456 -as owntracks -offline 5m -twice drive.gpx
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-8aba7b13/tracking/examples/courier/internal/trace"
	"github.com/seed-8aba7b13/tracking/examples/internal/commandline"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, commandline.ErrWrong):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "courier:", err)
		os.Exit(1)
	}
}

const about = `Plays FILE as the phone of a driver against a running server. FILE is a GPX file (1.0 or 1.1; all its tracks and segments are one drive),
or a JSON array of samples {"point": "POINT(longitude latitude)", "time": "2014-09-10 06:54:07+0200"}, where time may be a counter of seconds too.

The drive keeps its spacing and is shifted to now: it begins now and takes as long as it took, or with -fast it ends now and is sent at once.
Points that have no time, no position, or the millisecond of another point are not sent.`

// run plays the file that the command line names, as the phone it names.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("courier", flag.ContinueOnError)
	line := commandline.Line{Flags: flags, Synopsis: "courier -code CODE [flags] FILE", About: about, Log: log}
	server := flags.String("server", "",
		"base `URL` of the server; default the one of the invite link, else "+defaultServer)
	code := flags.String("code", "", "6-digit invite `CODE` to join with, or the invite's link")
	trackingID := flags.String("tracking-id", "", "tracking `ID` of the trip to start; by default one is made")
	as := flags.String("as", "",
		"send as this phone `APP` does: "+strings.Join(appNames(), "|")+"; default the driver app of the service")
	var how manner
	flags.BoolVar(&how.fast, "fast", false, "start the trip in the past and send everything at once, in batches")
	flags.DurationVar(&how.offline, "offline", 0,
		"be offline for `DURATION` in the middle of the drive, and send what was measured then later than what is newer")
	flags.BoolVar(&how.twice, "twice", false, "send the last batch again, as if its answer had been lost")
	patience := flags.Duration("patience", time.Minute,
		"how long a call is tried again while the server cannot be reached or is busy")
	if err := line.Parse(args); err != nil {
		return err
	}
	switch {
	case *code == "":
		return line.Wrong("-code is missing: an invite gives one")
	case len(line.Args()) != 1:
		return line.Wrong("exactly one FILE must be given")
	case *patience < 0:
		return line.Wrong("-patience cannot be negative")
	case how.offline < 0:
		return line.Wrong("-offline cannot be negative")
	case *as != "" && !slices.Contains(appNames(), *as):
		return line.Wrong("-as must be one of " + strings.Join(appNames(), ", "))
	}
	invite := parseInvite(*code)
	base := firstOf(*server, invite.server, defaultServer)
	if u, err := url.Parse(base); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return line.Wrong("the server must be given as http://HOST:PORT or https://HOST")
	}

	tr, err := trace.ReadFile(line.Args()[0])
	if err != nil {
		return err
	}
	describe(out, filepath.Base(line.Args()[0]), tr)
	switch {
	case len(tr.Points) == 0:
		return errors.New("there is nothing to send: no point of the file has both a position and a time")
	case tr.Duration() > maxDuration:
		return fmt.Errorf("the drive lasts %v, more than the %v that can be played: its clock may be broken, or it is several drives", tr.Duration(), maxDuration)
	}
	if *trackingID == "" {
		*trackingID = "courier-" + rand.Text()[:10]
	}

	c := newClient(base, *patience, log)
	driver, err := c.join(ctx, invite)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Joined as driver %s.\n", driver)
	if err := c.setAvailability(ctx, true); err != nil {
		return err
	}
	app := &appPhone{client: c, trackingID: *trackingID, out: out}
	var p phone = app
	if *as != "" {
		if p, err = newGPSPhone(ctx, app, *as); err != nil {
			return err
		}
	}
	rep, err := play(ctx, p, tr.Points, how)
	rep.print(out)

	// The driver goes off duty also when the drive was interrupted: nobody is there to take a task.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endingTime)
	defer cancel()
	return errors.Join(err, c.setAvailability(ending, false))
}

const (
	defaultServer = "http://127.0.0.1:8080"
	maxDuration   = 31 * 24 * time.Hour
	endingTime    = 10 * time.Second // for what is still to be said after an interrupt
)

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
