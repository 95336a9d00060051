package engine

// stringCommands
var stringCommands = []Command{}
