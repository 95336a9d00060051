package values

// ListValue is a sequence of byte strings, cheap at both ends.
type ListValue struct{}

// NewList returns an empty list.
func NewList() *ListValue { return &ListValue{} }

func (l *ListValue) Kind() Kind       { return List }
func (l *ListValue) Encoding() string { return "listpack" }
func (l *ListValue) Len() int         { return 0 }
func (l *ListValue) Clone() Value     { return &ListValue{} }
func (l *ListValue) Size() int        { return 0 }
