package main

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/seed-8aba7b13/tracking/examples/internal/commandline"
)

// topics are what flags of the server belong together.
var topics = []struct{ name, about, flags string }{
	{"data", "where it is kept, and copied to", "store migrate secret backup backup-every demo"},
	{"web", "where it listens, and what links begin with", "addr metrics-addr base-url trusted-proxies forwarded-header"},
	{"keys", "who may call", "key"},
	{"look", "of the pages", "name logo color time-zone show-proof contact-url help-url feedback-url reason"},
	{"maps", "of streets, or tiles", "map tiles tiles-attribution"},
	{"drivers", "who gets a task, and when", "max-open-tasks max-assign-distance max-fix-age assign-lead stop-time"},
	{"times", "how long things live", "trip-ttl link-ttl invite-ttl code-ttl undo-for reopen-for"},
	{"keeping", "for how long data stays", "keep-fixes keep-events keep-tasks keep-contacts"},
	{"notices", "who is told of events", "webhook webhook-secret webhook-allow-private push-contact"},
}

func help(_ context.Context, args []string, std streams) error {
	if len(args) == 0 {
		fmt.Fprint(std.out, overview())
		return nil
	}
	var c config
	all := c.line(std).Flags
	for _, topic := range topics {
		if topic.name != args[0] || len(args) > 1 {
			continue
		}
		some := flag.NewFlagSet("server", flag.ContinueOnError)
		some.SetOutput(std.out)
		for name := range strings.FieldsSeq(topic.flags) {
			f := all.Lookup(name)
			some.Var(f.Value, f.Name, f.Usage)
			some.Lookup(name).DefValue = f.DefValue
		}
		fmt.Fprintf(std.out, "%s: %s\n\n", topic.name, topic.about)
		some.PrintDefaults()
		return nil
	}
	fmt.Fprintln(std.log, "Usage: server help [TOPIC]; server help lists the topics\nserver: there is no such topic")
	return commandline.ErrWrong
}

// overview is the help in one screen.
func overview() string {
	var b strings.Builder
	b.WriteString("Usage: server [COMMAND] [flags]\n\n")
	line := func(what, about string) { fmt.Fprintf(&b, "  %-26s%s\n", what, about) }
	line("server", "serve; a demo, unless -store says where data is kept")
	for _, c := range commands() {
		line(strings.TrimRight("server "+c.name+" "+c.synopsis, " "), c.about)
	}
	b.WriteString("\nTopics of flags:\n\n")
	for _, topic := range topics {
		fmt.Fprintf(&b, "  %-10s%s\n%12s-%s\n", topic.name, topic.about, "",
			strings.Join(strings.Fields(topic.flags), " -"))
	}
	b.WriteString("\nserver -h lists all flags. Each may be a variable: -base-url is TRACKING_BASE_URL.\n")
	return b.String()
}
