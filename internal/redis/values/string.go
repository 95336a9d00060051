package values

// Operations on the bytes of a string.

// Range turns Redis's inclusive bounds, which count from the end when negative, into the half-open range of a string of n bytes.
// An empty range is 0, 0.
func Range(from, to int64, n int) (lo, hi int) {
	if from < 0 && to < 0 && from > to {
		return 0, 0
	}
	return Span(from, to, n)
}

// Span is Range as BITPOS needs it: bounds before the beginning are moved there before they are compared.
func Span(from, to int64, n int) (lo, hi int) {
	size := int64(n)
	if from < 0 {
		from = max(from+size, 0)
	}
	if to < 0 {
		to = max(to+size, 0)
	}
	to = min(to, size-1)
	if from > to {
		return 0, 0
	}
	return int(from), int(to + 1)
}

// Overwrite puts part into s at offset, padding s with zero bytes up to there, and returns the string. It reuses the memory of s.
func Overwrite(s []byte, offset int, part []byte) []byte {
	if need := offset + len(part); need > len(s) {
		s = Grow(s, need)
	}
	copy(s[offset:], part)
	return s
}

// Grow lengthens s to n bytes with zeros.
func Grow(s []byte, n int) []byte {
	return append(s, make([]byte, n-len(s))...)
}

// Match is a substring common to two strings: Len bytes, from A in the one and from B in the other.
type Match struct{ A, B, Len int }

// LCS returns the longest common subsequence of a and b, and its parts, the last one first. Of several equally long ones it returns Redis's:
// on the way back, b is shortened unless that loses.
func LCS(a, b []byte) (common []byte, matches []Match) {
	width := len(b) + 1
	best := make([]uint32, (len(a)+1)*width)
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			if a[i-1] == b[j-1] {
				best[i*width+j] = best[(i-1)*width+j-1] + 1
			} else {
				best[i*width+j] = max(best[(i-1)*width+j], best[i*width+j-1])
			}
		}
	}
	common = make([]byte, best[len(best)-1])
	for i, j, left := len(a), len(b), len(common); i > 0 && j > 0; {
		switch {
		case a[i-1] == b[j-1]:
			i, j, left = i-1, j-1, left-1
			common[left] = a[i]
			if n := len(matches); n > 0 && matches[n-1].A == i+1 && matches[n-1].B == j+1 {
				matches[n-1].A, matches[n-1].B = i, j
				matches[n-1].Len++
			} else {
				matches = append(matches, Match{i, j, 1})
			}
		case best[(i-1)*width+j] > best[i*width+j-1]:
			i--
		default:
			j--
		}
	}
	return common, matches
}
