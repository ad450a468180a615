package main

import (
	"bufio"
	"context"
	"fmt"

	"github.com/seed-8aba7b13/tracking"
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
