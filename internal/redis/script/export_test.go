package script

// LimitMemory sets how many bytes the scripts of m may hold.
func (m *Machine) LimitMemory(bytes int) { m.memory = bytes }
