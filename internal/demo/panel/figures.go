package panel

import "time"

// Figures are what happened since the previous figures, and the present state.
type Figures struct {
	For time.Duration // the time since the previous figures

	// Pages are the product pages that shoppers requested. Got counts each page once.
	Pages int64
	Got

	Rendered int64 // pages that a handler rendered
	Queries  int64 // queries sent to the database
	Worst    int   // most queries for one product that ran or waited at once

	Took     Took          // the time of each page in Pages
	P50, P99 time.Duration // of the pages of about the last second

	Carts, Lost, Unavailable int64 // carts begun, carts that expired while in use; times that shoppers could not see theirs

	Answered, GivenUp int64 // requests of the catalogue's crowd: answered, and not answered in time

	State
	Redis Health
	Slow  time.Duration // how much longer the databases are slow
	Loads Loads
}

// Got counts what shoppers got who requested product pages, each request once: which cache the page came from,
// or whether the shopper had to wait for the database.
type Got struct {
	FromMemory int64 // a copy in the process, of the page or of the product
	FromRedis  int64 // a fresh copy in Redis, of the page or of the product
	Stale      int64 // an expired copy, while a new one is made
	Waited     int64 // waited for the database, for an own query or another caller's
	Failed     int64 // got an error
}

// State is what is in Redis. It is read less often than the other figures.
type State struct {
	Keys      int     `json:"keys"`
	Endless   int     `json:"endless"`   // keys without a TTL
	Dead      float64 `json:"dead"`      // per cent of the keys with a TTL that are dead and take memory, as Redis estimates it
	Together  int     `json:"together"`  // products whose copies end within a twentieth of a TTL, at most
	Ends      []int64 `json:"ends"`      // of the products that Redis has: in how many ms each ends
	Addresses int     `json:"addresses"` // that are kept longer than they should be
}

// Loads is the present load of the catalogue's database. All fields are zero while there is no crowd.
type Loads struct {
	AtDatabase int `json:"atDatabase"` // queries that it works on or has in line, including those that nobody waits for any more
	Limit      int `json:"limit"`      // loads that may run at once; negative: any number
	Queued     int `json:"queued"`     // loads that are kept from the database until there is room
}

// Health is the state of Redis as the shop sees it.
type Health string

const (
	Up     Health = "up"
	Killed Health = "killed" // connections are cut and refused
	Hung   Health = "hung"   // connections stay, and nothing is answered
)
