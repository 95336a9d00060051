package engine

// pubsubCommands are publishing and subscribing, by channel, pattern and shard.
var pubsubCommands = []Command{}

// hub knows who subscribed to what.
type hub struct{}

// subscriptions are what one session subscribed to.
type subscriptions struct{}

// subscribed reports whether the session is in the mode in which RESP2 allows little else.
func (s *subscriptions) subscribed() bool { return false }

// allowedWhileSubscribed reports whether RESP2 allows cmd in that mode.
func allowedWhileSubscribed(cmd *Command) bool {
	switch cmd.Name {
	case "ping", "subscribe", "ssubscribe", "psubscribe", "unsubscribe", "sunsubscribe", "punsubscribe", "quit", "reset":
		return true
	}
	return false
}

// publish sends message to the subscribers of channel, and returns how many there are. Both are copied.
func (e *Engine) publish(channel, message []byte) int { return 0 }

// unsubscribeAll forgets the subscriptions of s, without a word to it.
func (e *Engine) unsubscribeAll(s *Session) {}
