//go:build linux

package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// settings are the variables that a deployment sets, by lines that begin with word.
func settings(t *testing.T, file, word string) (text string, env variables) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("deploy", file))
	if err != nil {
		t.Fatal(err)
	}
	env = variables{}
	for _, m := range regexp.MustCompile(`(?m)^`+word+`([A-Z_]+)=(.*)$`).FindAllStringSubmatch(string(content), -1) {
		env[m[1]] = m[2]
	}
	if len(env) == 0 {
		t.Fatalf("%s sets nothing", file)
	}
	return string(content), env
}

// What the deployments set are flags of the server, and such as it takes.
func TestDeployments(t *testing.T) {
	for file, word := range map[string]string{"tracking.service": "Environment=", "Containerfile": "ENV "} {
		_, env := settings(t, file, word)
		c, err := parseFlags(nil, streams{out: quiet.out, log: os.Stderr, env: env.lookUp})
		if err != nil || !c.store.kept() || c.addr != env["TRACKING_ADDR"] || c.demo {
			t.Errorf("%s: %v, %+v", file, err, c)
		}
		flags := 0
		for name := range env {
			if c.line(quiet).Flags.Lookup(strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, envPrefix)), "_",
				"-")) != nil {
				flags++
			}
		}
		if flags != len(env) {
			t.Errorf("%s sets %v, of which %d are flags", file, env, flags)
		}
	}
}

// The unit is one that systemd takes.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("TRACKING_LONG") == "1" {
			t.Fatal(err)
		}
		t.Skip("there is no systemd-analyze")
	}
	text, _ := settings(t, "tracking.service", "Environment=")
	program := regexp.MustCompile(`(?m)^ExecStart=\S+`)
	if !program.MatchString(text) {
		t.Fatal("the unit starts nothing")
	}
	// The program has to be there.
	unit := filepath.Join(t.TempDir(), "tracking.service")
	text = program.ReplaceAllString(text, "ExecStart="+os.Args[0])
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	if strings.Contains(string(out), "Failed to initialize manager") {
		t.Skipf("systemd-analyze does not work here: %s", out)
	}
	if err != nil || strings.Contains(string(out), "tracking.service") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// The image of the Containerfile, laid out in a folder: the server starts in it as its user, writes
// its store, and knows time zones and certificates though it is alone there.
func TestImage(t *testing.T) {
	if os.Getenv("TRACKING_LONG") != "1" {
		t.Skip("TRACKING_LONG=1 builds the program anew")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can change the root")
	}
	text, env := settings(t, "Containerfile", "ENV ")
	root := filepath.Join(t.TempDir(), "root-of-image")
	steps := regexp.MustCompile(`(?m)^RUN (.*)$`).FindAllStringSubmatch(text, -1)
	if len(steps) < 3 || strings.Contains(text, "\\\n") {
		t.Fatalf("the steps of the Containerfile are %q", steps)
	}
	for _, step := range steps {
		cmd := exec.Command("sh", "-ec", strings.ReplaceAll(step[1], "/root-of-image", root))
		cmd.Dir = filepath.Join("..", "..")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", step[1], err, out)
		}
	}
	if err := os.Chmod(filepath.Dir(root), 0o711); err != nil {
		t.Fatal(err)
	}
	env["TRACKING_ADDR"], env["TRACKING_TIME_ZONE"] = "127.0.0.1:0", "Europe/Berlin"
	out := newOutput()
	cmd := &exec.Cmd{
		Path: "/server", Args: []string{"/server"}, Dir: "/", Stdout: out, Stderr: out,
		SysProcAttr: &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}},
	}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	s := &server{t: t, out: out, log: out, ended: ended}
	s.base = s.await(out, serving)[1]
	s.key = s.wait(`API key, kept with the store and printed this once: (\S+)\n`)
	if got := s.status(s.key); got != http.StatusOK {
		t.Errorf("the list of tasks is answered %d", got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ended
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ends with %d:\n%s", code, out)
	}
	if _, err := os.Stat(filepath.Join(root, "data", "tracking.db")); err != nil {
		t.Error(err)
	}
}
