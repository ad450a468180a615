package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/internal/commandline"
)

const envPrefix = "TRACKING_"

const aboutEnvironment = `Every flag may be an environment variable instead: -base-url is TRACKING_BASE_URL.
A flag wins, and an empty variable is none. What may be given several times is one a line there.
Secrets may stand in files: TRACKING_KEY_FILE names one with what -key would say, and so it is
with -secret, -store, -webhook and -webhook-secret.`

// newLine is the command line of a command, whose flags may stand in the environment too.
func newLine(name, synopsis, about string, std streams) *commandline.Line {
	return &commandline.Line{
		Flags: flag.NewFlagSet(name, flag.ContinueOnError), Synopsis: synopsis, About: about, Log: std.log,
		Env: std.env, Prefix: envPrefix,
		Secrets: []string{"key", "secret", "store", "webhook", "webhook-secret"},
		Lists:   []string{"key", "reason", "webhook-secret"},
	}
}

// tool is a command that does something with a store and ends.
type tool struct {
	*commandline.Line // to which it adds flags of its own

	std   streams
	store storeFlags
}

func newTool(name, synopsis, about string, std streams) *tool {
	t := &tool{Line: newLine("server "+name, "server "+name+" "+synopsis, about+"\n\n"+aboutEnvironment, std), std: std}
	t.store.add(t.Flags)
	return t
}

// parse reads the command line, on which at least and at most so many arguments stand.
func (t *tool) parse(args []string, least, most int) error {
	if err := t.Parse(args); err != nil {
		return err
	}
	if !t.store.kept() {
		return t.Wrong("-store must name what is kept: sqlite:FILE or postgres://USER@HOST/DATABASE")
	}
	if err := t.store.check(); err != nil {
		return t.Wrong(err.Error())
	}
	if n := len(t.Args()); n < least || n > most {
		return t.Wrong("the arguments are not those of the usage")
	}
	return nil
}

// with runs do on the store, which it opens and closes. Nobody is told of what do does.
func (t *tool) with(ctx context.Context, do func(tracking.Store, *tracking.Service) error) (err error) {
	logger := slog.New(slog.NewTextHandler(t.std.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	store, err := t.store.open(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	svc, err := tracking.New(store, &tracking.Options{Secret: t.store.key(), Logger: logger})
	if err != nil {
		return err
	}
	return do(store, svc)
}
