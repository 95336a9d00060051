package httpcache

import (
	"errors"
	"fmt"
)

// mostTold bounds the different errors that the summary of one removal contains.
const mostTold = 3

// summary is errors.Join for the errors of many keys, most of which are the same. It has each text once, with its number, and only a few texts.
// It leaves out nil errors.
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
