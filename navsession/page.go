package navsession

import "time"

// Page is one page view, for a [Visits] whose program has no type of its own.
type Page struct {
	URL   string    `json:"url"`
	Title string    `json:"title,omitempty"`
	Time  time.Time `json:"time,omitzero"`
}
