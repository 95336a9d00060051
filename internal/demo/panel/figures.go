package panel

import "time"

// Figures are what happened since the figures before, and how things are.
type Figures struct {
	For time.Duration // since when

	// Pages are the product pages that shoppers asked for. Each is counted in one of Got.
	Pages int64
	Got

	Rendered int64 // pages that a handler made
	Queries  int64 // that the database was asked
	Worst    int   // most queries of one product that ran or waited at once

	Took     Took          // each of Pages
	P50, P99 time.Duration // of those in the last second or so

	Carts, Lost, Unavailable int64 // carts begun, carts that ended while in use; times that shoppers could not see theirs

	Answered, GivenUp int64 // requests of the catalogue's crowd: answered, and not within their time

	State
	Redis Health
	Slow  time.Duration // for how much longer the databases are slow
	Loads Loads
}

// Got is what those who asked for product pages got, each counted once: by whether it came from a cache, and from which,
// or whether somebody had to wait for the database.
type Got struct {
	FromMemory int64 // a copy in the process, of the page or of the product
	FromRedis  int64 // a fresh copy in Redis, of the page or of the product
	Stale      int64 // a copy past its time, while a new one is made
	Waited     int64 // for the database: for a query of their own, or somebody else's
	Failed     int64 // an error
}

// State is what is in Redis. It is looked at less often than figures are asked for.
type State struct {
	Keys      int     `json:"keys"`
	Endless   int     `json:"endless"`   // keys without a TTL
	Dead      float64 `json:"dead"`      // per cent of the keys with a TTL that are dead and take memory, as Redis estimates it
	Together  int     `json:"together"`  // products whose copies end within a twentieth of a TTL, at most
	Ends      []int64 `json:"ends"`      // of the products that Redis has: in how many ms each ends
	Addresses int     `json:"addresses"` // that are kept longer than they should be
}

// Loads is what the catalogue's database is given to do at this moment. All is zero while there is no crowd.
type Loads struct {
	AtDatabase int `json:"atDatabase"` // queries that it works on or has in line, those that nobody waits for any more among them
	Limit      int `json:"limit"`      // loads that may run at once; negative: any number
	Queued     int `json:"queued"`     // loads that are kept from the database until there is room
}

// Health is how Redis is, as the shop sees it.
type Health string

const (
	Up     Health = "up"
	Killed Health = "killed" // connections are cut and refused
	Hung   Health = "hung"   // connections stay, and nothing is answered
)
