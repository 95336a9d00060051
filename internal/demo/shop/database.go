package shop

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// product is a row of the database, with its reviews.
type product struct {
	ID      int
	Name    string
	Price   int // cents
	Stock   int
	Reviews []review
}

type review struct {
	By, Text string
	Stars    int
}

// names are the names of the products, best sellers first.
var names = []string{"Lamp", "Teapot", "Rucksack", "Kite", "Umbrella", "Globe", "Hammock", "Whistle"}

// products is the number of products.
var products = len(names)

func productOf(id, reviews int) product {
	p := product{ID: id, Name: names[id%len(names)], Price: 900 + 137*id, Stock: 12 + id}
	for i := range reviews {
		p.Reviews = append(p.Reviews, review{
			By: fmt.Sprint("customer ", 17*i+id), Stars: 3 + (i+id)%3,
			Text: fmt.Sprintf("I have had my %s for %d weeks and would buy it again.", p.Name, 2+i),
		})
	}
	return p
}

// database is the slow table: a query holds one of few connections for a while, and waits in line if none is free.
type database struct {
	reviews int // of a product; never changes

	mu      sync.Mutex // guards the fields below
	takes   time.Duration
	slow    time.Time // until then a query takes slower times as long
	limit   int
	busy    int
	waiting []chan struct{} // queries without a connection, in order of arrival
	asked   int64           // since the last call of figures
	asking  map[int]int     // queries that run or wait, by product
	worst   int             // most queries for one product since the last call of figures
}

func newDatabase(reviews int) *database {
	return &database{reviews: reviews, asking: make(map[int]int)}
}

// set changes how slow the database is and how many connections it has.
func (d *database) set(takes time.Duration, limit int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.takes, d.limit = takes, limit
	d.admitLocked()
}

// slower is the factor by which a query takes longer if it begins while its database is slow.
const slower = 4

// slowUntil makes queries slow that begin before then.
func (d *database) slowUntil(then time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow = then
}

// slowFor returns how much longer the database is slow.
func (d *database) slowFor(now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(0, d.slow.Sub(now))
}

func (d *database) admitLocked() {
	for d.busy < d.limit && len(d.waiting) > 0 {
		close(d.waiting[0])
		d.waiting = d.waiting[1:]
		d.busy++
	}
}

// product runs the query.
func (d *database) product(ctx context.Context, id int) (product, error) {
	turn := make(chan struct{})
	d.mu.Lock()
	d.asked++
	d.asking[id]++
	d.worst = max(d.worst, d.asking[id])
	d.waiting = append(d.waiting, turn)
	d.admitLocked()
	d.mu.Unlock()

	<-turn // even if the caller has left: a database does not notice that
	d.mu.Lock()
	takes := d.takes
	if time.Now().Before(d.slow) {
		takes *= slower
	}
	d.mu.Unlock()
	sleep(ctx, takes)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asking[id]--
	d.busy--
	d.admitLocked()
	return productOf(id, d.reviews), ctx.Err()
}

// figures returns, since the last call, the number of queries and the greatest number for one product that ran or waited at once.
func (d *database) figures() (asked int64, worst int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	asked, worst = d.asked, d.worst
	d.asked, d.worst = 0, 0
	for _, n := range d.asking {
		d.worst = max(d.worst, n)
	}
	return asked, max(worst, d.worst)
}
