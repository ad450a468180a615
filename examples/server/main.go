// Server is the whole delivery-tracking service as a program: the HTTP interface over a store, and
// a demo in which couriers deliver along streets. Other commands look after the store.
//
//	go run ./examples/server
//	go run ./examples/server help
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/seed-8aba7b13/tracking/examples/internal/commandline"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, log: os.Stderr, env: os.LookupEnv})
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, commandline.ErrWrong):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// streams are what a command has of the process that it runs in.
type streams struct {
	in       io.Reader
	out, log io.Writer
	env      func(name string) (value string, ok bool)
}

// command is what the first argument, or the first two, may be.
type command struct {
	name, synopsis, about string
	run                   func(ctx context.Context, args []string, std streams) error
}

// commands are all but serving, which needs no word.
func commands() []command {
	return []command{
		{"key add", "[NAME]", "make an API key and print it, once", keyAdd},
		{"key list", "", "list the API keys of the store, which knows their names alone", keyList},
		{"key revoke", "ID", "make an API key dead", keyRevoke},
		{"dead list", "", "list the events whose delivery was given up", deadList},
		{"dead replay", "[ID…]", "have them delivered anew, all or those named", deadReplay},
		{"export", "> FILE", "write what a store keeps, all or one person's", exportStore},
		{"import", "< FILE", "read that into another store; again after a break", importStore},
		{"compact", "", "remove from a SQLite file, byte by byte, what was erased", compactStore},
		{"help", "[TOPIC]", "what there is, or the flags of a topic", help},
	}
}

// run runs the command that args begin with.
func run(ctx context.Context, args []string, std streams) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return serve(ctx, args, std)
	}
	for _, c := range commands() {
		words := strings.Fields(c.name)
		if len(args) >= len(words) && slices.Equal(args[:len(words)], words) {
			return c.run(ctx, args[len(words):], std)
		}
	}
	fmt.Fprintln(std.log, "Usage: server [COMMAND] [flags]; server help lists them\nserver: there is no such command")
	return commandline.ErrWrong
}
