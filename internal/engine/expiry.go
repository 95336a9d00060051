package engine

// expiryCommands
var expiryCommands = []Command{}
