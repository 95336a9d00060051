package values

// SetValue is a collection of distinct byte strings.
type SetValue struct{}

// NewSet returns an empty set.
func NewSet() *SetValue { return &SetValue{} }

func (s *SetValue) Kind() Kind       { return Set }
func (s *SetValue) Encoding() string { return "intset" }
func (s *SetValue) Len() int         { return 0 }
func (s *SetValue) Clone() Value     { return &SetValue{} }
func (s *SetValue) Size() int        { return 0 }
