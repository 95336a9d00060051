package engine

// dumpCommands are DUMP and RESTORE.
var dumpCommands = []Command{}
