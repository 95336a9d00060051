package main

import "sync"

type article struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// articles stands for a slow database that all processes share. Version counts its changes.
type articles struct {
	mu      sync.Mutex // guards the fields below
	byID    map[int]article
	changed map[int]int // the version in which each article was last written
	version int
	asked   int // how often anything was read
}

func newArticles() *articles {
	a := &articles{byID: make(map[int]article), changed: make(map[int]int)}
	a.put(1, article{"Mayflies", "Most live for a day, some for minutes."})
	a.put(2, article{"Tortoises", "Some live for two centuries."})
	return a
}

func (a *articles) put(id int, next article) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	a.byID[id], a.changed[id] = next, a.version
}

func (a *articles) get(id int) (one article, version int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	one, ok = a.byID[id]
	return one, a.changed[id], ok
}

// titles returns the title of each article, by its number.
func (a *articles) titles() (titles map[int]string, version int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	titles = make(map[int]string, len(a.byID))
	for id, one := range a.byID {
		titles[id] = one.Title
	}
	return titles, a.version
}
