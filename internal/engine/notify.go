package engine

import "strconv"

// notifyClass is a set of classes of keyspace events, as notify-keyspace-events names them.
type notifyClass uint32

// The classes, each with the letter of the configuration.
const (
	notifyKeyspace   notifyClass                                                                                                                                     = 1 << iota // K: publish to __keyspace@db__:key
	notifyKeyevent                                                                                                                                                               // E: publish to __keyevent@db__:event
	notifyGeneric                                                                                                                                                                // g
	notifyString                                                                                                                                                                 // $
	notifyList                                                                                                                                                                   // l
	notifySet                                                                                                                                                                    // s
	notifyHash                                                                                                                                                                   // h
	notifyZSet                                                                                                                                                                   // z
	notifyExpired                                                                                                                                                                // x
	notifyEvicted                                                                                                                                                                // e
	notifyStream                                                                                                                                                                 // t
	notifyMiss                                                                                                                                                                   // m
	notifyLoaded                                                                                                                                                                 // d: modules
	notifyNew                                                                                                                                                                    // n
	notifyAll        = notifyGeneric | notifyString | notifyList | notifySet | notifyHash | notifyZSet | notifyExpired | notifyEvicted | notifyStream | notifyLoaded             // A
	notifyEverything = notifyKeyspace | notifyKeyevent | notifyAll | notifyMiss | notifyNew
)

// notify publishes an event about key in d, if its class is configured.
func (e *Engine) notify(d *db, class notifyClass, event string, key []byte) {
	if e.settings.notify&class == 0 {
		return
	}
	if e.settings.notify&notifyKeyspace != 0 {
		e.scratch = append(appendChannel(e.scratch[:0], "keyspace", d.index), key...)
		e.publish(e.scratch, []byte(event))
	}
	if e.settings.notify&notifyKeyevent != 0 {
		e.scratch = append(appendChannel(e.scratch[:0], "keyevent", d.index), event...)
		e.publish(e.scratch, key)
	}
}

func appendChannel(b []byte, space string, db int) []byte {
	b = append(append(append(b, "__"...), space...), '@')
	return append(strconv.AppendInt(b, int64(db), 10), "__:"...)
}
