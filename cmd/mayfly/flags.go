package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// errUsage is wrapped by errors in the command line: the program exits with 2 instead of 1.
var errUsage = errors.New("see mayfly help")

// usage returns an error about how a command was called.
func usage(command, format string, args ...any) error {
	return fmt.Errorf("%s: %s (%w)", command, fmt.Sprintf(format, args...), errUsage)
}

// flagSet is the flags of one command, with its help page.
type flagSet struct {
	*flag.FlagSet
	command   string
	about     string   // what the command does, in paragraphs
	arguments []string // alternatives for the one argument after the flags; empty: the command takes none
	statuses  string   // exit statuses of its own, a line each
}

func newFlags(command, about string, arguments ...string) *flagSet {
	flags := flag.NewFlagSet("mayfly "+command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return &flagSet{FlagSet: flags, command: command, about: about, arguments: arguments}
}

// parse reads the command line. If it asks for help, parse writes that to out and returns flag.ErrHelp.
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
		return usage(f.command, "want one argument: %s", strings.Join(f.arguments, ", "))
	}
	return nil
}

// help writes a page in the style of man.
func (f *flagSet) help(out io.Writer) {
	var flags bytes.Buffer
	f.VisitAll(func(fl *flag.Flag) {
		value, about := flag.UnquoteUsage(fl)
		if b, ok := fl.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
			value = strings.TrimPrefix("[="+value+"]", "[=]") // the value is optional
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
	fmt.Fprintf(out, "\nEXIT STATUS\n       0 on success, 1 on failure, 2 when the command line is wrong.\n")
	if f.statuses != "" {
		fmt.Fprintln(out, "       "+strings.ReplaceAll(f.statuses, "\n", "\n       "))
	}
}

// given reports whether a flag was on the command line.
func given(f *flagSet, name string) (is bool) {
	f.Visit(func(fl *flag.Flag) { is = is || fl.Name == name })
	return is
}

// asOne joins the lines of an error.
func asOne(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
