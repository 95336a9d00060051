package ttlaudit

// Patterns folds keys, and returns how many have each pattern.
func Patterns(keys []string, most int) map[string]int64 {
	f := newForest(most)
	for _, key := range keys {
		f.at(key).Keys++
	}
	all := map[string]int64{}
	f.Root.each("", func(name string, t *tally) { all[name] += t.Keys })
	return all
}

var Proportion = proportion

func Fits(pattern, key string) bool { return readPattern(pattern).fits(key) }

// Total estimates what all the keys take, of which sizes are a sample, with the interval.
func Total(sizes []float64, of int64) *Estimate {
	var m moments
	for _, s := range sizes {
		m.see(s)
	}
	return normal(m.total(of, m))
}

// Largest is what a report names of keys without a TTL that are seen in this order, each of so many bytes.
func Largest(most int, keys []string, bytes []int64) (all []string) {
	a := &audit{opt: Options{Largest: most}}
	for i, key := range keys {
		a.enlarge(key, "string", bytes[i])
	}
	for _, l := range a.Largest {
		all = append(all, l.Key)
	}
	return all
}
