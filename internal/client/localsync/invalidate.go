package localsync

// drop drops the copies under prefix (all if it is empty), and makes reads under way uninsertable.
func (t *Local) drop(prefix string) {
	t.counts.flushes.Add(1)
	t.store.InvalidateAll(prefix)
	t.watched.all()
}

// heard drops the copy of a key that has changed.
func (t *Local) heard(key string) {
	t.counts.heard.Add(1)
	t.store.Invalidate(key)
	t.watched.one(key)
}

// told handles a message that tell has sent.
func (t *Local) told(message string) {
	switch {
	case message == "":
	case message[0] == toldKey:
		t.heard(message[1:])
	case message[0] == toldPrefix:
		t.drop(message[1:])
	}
}
