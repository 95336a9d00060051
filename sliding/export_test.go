package sliding

// Keys returns how many keys a limiter with shares remembers.
func (l *Limiter[K]) Keys() (n int) {
	for i := range l.leases.shards {
		n += len(l.leases.shards[i].keys)
	}
	return n
}
