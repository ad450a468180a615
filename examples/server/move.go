package main

import (
	"bufio"
	"context"
	"fmt"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

func exportStore(ctx context.Context, args []string, std streams) error {
	t := newTool("export", "-store STORE [-app APP] [-driver ID] [-contact NUMBER] [-secrets] > FILE",
		"Writes what the store keeps to the standard output, as JSON in lines: all applications, or one, one of its\n"+
			"drivers, or whoever has a number. With -secrets what is imported goes on as if nothing had happened.", std)
	var app, driver string
	var f tracking.ExportFilter
	t.Flags.StringVar(&app, "app", "", "only `APP`, an application (default: all)")
	t.Flags.StringVar(&driver, "driver", "", "only the driver `ID` of the application")
	t.Flags.StringVar(&f.Contact, "contact", "", "only whoever has the `NUMBER` in tasks of the application")
	t.Flags.BoolVar(&f.Secrets, "secrets", false,
		"also what links, tokens, codes and keys are known by: keep the file like the store itself")
	if err := t.parse(args, 0, 0); err != nil {
		return err
	}
	f.Driver = tracking.DriverID(driver)
	f.AllApps = app == "" && driver == "" && f.Contact == ""
	return t.with(ctx, func(_ tracking.Store, svc *tracking.Service) error {
		out := bufio.NewWriter(std.out)
		if err := svc.ForApp(tracking.AppID(app)).Export(ctx, out, f); err != nil {
			return err
		}
		return out.Flush()
	})
}

func importStore(ctx context.Context, args []string, std streams) error {
	t := newTool("import", "-store STORE < FILE",
		"Reads from the standard input what server export has written, into a store that has nothing of it. Where it\n"+
			"breaks off, run it again: it goes on where it was. Start no server on the store before it is through.", std)
	if err := t.parse(args, 0, 0); err != nil {
		return err
	}
	return t.with(ctx, func(_ tracking.Store, svc *tracking.Service) error {
		n, err := svc.Import(ctx, std.in)
		if err == nil {
			fmt.Fprintf(std.out, "%d rows are in the store\n", n)
		}
		return err
	})
}

func compactStore(ctx context.Context, args []string, std streams) error {
	t := newTool("compact", "-store sqlite:FILE",
		"Writes a file anew, so that no byte of what was erased is left in it, and gives back space. A server does so\n"+
			"by itself; stop it first, as one process has a file open at a time. It takes room for two more such files.", std)
	if err := t.parse(args, 0, 0); err != nil {
		return err
	}
	if isPostgres(t.store.spec) {
		return t.Wrong("-store must be sqlite:FILE; go doc ./store/postgres says what to do in a database")
	}
	t.store.compactOnRequest = true // and not behind the purges, too
	return t.with(ctx, func(store tracking.Store, _ *tracking.Service) error {
		for left := true; left; { // what the erased have left, and nothing that is kept
			p, err := store.Purge(ctx, tracking.Before{Limit: 1000})
			if err != nil {
				return err
			}
			left = p.Total() > 0
		}
		return store.(*sqlite.Store).Compact(ctx)
	})
}
