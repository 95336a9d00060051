package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
)

const aboutCompletion = `Completion prints a script with which a shell completes mayfly's commands and flags:

bash   source <(mayfly completion bash)
zsh    source <(mayfly completion zsh)
fish   mayfly completion fish | source`

// completion is mayfly completion.
func completion(ctx context.Context, args []string, out io.Writer) error {
	flags := newFlags("completion", aboutCompletion, "bash", "zsh", "fish")
	if err := flags.parse(args, out); err != nil {
		return err
	}
	var names []string
	of := map[string]string{"completion": "bash zsh fish"}
	for _, c := range commands() {
		names = append(names, c.name)
		if more := flagsOf(ctx, c); more != "" {
			of[c.name] = more
		}
	}
	all := strings.Join(append(names, "help"), " ")
	switch flags.Arg(0) {
	case "bash":
		fmt.Fprintf(out, "_mayfly() {\n\tlocal words=\"%s\"\n\tcase ${COMP_WORDS[1]} in\n", all)
		for _, name := range names {
			fmt.Fprintf(out, "\t%s) ((COMP_CWORD < 2)) || words=\"%s\" ;;\n", name, of[name])
		}
		fmt.Fprintf(out, "\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\ncomplete -o default -F _mayfly mayfly\n")
	case "zsh":
		fmt.Fprintf(out, "#compdef mayfly\n_mayfly() {\n\tlocal -a choices=(%s)\n\tcase $words[2] in\n", all)
		for _, name := range names {
			fmt.Fprintf(out, "\t%s) ((CURRENT < 3)) || choices=(%s) ;;\n", name, of[name])
		}
		fmt.Fprintf(out, "\tesac\n\tcompadd -- $choices || _files\n}\ncompdef _mayfly mayfly\n")
	case "fish":
		for _, c := range commands() {
			fmt.Fprintf(out, "complete -c mayfly -n __fish_use_subcommand -a %s -d '%s'\n", c.name, strings.ReplaceAll(c.summary, "'", ""))
			for word := range strings.FieldsSeq(of[c.name]) {
				take := "-a " + word
				if long, ok := strings.CutPrefix(word, "--"); ok {
					take = "-l " + long
				}
				fmt.Fprintf(out, "complete -c mayfly -n '__fish_seen_subcommand_from %s' %s\n", c.name, take)
			}
		}
	default:
		return usage("completion", "want bash, zsh or fish, got %q", flags.Arg(0))
	}
	return nil
}

var option = regexp.MustCompile(`(?m)^       (--[a-z-]+)`)

// flagsOf reads a command's flags out of its help.
func flagsOf(ctx context.Context, c command) string {
	var page bytes.Buffer
	c.run(ctx, []string{"--help"}, &page)
	var all []string
	for _, m := range option.FindAllStringSubmatch(page.String(), -1) {
		all = append(all, m[1])
	}
	return strings.Join(all, " ")
}
