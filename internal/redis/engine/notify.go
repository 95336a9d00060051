package engine

import (
	"strconv"
	"strings"
)

// notifyClass is a set of classes of keyspace events, as notify-keyspace-events names them.
type notifyClass uint32

// The classes, each with the letter of the configuration.
const (
	notifyKeyspace notifyClass = 1 << iota // K: publish to __keyspace@db__:key
	notifyKeyevent                         // E: publish to __keyevent@db__:event
	notifyGeneric                          // g
	notifyString                           // $
	notifyList                             // l
	notifySet                              // s
	notifyHash                             // h
	notifyZSet                             // z
	notifyExpired                          // x
	notifyEvicted                          // e
	notifyStream                           // t
	notifyLoaded                           // d: modules
	notifyMiss                             // m
	notifyNew                              // n
)

// notifyAll is A: every class of changes, but neither misses nor new keys.
const notifyAll = notifyGeneric | notifyString | notifyList | notifySet | notifyHash | notifyZSet | notifyExpired | notifyEvicted |
	notifyStream | notifyLoaded

// The letters of single classes: in the order of their bits, and in the order in which CONFIG GET shows them.
const (
	classLetters = "KEg$lshzxetdmn"
	shownLetters = "g$lshzxetdnKEm"
)

// classOf returns the class of a letter, 0 if there is none.
func classOf(letter byte) notifyClass {
	if at := strings.IndexByte(classLetters, letter); at >= 0 {
		return 1 << at
	}
	return 0
}

// parseClasses reads the value of notify-keyspace-events.
func parseClasses(letters string) (set notifyClass, ok bool) {
	for _, letter := range []byte(letters) {
		class := classOf(letter)
		if letter == 'A' {
			class = notifyAll
		}
		if class == 0 {
			return 0, false
		}
		set |= class
	}
	return set, true
}

// String returns the classes as CONFIG GET shows them: A stands for all changes and, as in Redis, hides n.
func (set notifyClass) String() string {
	var letters []byte
	if set&notifyAll == notifyAll {
		letters = append(letters, 'A')
		set &^= notifyAll | notifyNew
	}
	for _, letter := range []byte(shownLetters) {
		if set&classOf(letter) != 0 {
			letters = append(letters, letter)
		}
	}
	return string(letters)
}

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
