package httpcache

import (
	"errors"
	"fmt"
)

// mostTold is how many different errors of one removal are told.
const mostTold = 3

// summary is errors.Join for the errors of many keys, of which most are the same: each text once, with how often, and no more than a few. Nil
// errors are left out.
func summary(errs []error) error {
	times, first := make(map[string]int), []error(nil)
	for _, err := range errs {
		if err == nil {
			continue
		}
		if times[err.Error()]++; times[err.Error()] == 1 {
			first = append(first, err)
		}
	}
	var told []error
	others := 0
	for i, err := range first {
		n := times[err.Error()]
		switch {
		case i >= mostTold:
			others += n
		case n > 1:
			told = append(told, fmt.Errorf("%w (%d times)", err, n))
		default:
			told = append(told, err)
		}
	}
	if others > 0 {
		told = append(told, fmt.Errorf("and %d other errors", others))
	}
	return errors.Join(told...)
}
