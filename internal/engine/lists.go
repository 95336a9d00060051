package engine

// listCommands are the lists, blocking ones included.
var listCommands = []Command{}
