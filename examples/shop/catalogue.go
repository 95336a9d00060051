package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/jitter"
)

// product is a row of the table, and what is cached of it.
type product struct {
	ID    int64  `json:"id"`
	Name  string `json:"name"`
	Cents int64  `json:"cents"`
	Stock int    `json:"stock"`
}

var (
	errUnknown = errors.New("no such product")
	errSoldOut = errors.New("not enough in stock")
)

// catalogue is the products: the database has the truth, the cache copies.
type catalogue struct {
	db    *pgxpool.Pool
	cache *cacheaside.Cache[int64, product]
}

// newCatalogue returns the products of db. A call waits for Redis for redisTimeout at most; zero is 150 ms.
func newCatalogue(db *pgxpool.Pool, rdb redis.UniversalClient, redisTimeout time.Duration) (*catalogue, error) {
	c := &catalogue{db: db}
	products := mayfly.Namespace[int64, product]{
		Name:   "products",
		Redis:  rdb,
		Prefix: "shop:product:",
		TTL:    10 * time.Minute, // how long a price may be wrong if a process dies between the commit and the Delete
		Jitter: jitter.Default,
	}
	var err error
	c.cache, err = cacheaside.New(products, c.query, cacheaside.Options{
		NotFound:     func(err error) bool { return errors.Is(err, pgx.ErrNoRows) },
		MissTTL:      time.Minute, // who asks for numbers that there are not asks the database once a minute
		RedisTimeout: redisTimeout,
	})
	return c, err
}

// product returns the product of this number: the cached copy, or else the row.
func (c *catalogue) product(ctx context.Context, id int64) (product, error) {
	p, err := c.cache.Get(ctx, id)
	if errors.Is(err, mayfly.ErrNotFound) {
		return p, errUnknown
	}
	return p, err
}

// query is the cache's loader.
func (c *catalogue) query(ctx context.Context, id int64) (p product, err error) {
	err = c.db.QueryRow(ctx, "SELECT id, name, cents, stock FROM products WHERE id = $1", id).Scan(&p.ID, &p.Name, &p.Cents, &p.Stock)
	return p, err
}

// reprice gives a product another price. When it has returned nil, this process shows no older one, and none is stored again.
func (c *catalogue) reprice(ctx context.Context, id, cents int64) error {
	return c.change(ctx, id, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, "UPDATE products SET cents = $2 WHERE id = $1", id, cents)
		if err == nil && done.RowsAffected() == 0 {
			err = errUnknown
		}
		return err
	})
}

// order sells so many of a product, and returns what is left. The row decides that, never a copy of it.
func (c *catalogue) order(ctx context.Context, id int64, quantity int) (left int, err error) {
	err = c.change(ctx, id, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, "SELECT stock FROM products WHERE id = $1 FOR UPDATE", id).Scan(&left)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return errUnknown
		case err != nil:
			return err
		case left < quantity:
			return errSoldOut
		}
		left -= quantity
		if _, err = tx.Exec(ctx, "UPDATE products SET stock = $2 WHERE id = $1", id, left); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO orders (product, quantity) VALUES ($1, $2)", id, quantity)
		return err
	})
	return left, err
}

// change commits what write does, and then deletes the copy. In the other order a reader who comes between the two would read
// the old row, and store it for the TTL.
//
// The copy is deleted also if the commit failed: its reply may be what was lost, and to delete too much costs one query. It is
// deleted also if the caller has left meanwhile. And if Redis cannot be reached, the change was made all the same: the cache
// remembers the key, does not trust it until then, and deletes it when Redis is back, so that is no error of the change.
func (c *catalogue) change(ctx context.Context, id int64, write func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, c.db, write)
	_ = c.cache.Delete(context.WithoutCancel(ctx), id)
	return err
}

// createTables makes what a new database lacks.
func createTables(ctx context.Context, db *pgxpool.Pool) error {
	_, err := db.Exec(ctx, `
		CREATE TABLE IF NOT EXISTS products (
			id    bigint PRIMARY KEY,
			name  text NOT NULL,
			cents bigint NOT NULL CHECK (cents >= 0),
			stock integer NOT NULL CHECK (stock >= 0)
		);
		CREATE TABLE IF NOT EXISTS orders (
			id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			product  bigint NOT NULL REFERENCES products,
			quantity integer NOT NULL CHECK (quantity > 0)
		);
		INSERT INTO products (id, name, cents, stock)
		VALUES (1, 'Lamp', 2900, 12), (2, 'Teapot', 3700, 8), (3, 'Kite', 1450, 40)
		ON CONFLICT DO NOTHING`)
	return err
}
