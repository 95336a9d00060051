package engine

import "bytes"

// Message is a PUBLISH sent to one node of a cluster, to be heard by subscribers at every node.
type Message struct{ Channel, Message []byte }

// broadcast keeps a published message for the other nodes.
func (e *Engine) broadcast(channel, message []byte) {
	if e.options.Cluster != nil {
		e.broadcasts = append(e.broadcasts, Message{bytes.Clone(channel), bytes.Clone(message)})
	}
}

// Broadcasts returns the messages published here since the last call, for the owner to Deliver to the other nodes.
func (e *Engine) Broadcasts() []Message {
	all := e.broadcasts
	e.broadcasts = nil
	return all
}

// Deliver sends a message from another node to the subscribers here.
func (e *Engine) Deliver(m Message) { e.publish(m.Channel, m.Message) }
