package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// dead is a command about events whose delivery was given up.
type dead struct {
	*tool
	outbox string
}

func newDead(name, synopsis, about string, std streams) *dead {
	d := &dead{tool: newTool(name, synopsis, about, std)}
	d.Flags.StringVar(&d.outbox, "outbox", "", "only those that `NAME` was to be told of, such as webhook (default: of all)")
	return d
}

func deadList(ctx context.Context, args []string, std streams) error {
	d := newDead("dead list", "-store STORE [-outbox NAME]",
		"Lists the events whose delivery was given up, oldest first, by whom they were for.", std)
	if err := d.parse(args, 0, 0); err != nil {
		return err
	}
	return d.with(ctx, func(_ tracking.Store, svc *tracking.Service) error {
		table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tOUTBOX\tRECORDED\tTYPE\tABOUT")
		err := d.each(ctx, svc, func(outbox string, list []tracking.Event) error {
			for _, e := range list {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s %s\n", e.ID, outbox, e.RecordedAt.UTC().Format(time.RFC3339), e.Type,
					e.Subject.Kind, e.Subject.ID)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return table.Flush()
	})
}

func deadReplay(ctx context.Context, args []string, std streams) error {
	d := newDead("dead replay", "-store STORE [-outbox NAME] [ID…]",
		"Has events delivered anew whose delivery was given up: those named, or all. The server does it when it runs.", std)
	if err := d.parse(args, 0, 1000); err != nil {
		return err
	}
	return d.with(ctx, func(_ tracking.Store, svc *tracking.Service) error {
		named := map[string]bool{}
		for _, id := range d.Args() {
			named[id] = true
		}
		n := 0
		err := d.each(ctx, svc, func(outbox string, list []tracking.Event) error {
			var ids []string
			for _, e := range list {
				if len(named) == 0 || named[e.ID] {
					ids = append(ids, e.ID)
				}
			}
			n += len(ids)
			return svc.Replay(ctx, outbox, ids...)
		})
		if err == nil {
			fmt.Fprintf(std.out, "%d will be delivered anew\n", n)
		}
		return err
	})
}

// each lists the dead events, up to a thousand of one outbox at a time. What it is called for may
// bring them back.
func (d *dead) each(ctx context.Context, svc *tracking.Service, f func(outbox string, list []tracking.Event) error) error {
	stats, err := svc.Stats(ctx)
	if err != nil {
		return err
	}
	for _, o := range stats.Outboxes {
		if d.outbox != "" && o.Name != d.outbox {
			continue
		}
		filter := tracking.EventFilter{Dead: true, Outbox: o.Name, Limit: 1000}
		for more := o.Dead > 0; more; {
			var list []tracking.Event
			if list, more, err = svc.Events(ctx, filter); err != nil {
				return err
			}
			if err := f(o.Name, list); err != nil {
				return err
			}
			if len(list) > 0 {
				filter.After = list[len(list)-1].ID
			}
		}
	}
	return nil
}
