package engine

// commandCommands are COMMAND and its subcommands.
var commandCommands = []Command{}
