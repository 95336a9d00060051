package shop

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/navsession"
)

const (
	// visitLasts is how long a shopper may view nothing and still be on the same visit.
	visitLasts = 10 * time.Second
	// recent is how many products of a visit are kept and shown.
	recent = 6
)

// visits keeps what each shopper viewed.
type visits interface {
	record(ctx context.Context, shopper string, id int) error
	recent(ctx context.Context, shopper string) ([]int, error)
	related(ctx context.Context, id int) ([]int, error)
}

// endingVisits end with the visit, and remember which products were viewed together.
type endingVisits struct {
	visits *navsession.Visits[string, int]
	others *navsession.Related[int]
}

func newEndingVisits(rdb *redis.Client, seen mayfly.Observer) (visits, error) {
	v, err := navsession.New(mayfly.Namespace[string, int]{Name: "visits", Redis: rdb, Prefix: visitPrefix, TTL: visitLasts, Observer: seen}, navsession.Options{Pages: recent})
	if err != nil {
		return nil, err
	}
	r, err := navsession.NewRelated(mayfly.Namespace[int, int]{Name: "related", Redis: rdb, Prefix: relatedPrefix, TTL: time.Hour, Observer: seen}, navsession.RelatedOptions{PerVisit: 2, MinVisits: 1})
	return endingVisits{v, r}, err
}

func (e endingVisits) record(ctx context.Context, shopper string, id int) error {
	earlier, err := e.visits.Recent(ctx, shopper, 2)
	if err == nil {
		err = e.visits.Record(ctx, shopper, id)
	}
	if err == nil && !slices.Contains(earlier, id) {
		err = e.others.Record(ctx, id, earlier...)
	}
	return err
}

func (e endingVisits) recent(ctx context.Context, shopper string) ([]int, error) {
	return e.visits.Recent(ctx, shopper, recent)
}

func (e endingVisits) related(ctx context.Context, id int) ([]int, error) {
	return e.others.Top(ctx, id, 3)
}

// endlessVisits are lists that products are pushed to by hand, without the EXPIRE: they stay.
type endlessVisits struct{ rdb *redis.Client }

func (e endlessVisits) record(ctx context.Context, shopper string, id int) error {
	return e.rdb.RPush(ctx, visitPrefix+shopper, id).Err() //ttlguard:ok the demo shows what comes of it
}

func (e endlessVisits) recent(ctx context.Context, shopper string) (ids []int, err error) {
	held, err := e.rdb.LRange(ctx, visitPrefix+shopper, -recent, -1).Result()
	for _, text := range slices.Backward(held) {
		if id, err := strconv.Atoi(text); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, err
}

func (e endlessVisits) related(context.Context, int) ([]int, error) { return nil, nil }
