//go:build race

package nodes

func spoil(b []byte) {
	for i := range b {
		b[i] = 0xDD
	}
}
