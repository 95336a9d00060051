package engine

// configCommands are CONFIG.
var configCommands = []Command{}
