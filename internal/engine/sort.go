package engine

// sortCommands are SORT and SORT_RO.
var sortCommands = []Command{}
