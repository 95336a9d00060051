package engine

// setCommands are the sets.
var setCommands = []Command{}
