package engine

import "bytes"

// Message is what PUBLISH sent at one node of a cluster: subscribers hear it at whichever node they are.
type Message struct{ Channel, Message []byte }

// broadcast keeps a published message for the other nodes.
func (e *Engine) broadcast(channel, message []byte) {
	if e.options.Cluster != nil {
		e.broadcasts = append(e.broadcasts, Message{bytes.Clone(channel), bytes.Clone(message)})
	}
}

// Broadcasts returns the messages that were published here since it was called last, for the owner to Deliver to the other nodes.
func (e *Engine) Broadcasts() []Message {
	all := e.broadcasts
	e.broadcasts = nil
	return all
}

// Deliver sends a message of another node to those who subscribed here.
func (e *Engine) Deliver(m Message) { e.publish(m.Channel, m.Message) }
