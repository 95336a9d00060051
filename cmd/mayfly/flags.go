package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// errUsage is wrapped by errors that are the caller's: the program ends with 2, not 1.
var errUsage = errors.New("see mayfly help")

// usage is an error of how a command was called.
func usage(command, format string, args ...any) error {
	return fmt.Errorf("%s: %s (%w)", command, fmt.Sprintf(format, args...), errUsage)
}

// flagSet is the flags of one command, and its page of help.
type flagSet struct {
	*flag.FlagSet
	command   string
	about     string   // what the command does, in paragraphs
	arguments []string // what may stand after the flags: one of these. None: nothing may
}

func newFlags(command, about string, arguments ...string) *flagSet {
	flags := flag.NewFlagSet("mayfly "+command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return &flagSet{flags, command, about, arguments}
}

// parse reads the command line. The error is flag.ErrHelp if that was asked for, and written to out.
func (f *flagSet) parse(args []string, out io.Writer) error {
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		f.help(out)
		return err
	case err != nil:
		return usage(f.command, "%s", asOne(err))
	case len(f.arguments) == 0 && f.NArg() > 0:
		return usage(f.command, "unexpected argument %q", f.Arg(0))
	case len(f.arguments) > 0 && f.NArg() != 1:
		return usage(f.command, "it takes one of %s", strings.Join(f.arguments, ", "))
	}
	return nil
}

// help writes a page in the manner of man.
func (f *flagSet) help(out io.Writer) {
	var flags bytes.Buffer
	f.VisitAll(func(fl *flag.Flag) {
		value, about := flag.UnquoteUsage(fl)
		if b, ok := fl.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
			value = strings.TrimPrefix("[="+value+"]", "[=]") // it may be left out
		} else {
			value = " " + value
		}
		fmt.Fprintf(&flags, "       --%s%s\n              %s\n", fl.Name, value, strings.ReplaceAll(about, "\n", "\n              "))
		if fl.DefValue != "" && fl.DefValue != "0" && fl.DefValue != "0s" && fl.DefValue != "false" {
			fmt.Fprintf(&flags, "              Default: %s.\n", fl.DefValue)
		}
	})
	synopsis := "mayfly " + f.command
	if flags.Len() > 0 {
		synopsis += " [flags]"
	}
	if len(f.arguments) > 0 {
		synopsis += " " + strings.Join(f.arguments, " | ")
	}
	c, _ := commandNamed(f.command)
	fmt.Fprintf(out, "NAME\n       mayfly %s - %s\n\nSYNOPSIS\n       usage: %s\n\nDESCRIPTION\n", c.name, c.summary, synopsis)
	for line := range strings.SplitSeq(f.about, "\n") {
		fmt.Fprintln(out, strings.TrimRight("       "+line, " "))
	}
	if flags.Len() > 0 {
		fmt.Fprintf(out, "\nOPTIONS\n%s", &flags)
	}
	fmt.Fprintf(out, "\nEXIT STATUS\n       0 when it did what it was asked, 1 when it could not, 2 when it was called wrongly.\n")
}

// given reports whether a flag was on the command line.
func given(f *flagSet, name string) (is bool) {
	f.Visit(func(fl *flag.Flag) { is = is || fl.Name == name })
	return is
}

// asOne is an error of several lines as one.
func asOne(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
