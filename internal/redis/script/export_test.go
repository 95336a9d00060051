package script

// LimitMemory sets how many bytes the scripts of m may hold.
func (m *Machine) LimitMemory(bytes int) { m.memory = bytes }

// Shared returns how many bytes of source are held for all machines.
func Shared() (bytes int) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	for _, c := range shared.bySum {
		bytes += len(c.Source)
	}
	return bytes
}
