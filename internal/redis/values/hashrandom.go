package values

// Random returns a random field, each with the same probability. draw returns uniform 64-bit numbers. The hash must not be empty.
func (h *HashValue) Random(draw func() uint64) (field, value []byte) {
	if h.large != nil {
		it := h.large.random(draw)
		return Bytes(it.name), it.data
	}
	e := h.small.nth(int(draw() % uint64(h.small.n)))
	return h.small.field(e), h.small.value(e)
}

// Sample calls do with count different random fields, or with all if there are no more; each choice is equally likely.
func (h *HashValue) Sample(count int, draw func() uint64, do func(field, value []byte)) {
	if h.large != nil && count < h.Len()/3 {
		h.large.sampleFew(count, draw, func(it *item[[]byte]) { do(Bytes(it.name), it.data) })
		return
	}
	left, want := h.Len(), min(count, h.Len())
	h.Each(func(field, value []byte, _ int64) bool {
		if draw()%uint64(left) < uint64(want) {
			want--
			do(field, value)
		}
		left--
		return want > 0
	})
}
