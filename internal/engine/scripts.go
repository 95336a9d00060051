package engine

// scriptCommands are EVAL and its like, and SCRIPT.
var scriptCommands = []Command{}

// library is the scripts that are known, and the one that runs.
type library struct{}

// busy reports whether a script has passed its time limit and goes on.
func (l *library) busy() bool { return false }
