package engine

// clientCommands are CLIENT and its subcommands.
var clientCommands = []Command{}

// clientInfo is what CLIENT LIST shows of a session and nothing else needs.
type clientInfo struct{}

// reset is what RESET does to it.
func (i *clientInfo) reset() { *i = clientInfo{} }
