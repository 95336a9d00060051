package engine

// hashCommands are the hashes, deadlines of fields included.
var hashCommands = []Command{}

// reapFields removes dead fields from the hashes of d that have some, up to max fields, and returns how many. It is what Tick calls.
func (e *Engine) reapFields(d *db, max int) int { return 0 }
