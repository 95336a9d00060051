package engine

// keyCommands
var keyCommands = []Command{}
