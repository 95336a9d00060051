package engine

// bitCommands are the strings seen as arrays of bits.
var bitCommands = []Command{}
