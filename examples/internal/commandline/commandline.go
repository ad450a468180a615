// Package commandline reads the flags of the example programs, and says what is wrong with them so
// that it is read: in one sentence, which comes last and does not repeat what was given, since that
// may be a key or a code.
package commandline

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrWrong is returned when the command line was wrong and that has been said.
var ErrWrong = errors.New("the command line is wrong")

// A Line is the command line of one program.
type Line struct {
	Flags    *flag.FlagSet // with flag.ContinueOnError; its name is the program's
	Synopsis string        // such as "server [flags]"
	About    string        // what -h says between the synopsis and the flags
	Log      io.Writer

	// Env looks up environment variables, by which every flag may be given too; nil: by none. They
	// are named by [Variable]. A flag of the line wins over its variable, and an empty variable is
	// none.
	Env    func(name string) (value string, ok bool)
	Prefix string // of the variables' names, such as "TRACKING_"

	// Secrets are the flags that may also stand in a file, which their variable with _FILE at its
	// end names.
	Secrets []string

	// Lists are the flags that may be given several times: one a line of the variable or file.
	Lists []string

	args []string
	from map[string]string // by flag: the variable that it was given by
}

// Variable names the environment variable of a flag.
func Variable(prefix, flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Parse reads args, and then the environment. It returns flag.ErrHelp when they ask for help, which
// has then been given.
func (l *Line) Parse(args []string) error {
	l.Flags.SetOutput(io.Discard)
	l.Flags.Usage = func() {}
	for {
		switch err := l.Flags.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			fmt.Fprintf(l.Log, "Usage: %s\n\n%s\n\n", l.Synopsis, l.About)
			l.Flags.SetOutput(l.Log)
			l.Flags.PrintDefaults()
			return err
		case err != nil:
			return l.Wrong(withoutValue(err.Error()))
		}
		// Flags may stand behind the other arguments, too.
		if args = l.Flags.Args(); len(args) == 0 {
			break
		}
		l.args, args = append(l.args, args[0]), args[1:]
	}
	if l.Env == nil {
		return nil
	}
	if err := l.environment(); err != nil {
		return l.Wrong(err.Error())
	}
	return nil
}

// Args are the arguments that are no flags.
func (l *Line) Args() []string { return l.args }

// environment sets the flags that the line did not give, from the environment.
func (l *Line) environment() error {
	given := map[string]bool{}
	l.Flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	l.from = map[string]string{}
	var wrong error
	l.Flags.VisitAll(func(f *flag.Flag) {
		if given[f.Name] || wrong != nil {
			return
		}
		variable, text, err := l.lookUp(f.Name)
		if err != nil || variable == "" {
			wrong = err
			return
		}
		l.from[f.Name] = variable
		values := []string{text}
		if slices.Contains(l.Lists, f.Name) {
			values = nil
			for line := range strings.Lines(text) {
				if line = strings.TrimRight(line, "\r\n"); line != "" {
					values = append(values, line)
				}
			}
		}
		if len(values) == 0 || values[0] == "" { // an empty variable is none, an empty file is a mistake
			wrong = fmt.Errorf("%s holds nothing", variable)
			return
		}
		for _, value := range values {
			if err := l.Flags.Set(f.Name, value); err != nil {
				wrong = fmt.Errorf("%s is not as it must be: %w", variable, err)
				return
			}
		}
	})
	return wrong
}

// maxFile is how long a file with a secret may be.
const maxFile = 64 << 10

// lookUp finds what the environment says of a flag, and by which variable; "" is none.
func (l *Line) lookUp(flag string) (variable, text string, err error) {
	name := Variable(l.Prefix, flag)
	text, _ = l.Env(name)
	if !slices.Contains(l.Secrets, flag) {
		if text == "" {
			name = ""
		}
		return name, text, nil
	}
	inFile := name + "_FILE"
	path, _ := l.Env(inFile)
	switch {
	case path == "" && text == "":
		return "", "", nil
	case path == "":
		return name, text, nil
	case text != "":
		return "", "", fmt.Errorf("%s and %s cannot both be given", name, inFile)
	}
	content, err := readFile(path)
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err // without the path
	}
	if err != nil {
		return "", "", fmt.Errorf("the file that %s names cannot be read: %w", inFile, err)
	}
	return inFile, strings.TrimRight(content, "\r\n"), nil
}

func readFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if len(content) > maxFile {
		return "", errors.New("it is too long")
	}
	return string(content), err
}

// plainName is a name that is not what belongs behind it, such as the key of -keyK3Y.
var plainName = regexp.MustCompile(`^[a-z-]+$`)

var flagName = regexp.MustCompile(`(^|[ (])-([a-z][a-z-]*)`)

// Wrong says what is wrong in a sentence, after how to see the help, and returns [ErrWrong]. A flag
// that the sentence names is called by its variable where it was given by that.
func (l *Line) Wrong(sentence string) error {
	sentence = flagName.ReplaceAllStringFunc(sentence, func(found string) string {
		m := flagName.FindStringSubmatch(found)
		if variable, ok := l.from[m[2]]; ok {
			return m[1] + variable
		}
		return found
	})
	fmt.Fprintf(l.Log, "Usage: %s; %s -h lists the flags\n%s: %s\n", l.Synopsis, l.Flags.Name(), l.Flags.Name(),
		sentence)
	return ErrWrong
}

// withoutValue takes the value that was given out of what package flag says of it.
func withoutValue(message string) string {
	for _, before := range []string{"invalid value ", "invalid boolean value "} {
		rest, ok := strings.CutPrefix(message, before)
		if !ok {
			continue
		}
		if value, err := strconv.QuotedPrefix(rest); err == nil {
			rest = strings.TrimPrefix(strings.TrimPrefix(rest[len(value):], " for "), "flag ")
			return strings.Replace(rest, ": ", " is not as it must be: ", 1)
		}
	}
	if strings.HasPrefix(message, "bad flag syntax: ") {
		return "an argument has no flag's form; flags are written as -name value or -name=value"
	}
	if name, ok := strings.CutPrefix(message, "flag provided but not defined: -"); ok && !plainName.MatchString(name) {
		return "there is no such flag; flags are written as -name value or -name=value"
	}
	return message
}
