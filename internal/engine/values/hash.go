package values

// HashValue maps fields to values. A field may have a deadline of its own: a field past it is hidden from readers at once and stays in Len
// until Expire takes it out.
type HashValue struct{}

// NewHash returns an empty hash.
func NewHash() *HashValue { return &HashValue{} }

func (h *HashValue) Kind() Kind       { return Hash }
func (h *HashValue) Encoding() string { return "listpack" }
func (h *HashValue) Len() int         { return 0 }
func (h *HashValue) Clone() Value     { return &HashValue{} }
func (h *HashValue) Size() int        { return 0 }

// NextDeadline returns the earliest deadline of any field in unix milliseconds, 0 if none has one.
func (h *HashValue) NextDeadline() int64 { return 0 }

// Expire removes up to max fields that are dead at now, and calls each with the name of every one of them. It returns how many.
func (h *HashValue) Expire(now int64, max int, each func(field []byte)) int { return 0 }
