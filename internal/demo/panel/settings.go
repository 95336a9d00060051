// Package panel is what can be turned, pressed and read of the demo's shop. The shop obeys it and the dashboard shows it, and neither needs
// to know more of the other.
package panel

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Settings are the switches and the sliders. Switches keep their position while Mayfly, the main one, is off.
type Settings struct {
	Mayfly bool // off: all is as by hand

	Jitter  bool // TTLs differ by +-10 %
	Lease   bool // one query at a time per product, over all processes
	Early   bool // products are renewed before their end
	Local   bool // copies in the process; needs Lease
	Pages   bool // whole pages are kept
	Sliding bool // carts live while they are used
	Fields  bool // the address in a login ends before the login
	Visits  bool // what a shopper viewed ends with the visit

	Admission bool // of the catalogue's loads: no more at once than its database can work on

	Shoppers    int
	Pause       time.Duration // of a shopper between two pages, on average
	TTL         time.Duration // of products and pages
	Query       time.Duration // what the database takes
	Connections int
	Processes   int
}

// Default is where a shop begins: by hand, with every switch ready.
var Default = Settings{
	Jitter: true, Lease: true, Early: true, Local: true, Pages: true, Sliding: true, Fields: true, Visits: true, Admission: true,
	Shoppers: 300, Pause: 400 * time.Millisecond, TTL: 5 * time.Second, Query: 200 * time.Millisecond, Connections: 20, Processes: 2,
}

// MostProcesses is how many there can be.
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

// Effective returns the settings as they work: without the main switch none of the others does.
func (s Settings) Effective() Settings {
	if !s.Mayfly {
		s.Jitter, s.Lease, s.Early, s.Local, s.Pages, s.Sliding, s.Fields, s.Visits = false, false, false, false, false, false, false, false
		s.Admission = false
	}
	s.Local = s.Local && s.Lease
	return s
}
