package main

import (
	"errors"
	"flag"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking/examples/internal/commandline"
)

// variables are an environment.
type variables map[string]string

func (v variables) lookUp(name string) (string, bool) { value, ok := v[name]; return value, ok }

func TestEveryFlagIsAVariable(t *testing.T) {
	secret, none := filepath.Join(t.TempDir(), "secret"), filepath.Join(t.TempDir(), "none")
	if err := os.WriteFile(secret, []byte(strings.Repeat("s", 32)+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("one\n two, three \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := variables{
		"TRACKING_STORE": "sqlite:a.db", "TRACKING_SECRET_FILE": secret, "TRACKING_KEY_FILE": keys,
		"TRACKING_REASON": "no_lift=The lift is broken\nclosed=Shut", "TRACKING_UNDO_FOR": "7s", "TRACKING_NAME": "The shop",
		"TRACKING_SHOW_PROOF": "true", "TRACKING_MAX_OPEN_TASKS": "3", "TRACKING_HELP_URL": "",
		"TRACKING_LINK_TTL": "nonsense, and a flag wins",
		// Kubernetes sets these for a service of the name tracking.
		"TRACKING_PORT": "tcp://10.0.0.1:80", "TRACKING_SERVICE_HOST": "10.0.0.1",
	}
	std := streams{out: io.Discard, log: os.Stderr, env: env.lookUp}
	c, err := parseFlags([]string{"-max-open-tasks", "2", "-link-ttl", "1h"}, std)
	if err != nil {
		t.Fatal(err)
	}
	if c.store.spec != "sqlite:a.db" || c.store.secret != strings.Repeat("s", 32) || c.demo ||
		!slices.Equal(c.keys, []string{"one", " two, three "}) || len(c.site.Reasons) != 2 ||
		c.options.UndoFor.String() != "7s" || c.site.Name != "The shop" || !c.site.ShowProof ||
		c.options.MaxOpenTasks != 2 || c.options.LinkTTL.String() != "1h0m0s" || c.site.HelpURL != "" {
		t.Errorf("the environment gives %+v", c)
	}

	for _, tt := range []struct {
		env  variables
		want string
	}{
		{variables{"TRACKING_UNDO_FOR": "0s"}, "TRACKING_UNDO_FOR is not as it must be: it must be positive"},
		{variables{"TRACKING_BASE_URL": "example.com"}, "TRACKING_BASE_URL must be an http or https address"},
		{variables{"TRACKING_KEY": "k", "TRACKING_KEY_FILE": keys}, "TRACKING_KEY and TRACKING_KEY_FILE cannot both"},
		{variables{"TRACKING_KEY_FILE": none}, "the file that TRACKING_KEY_FILE names cannot be read: no such file"},
		{variables{"TRACKING_KEY_FILE": os.DevNull}, "TRACKING_KEY_FILE holds nothing"},
		{variables{"TRACKING_KEY_FILE": "/dev/zero"}, "the file that TRACKING_KEY_FILE names cannot be read: it is too long"},
		{variables{"TRACKING_STORE_FILE": keys}, "TRACKING_STORE_FILE must be memory, sqlite:FILE or"},
		{variables{"TRACKING_SHOW_PROOF": "maybe"}, "TRACKING_SHOW_PROOF is not as it must be"},
		{variables{"TRACKING_BACKUP": "copy.db"}, "TRACKING_BACKUP needs a store in a file: -store sqlite:FILE"},
	} {
		var log strings.Builder
		_, err := parseFlags(nil, streams{out: io.Discard, log: &log, env: tt.env.lookUp})
		if _, sentence, _ := strings.Cut(log.String(), "\n"); !errors.Is(err, commandline.ErrWrong) ||
			!strings.Contains(sentence, tt.want) {
			t.Errorf("with %v it says\n%s", tt.env, &log)
		}
	}
}

// No test of the repository sets a variable that is a flag.
func TestVariablesOfTests(t *testing.T) {
	var c config
	c.line(quiet).Flags.VisitAll(func(f *flag.Flag) {
		switch v := commandline.Variable(envPrefix, f.Name); v {
		case "TRACKING_DATA", "TRACKING_LONG", "TRACKING_POSTGRES", "TRACKING_EXCHANGES", "TRACKING_KILLS", "TRACKING_ENDURE",
			"TRACKING_CACHE", "TRACKING_CITY", "TRACKING_FUZZTIME", "TRACKING_PORT":
			t.Errorf("-%s has the variable %s, which is another's", f.Name, v)
		}
	})
}

// given are secrets that no text may hold, by flag.
var given = map[string]string{
	"key": "canary", "secret": "canary-canary-canary-canary-canary", "webhook": "http://127.0.0.1:1/canary?canary=canary",
	"webhook-secret": "whsec_" + strings.Repeat("canary++", 6), "name": "canary", "reason": "no_lift=canary",
}

// ways are those in which flags are given.
func ways(t *testing.T, values map[string]string) map[string]struct {
	args []string
	env  variables
} {
	type way = struct {
		args []string
		env  variables
	}
	dir := t.TempDir()
	all := map[string]way{"flags": {}, "variables": {env: variables{}}, "files": {env: variables{}}}
	secrets := newLine("", "", "", quiet).Secrets
	for i, name := range slices.Sorted(maps.Keys(values)) {
		value, variable := values[name], commandline.Variable(envPrefix, name)
		flags := all["flags"]
		flags.args = append(flags.args, "-"+name+"="+value)
		all["flags"] = flags
		all["variables"].env[variable] = value
		if !slices.Contains(secrets, name) {
			all["files"].env[variable] = value
			continue
		}
		file := filepath.Join(dir, string(rune('a'+i)))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		all["files"].env[variable+"_FILE"] = file
	}
	return all
}

// What was given as a secret is never printed: not by a server at work, nor by the help, nor where the
// store cannot be opened.
func TestNoSecretIsPrinted(t *testing.T) {
	for how, by := range ways(t, given) {
		t.Run(how, func(t *testing.T) {
			s := startWith(t, by.env, append([]string{"-webhook-allow-private"}, by.args...)...)
			if got := s.status("canary"); got != http.StatusOK {
				t.Errorf("the key is answered %d", got)
			}
			if got := s.status("canary2"); got != http.StatusUnauthorized {
				t.Errorf("a wrong key is answered %d", got)
			}
			s.key = "canary"
			s.call("", "/v1/task/create", `{"type":2,"drop":{"address":"45 First Avenue"}}`)
			s.await(s.log, regexp.MustCompile(`delivery failed.*notifier=webhook`))
			if err := s.stop(); err != nil {
				t.Error(err)
			}
			noCanary(t, "a server at work", s.out.String()+s.log.String())

			text, _ := runWith(t, by.env, append(slices.Clone(by.args), "-h")...)
			noCanary(t, "-h", text)
			text, _ = runWith(t, by.env, "help", "keys")
			noCanary(t, "help", text)
		})
	}
	for how, by := range ways(t, map[string]string{"store": "postgres://u:canary@127.0.0.1:1/d?sslpassword=canary"}) {
		for _, args := range [][]string{nil, {"key", "list"}} {
			text, err := runWith(t, by.env, append(args, by.args...)...)
			if err == nil || errors.Is(err, commandline.ErrWrong) {
				t.Errorf("a database that is not there: %v", err)
			} else {
				noCanary(t, "a database that is not there, by "+how, text+err.Error())
			}
		}
	}
}

// A value that is refused is not printed either.
func TestNoWrongValueIsPrinted(t *testing.T) {
	var c config
	var all []string
	c.line(quiet).Flags.VisitAll(func(f *flag.Flag) { all = append(all, f.Name) })
	for _, name := range all {
		if slices.Contains([]string{"addr", "backup", "key", "map", "name", "secret", "tiles-attribution"}, name) {
			continue // is not judged before it is used
		}
		for how, by := range ways(t, map[string]string{name: "canary{"}) {
			text, err := runWith(t, by.env, by.args...)
			if !errors.Is(err, commandline.ErrWrong) {
				t.Errorf("-%s by %s: %v\n%s", name, how, err, text)
			}
			noCanary(t, "-"+name+" by "+how, text)
		}
	}
	for _, args := range [][]string{{"canary"}, {"key", "canary"}, {"help", "canary"}, {"-canary1"}, {"-key=", "canary"}} {
		text, err := runWith(t, nil, args...)
		if !errors.Is(err, commandline.ErrWrong) {
			t.Errorf("%q: %v", args, err)
		}
		noCanary(t, "an argument", text)
	}
}

func runWith(t *testing.T, env variables, args ...string) (printed string, err error) {
	t.Helper()
	var text strings.Builder
	err = run(t.Context(), args, streams{in: strings.NewReader(""), out: &text, log: &text, env: env.lookUp})
	return text.String(), err
}

func noCanary(t *testing.T, what, text string) {
	t.Helper()
	if strings.Contains(text, "canary") {
		t.Errorf("%s tells it:\n%s", what, text)
	}
}

// The help is one screen, and each flag belongs to one topic.
func TestHelp(t *testing.T) {
	text, _ := runWith(t, nil, "help")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > 48 {
		t.Errorf("the help has %d lines, more than a screen", len(lines))
	}
	for _, line := range lines {
		if len(line) > 100 {
			t.Errorf("this line is too long: %s", line)
		}
	}
	var c config
	count := map[string]int{}
	c.line(quiet).Flags.VisitAll(func(f *flag.Flag) { count[f.Name] = 0 })
	for _, topic := range topics {
		text, _ := runWith(t, nil, "help", topic.name)
		for name := range strings.FieldsSeq(topic.flags) {
			count[name]++
			if !strings.Contains(text, "  -"+name) {
				t.Errorf("help %s does not explain -%s:\n%s", topic.name, name, text)
			}
		}
	}
	for name, n := range count {
		if n != 1 {
			t.Errorf("-%s is in %d topics, want 1", name, n)
		}
	}
}
