// Package panel is what can be turned, pressed and read of the demo's shop. The shop obeys it and the dashboard shows it, and neither needs
// to know more of the other.
package panel

import (
	"errors"
	"fmt"
	"time"
)

// Settings are the switches and the sliders. Switches keep their position while Mayfly, the main one, is off.
type Settings struct {
	Mayfly bool `json:"mayfly"` // off: all is as by hand

	Jitter  bool `json:"jitter"`  // TTLs differ by +-10 %
	Lease   bool `json:"lease"`   // one query at a time per product, over all processes
	Early   bool `json:"early"`   // products are renewed before their end
	Local   bool `json:"local"`   // copies in the process; needs Lease
	Pages   bool `json:"pages"`   // whole pages are kept
	Sliding bool `json:"sliding"` // carts live while they are used
	Fields  bool `json:"fields"`  // the address in a login ends before the login
	Visits  bool `json:"visits"`  // what a shopper viewed ends with the visit

	Shoppers    int           `json:"shoppers"`
	Pause       time.Duration `json:"pause"` // of a shopper between two pages, on average
	TTL         time.Duration `json:"ttl"`   // of products and pages
	Query       time.Duration `json:"query"` // what the database takes
	Connections int           `json:"connections"`
	Processes   int           `json:"processes"`
}

// Default is where a shop begins: by hand, with every switch ready.
var Default = Settings{
	Jitter: true, Lease: true, Early: true, Local: true, Pages: true, Sliding: true, Fields: true, Visits: true,
	Shoppers: 300, Pause: 400 * time.Millisecond, TTL: 5 * time.Second, Query: 200 * time.Millisecond, Connections: 20, Processes: 2,
}

// MostProcesses is how many there can be.
const MostProcesses = 12

// Validate returns an error that names what is out of bounds.
func (s Settings) Validate() error {
	var wrong []error
	between := func(name string, is, least, most any, ok bool) {
		if !ok {
			wrong = append(wrong, fmt.Errorf("%s must be %v to %v, got %v", name, least, most, is))
		}
	}
	between("shoppers", s.Shoppers, 0, 2000, s.Shoppers >= 0 && s.Shoppers <= 2000)
	between("pause", s.Pause, 10*time.Millisecond, time.Minute, s.Pause >= 10*time.Millisecond && s.Pause <= time.Minute)
	between("ttl", s.TTL, 200*time.Millisecond, time.Hour, s.TTL >= 200*time.Millisecond && s.TTL <= time.Hour)
	between("query", s.Query, time.Millisecond, 5*time.Second, s.Query >= time.Millisecond && s.Query <= 5*time.Second)
	between("connections", s.Connections, 1, 1000, s.Connections >= 1 && s.Connections <= 1000)
	between("processes", s.Processes, 1, MostProcesses, s.Processes >= 1 && s.Processes <= MostProcesses)
	return errors.Join(wrong...)
}

// Effective returns the settings as they work: without the main switch none of the others does.
func (s Settings) Effective() Settings {
	if !s.Mayfly {
		s.Jitter, s.Lease, s.Early, s.Local, s.Pages, s.Sliding, s.Fields, s.Visits = false, false, false, false, false, false, false, false
	}
	s.Local = s.Local && s.Lease
	return s
}
