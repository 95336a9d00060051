package engine

// sortedSetCommands are the sorted sets.
var sortedSetCommands = []Command{}
