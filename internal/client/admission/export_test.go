package admission

// Fill fills the queue with loads that nobody waits for.
func Fill(l *Limiter) {
	for range maxQueued {
		l.queue.push(&waiter{granted: make(chan Permit, 1)})
	}
}
