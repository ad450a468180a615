package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/internal/commandline"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// runCommand runs a command to its end, and returns what it prints.
func runCommand(t *testing.T, args ...string) string {
	t.Helper()
	var out, log strings.Builder
	if err := run(t.Context(), args, streams{out: &out, log: &log, env: noEnv}); err != nil {
		t.Fatalf("server %q ends with %v; its log:\n%s", args, err, &log)
	}
	return out.String()
}

// status is what the task list answers to a key.
func (s *server) status(key string) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.base+"/v1/task/list", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	status, _ := do(s.t, req)
	return status
}

// The key that is made at the first start is good ever after, and nobody reads it again; others
// are added and revoked by commands.
func TestKeyIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tracking.db")
	store := "sqlite:" + file
	first := start(t, "-store", store)
	if first.key == "" {
		t.Fatalf("the first start prints no key:\n%s", first.out)
	}
	if got := first.status(first.key); got != http.StatusOK {
		t.Fatalf("the key that is printed is answered %d", got)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}

	added := strings.TrimSpace(runCommand(t, "key", "add", "-store", store, "the shop"))
	table := runCommand(t, "key", "list", "-store", store)
	row := regexp.MustCompile(`(?m)^(\S+) .* -  +the shop$`).FindStringSubmatch(table)
	if row == nil || strings.Count(table, "\n") != 3 {
		t.Fatalf("the list of keys is\n%s", table)
	}
	second := start(t, "-store", store)
	for _, key := range []string{first.key, added} {
		if got := second.status(key); got != http.StatusOK {
			t.Errorf("after another start a key is answered %d", got)
		}
		if printed := second.out.String() + second.log.String() + table; strings.Contains(printed, key) {
			t.Errorf("a key is printed again:\n%s", printed)
		}
	}
	if second.key != "" {
		t.Errorf("the second start makes a key:\n%s", second.out)
	}
	if err := second.stop(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, file + "-wal"} {
		content, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if strings.Contains(string(content), first.key) || strings.Contains(string(content), added) {
			t.Errorf("%s holds a key", filepath.Base(name))
		}
	}

	runCommand(t, "key", "revoke", row[1], "-store", store)
	third := start(t, "-store", store)
	if got := []int{third.status(first.key), third.status(added)}; !slices.Equal(got, []int{200, 401}) {
		t.Errorf("with the second key revoked they are answered %d", got)
	}
}

// Who has revoked every key gets no new one by a restart.
func TestNoKeyAfterTheLast(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "tracking.db")
	runCommand(t, "key", "add", "-store", store)
	id := regexp.MustCompile(`(?m)^\S+ `).FindAllString(runCommand(t, "key", "list", "-store", store), -1)[1]
	runCommand(t, "key", "revoke", "-store", store, strings.TrimSpace(id))
	if s := start(t, "-store", store); s.key != "" {
		t.Errorf("it makes a key:\n%s", s.out)
	}
}

// Of several servers that start at once on a new database one makes the key.
func TestOneFirstKey(t *testing.T) {
	store := blank.Database(t)
	runCommand(t, "key", "list", "-store", store) // makes the schema
	flags := storeFlags{spec: store}
	made := make([]string, 4)
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			s, err := flags.open(t.Context(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			svc, err := tracking.New(s, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if made[i], err = firstKey(t.Context(), s, svc); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if slices.Sort(made); made[2] != "" || made[3] == "" {
		t.Errorf("they have made %d keys, want 1", len(slices.DeleteFunc(made, func(s string) bool { return s == "" })))
	}
}

func TestKeyCommandsRefuse(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "tracking.db")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"key", "add"}, "-store must name what is kept"},
		{[]string{"key", "add", "-store", store, "a", "b"}, "arguments"},
		{[]string{"key", "add", "-store", store, strings.Repeat("x", 201)}, "NAME must have"},
		{[]string{"key", "list", "-store", "memory"}, "-store must name what is kept"},
		{[]string{"key", "list", "-store", "postgres"}, "-store must be"},
		{[]string{"key", "revoke", "-store", store}, "arguments"},
		{[]string{"key"}, "no such command"},
		{[]string{"keys", "list"}, "no such command"},
		{[]string{"help", "everything"}, "no such topic"},
	} {
		var log strings.Builder
		err := run(t.Context(), tt.args, streams{out: io.Discard, log: &log, env: noEnv})
		_, sentence, _ := strings.Cut(log.String(), "\n")
		if !errors.Is(err, commandline.ErrWrong) || !strings.Contains(sentence, tt.want) {
			t.Errorf("server %q ends with %v and says\n%s", tt.args, err, &log)
		}
	}
	err := run(t.Context(), []string{"key", "revoke", "-store", store, "nobody"}, quiet)
	if err == nil || strings.Contains(err.Error(), "nobody") || !strings.Contains(err.Error(), "server key list") {
		t.Errorf("to revoke a key that is not there ends with %v", err)
	}
}

// The secret of webhooks is printed when it is used first, and is the same after a restart. It
// follows -secret.
func TestWebhookSecretIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracking.db")
	of := func(secret string) (string, string) {
		store, err := sqlite.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		flags := storeFlags{secret: secret}
		all, made, err := webhookSecret(t.Context(), store, flags.key())
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0], made
	}
	secret, made := of("")
	if made != secret || !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("first it is %q, and %q is printed", secret, made)
	}
	if again, made := of(""); again != secret || made != "" {
		t.Errorf("then it is %q, and %q is printed", again, made)
	}
	if other, made := of(strings.Repeat("s", 32)); other == secret || made != other {
		t.Errorf("with a secret it is %q, and %q is printed", other, made)
	}
	s := start(t, "-store", "sqlite:"+path, "-webhook", "https://example.com")
	if got := s.wait(`Webhook secret, kept with the store and printed this once: (\S+)`); got != secret {
		t.Errorf("a server prints %s", got)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, "-store", "sqlite:"+path, "-webhook", "https://example.com")
	if got := s.out.String(); strings.Contains(got, secret) || !strings.Contains(got, "Telling the webhook") {
		t.Errorf("the next one prints\n%s", got)
	}
}
