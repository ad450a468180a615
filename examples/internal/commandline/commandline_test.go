package commandline_test

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking/examples/internal/commandline"
)

// TestWrong: what is wrong is said in one sentence, at the end, and without what was given.
func TestWrong(t *testing.T) {
	const secret = "hush: for flag -n \"x"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-nonsense"}, "flag provided but not defined: -nonsense"},
		{[]string{"-n", secret}, "-n is not as it must be: parse error"},
		{[]string{"-n"}, "flag needs an argument: -n"},
		{[]string{"-key", secret}, "-key is not as it must be: it is too short"},
		{[]string{"-yes=" + secret}, "-yes is not as it must be: parse error"},
		{[]string{"-=" + secret}, "an argument has no flag's form; flags are written as -name value or -name=value"},
	} {
		var log strings.Builder
		line := commandline.Line{
			Flags: flag.NewFlagSet("tool", flag.ContinueOnError), Synopsis: "tool [flags] FILE", Log: &log,
		}
		line.Flags.Int("n", 0, "a `NUMBER`")
		line.Flags.Bool("yes", false, "agree")
		line.Flags.Func("key", "a `KEY`", func(string) error { return errors.New("it is too short") })
		err := line.Parse(tt.args)
		if want := "Usage: tool [flags] FILE; tool -h lists the flags\ntool: " + tt.want +
			"\n"; !errors.Is(err, commandline.ErrWrong) || log.String() != want {
			t.Errorf("%q: %v, says\n%swant\n%s", tt.args, err, log.String(), want)
		}
	}
}

func TestHelp(t *testing.T) {
	var log strings.Builder
	line := commandline.Line{
		Flags: flag.NewFlagSet("tool", flag.ContinueOnError), Synopsis: "tool [flags]", About: "Does it.", Log: &log,
	}
	line.Flags.Int("n", 3, "a `NUMBER`")
	if err := line.Parse([]string{"-h"}); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
	if want := "Usage: tool [flags]\n\nDoes it.\n\n  -n NUMBER\n    \ta NUMBER (default 3)\n"; log.String() != want {
		t.Errorf("says\n%s", log.String())
	}
}
