// Command figures runs the benchmarks that the page beside it, README.md, is made of, and prints its
// table: what was measured, beside what, and the ratio of the two, of one run on this machine.
//
//	go run ./store/internal/figures            # all of it, in ten minutes or so
//	go run ./store/internal/figures -only near # the rows whose text has that
package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	only := flag.String("only", "", "print the rows whose text has this")
	benchtime := flag.String("benchtime", "1s", "for each benchmark, as go test takes it")
	flag.Parse()
	if err := run(ctx, os.Stdout, *only, *benchtime); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// side is a number that a benchmark reports.
type side struct {
	bench  string // with its package, as "./store/memory BenchmarkList/all/10000"
	metric string // such as "ns/op"
}

func (s side) pkg() string { pkg, _, _ := strings.Cut(s.bench, " "); return pkg }

func (s side) name() string { _, name, _ := strings.Cut(s.bench, " "); return name }

// line is a row of the table: ours beside the other's, or beside nothing.
type line struct {
	what, beside string
	ours, other  side
	goal         string
}

// results are the numbers of a run, by "package benchmark", then metric.
type results map[string]map[string]float64

func run(ctx context.Context, out io.Writer, only, benchtime string) error {
	chosen := slices.DeleteFunc(slices.Clone(lines), func(l line) bool {
		return !strings.Contains(l.what+" "+l.beside, only)
	})
	wanted := map[string][]string{} // benchmarks, by package
	var packages []string
	for _, l := range chosen {
		for _, s := range []side{l.ours, l.other} {
			if s == (side{}) {
				continue
			}
			if wanted[s.pkg()] == nil {
				packages = append(packages, s.pkg())
			}
			top, _, _ := strings.Cut(s.name(), "/")
			if !slices.Contains(wanted[s.pkg()], top) {
				wanted[s.pkg()] = append(wanted[s.pkg()], top)
			}
		}
	}
	got := results{}
	for _, pkg := range packages {
		cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-timeout", "1h", "-benchtime", benchtime,
			"-bench", "^("+strings.Join(wanted[pkg], "|")+")$", pkg)
		var text bytes.Buffer
		cmd.Stdout, cmd.Stderr = io.MultiWriter(&text, os.Stderr), os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", pkg, err)
		}
		read(got, pkg, &text)
	}
	fmt.Fprintf(out, "%s, %s/%s, %d cores, %s, %s\n\n", time.Now().Format(time.DateOnly),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor(), runtime.Version())
	fmt.Fprint(out, "| what | ours | beside | it | ratio | goal |\n|---|---|---|---|---|---|\n")
	for _, l := range chosen {
		text, err := l.text(got)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, text)
	}
	return nil
}

var (
	reported  = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)
	modelName = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)
)

// read adds what go test prints of benchmarks.
func read(got results, pkg string, text io.Reader) {
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		m := reported.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		words := strings.Fields(m[2])
		numbers := map[string]float64{}
		for i := 0; i+1 < len(words); i += 2 {
			if v, err := strconv.ParseFloat(words[i], 64); err == nil {
				numbers[words[i+1]] = v
			}
		}
		got[pkg+" "+m[1]] = numbers
	}
}

// text is the row as Markdown.
func (l line) text(got results) (string, error) {
	find := func(s side) (float64, error) {
		v, ok := got[s.bench][s.metric]
		if !ok {
			return 0, fmt.Errorf("%s has not reported %s", s.bench, s.metric)
		}
		return v, nil
	}
	ours, err := find(l.ours)
	if err != nil {
		return "", err
	}
	text, other, ratio := quantity(ours, l.ours.metric), "", ""
	switch {
	case strings.HasPrefix(l.ours.metric, "×"): // it is the ratio itself
		text, ratio = "", fmt.Sprintf("%.2f", ours)
	case l.other != (side{}):
		v, err := find(l.other)
		if err != nil {
			return "", err
		}
		other, ratio = quantity(v, l.other.metric), fmt.Sprintf("%.2f", ours/v)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |",
		l.what, text, l.beside, other, ratio, l.goal), nil
}

// quantity is a number with its unit, to three figures.
func quantity(v float64, metric string) string {
	unit := metric
	switch {
	case strings.HasPrefix(metric, "ns/"):
		for _, u := range []string{"ns", "µs", "ms", "s"} {
			if unit = u; v < 1000 || u == "s" {
				break
			}
			v /= 1000
		}
	case strings.HasSuffix(metric, "/s"):
		unit = "/s"
	case strings.HasSuffix(metric, "-ms"):
		unit = "ms"
	case strings.HasPrefix(metric, "cpu-µs/"):
		unit = "µs"
	case strings.HasPrefix(metric, "KiB/"):
		unit = "KiB"
	case strings.HasPrefix(strings.ToLower(metric), "b/") || strings.HasPrefix(metric, "bytes/"),
		strings.HasPrefix(metric, "written-B/"):
		unit = "B"
	}
	digits := 0
	for w := v; w < 100 && digits < 2; w *= 10 {
		digits++
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + unit
}

// processor is the name of this machine's, where the system tells it.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	if m := modelName.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return "unknown processor"
}
