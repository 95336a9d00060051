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

// product is a row of the table, and the form in which it is cached.
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

// catalogue is the products: the database has the truth, the cache has copies.
type catalogue struct {
	db    *pgxpool.Pool
	cache *cacheaside.Cache[int64, product]
}

// newCatalogue returns the products of db. A call waits for Redis no longer than redisTimeout; zero is 150 ms.
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
		MissTTL:      time.Minute, // requests for a number that does not exist reach the database once a minute
		RedisTimeout: redisTimeout,
	})
	return c, err
}

// product returns the product with this number: the cached copy, or else the row.
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

// reprice changes a product's price. After it returned nil, this process shows no older price, and none is stored again.
func (c *catalogue) reprice(ctx context.Context, id, cents int64) error {
	return c.change(ctx, id, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, "UPDATE products SET cents = $2 WHERE id = $1", id, cents)
		if err == nil && done.RowsAffected() == 0 {
			err = errUnknown
		}
		return err
	})
}

// order sells a quantity of a product, and returns the remaining stock. The row decides, never a copy of it.
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

// change commits what write does, and then deletes the copy. In the opposite order a reader that comes in between would read
// the old row and store it for the TTL.
//
// It deletes the copy even if the commit failed: perhaps only the reply was lost, and an unnecessary deletion costs one query. It also
// deletes the copy if the caller has left meanwhile. If Redis cannot be reached, the change was made nevertheless: the cache
// remembers the key, does not trust it in the meantime, and deletes it when Redis is back. So that is not an error of the change.
func (c *catalogue) change(ctx context.Context, id int64, write func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, c.db, write)
	_ = c.cache.Delete(context.WithoutCancel(ctx), id)
	return err
}

// createTables creates the tables in a new database.
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
