// Package panel is the controls and the figures of the demo's shop. The shop obeys it and the dashboard shows it, and neither needs
// to know more about the other.
package panel

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Settings are the switches and the sliders. Switches keep their position while Mayfly, the main one, is off.
type Settings struct {
	Mayfly bool // off: everything is done by hand

	Jitter  bool // TTLs differ by +-10 %
	Lease   bool // one query at a time per product, across all processes
	Early   bool // products are renewed before they expire
	Local   bool // copies in the process; needs Lease
	Pages   bool // whole pages are cached
	Sliding bool // carts live as long as they are used
	Fields  bool // the address in a login expires before the login
	Visits  bool // the list of viewed products ends with the visit

	Admission bool // of the catalogue's loads: no more at once than its database can work on

	Shoppers    int
	Pause       time.Duration // average pause of a shopper between two pages
	TTL         time.Duration // of products and pages
	Query       time.Duration // how long the database takes for a query
	Connections int
	Processes   int
}

// Default is how a shop starts: by hand, with every switch ready.
var Default = Settings{
	Jitter: true, Lease: true, Early: true, Local: true, Pages: true, Sliding: true, Fields: true, Visits: true, Admission: true,
	Shoppers: 300, Pause: 400 * time.Millisecond, TTL: 5 * time.Second, Query: 200 * time.Millisecond, Connections: 20, Processes: 2,
}

// MostProcesses is the largest number of processes.
const MostProcesses = 12

// Validate returns an error that names what is out of bounds.
func (s Settings) Validate() error {
	return errors.Join(
		between("shoppers", s.Shoppers, 0, 2000),
		between("pause", s.Pause, 10*time.Millisecond, time.Minute),
		between("ttl", s.TTL, 200*time.Millisecond, time.Hour),
		between("query", s.Query, time.Millisecond, 5*time.Second),
		between("connections", s.Connections, 1, 1000),
		between("processes", s.Processes, 1, MostProcesses),
	)
}

func between[T cmp.Ordered](name string, is, least, most T) error {
	if is < least || is > most {
		return fmt.Errorf("%s must be %v to %v, got %v", name, least, most, is)
	}
	return nil
}

// Effective returns the settings that are in effect: without the main switch no other switch is.
func (s Settings) Effective() Settings {
	if !s.Mayfly {
		s.Jitter, s.Lease, s.Early, s.Local, s.Pages, s.Sliding, s.Fields, s.Visits = false, false, false, false, false, false, false, false
		s.Admission = false
	}
	s.Local = s.Local && s.Lease
	return s
}
