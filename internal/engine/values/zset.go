package values

// ZSetValue is a set of byte strings ordered by a score, then by their bytes.
type ZSetValue struct{}

// NewZSet returns an empty sorted set.
func NewZSet() *ZSetValue { return &ZSetValue{} }

func (z *ZSetValue) Kind() Kind       { return ZSet }
func (z *ZSetValue) Encoding() string { return "listpack" }
func (z *ZSetValue) Len() int         { return 0 }
func (z *ZSetValue) Clone() Value     { return &ZSetValue{} }
func (z *ZSetValue) Size() int        { return 0 }
