package script

// LimitMemory lets the scripts of m hold so many bytes.
func (m *Machine) LimitMemory(bytes int) { m.memory = bytes }
