package engine

// infoCommands are INFO and its like.
var infoCommands = []Command{}
