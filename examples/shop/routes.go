package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
)

func routes(c *catalogue) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /products/{id}", answer(func(r *http.Request, id int64) (any, error) {
		return c.product(r.Context(), id)
	}))
	mux.HandleFunc("PUT /products/{id}/price", answer(func(r *http.Request, id int64) (any, error) {
		var body struct{ Cents int64 }
		if err := read(r, &body); err != nil || body.Cents <= 0 {
			return nil, errBadRequest
		}
		return nil, c.reprice(r.Context(), id, body.Cents)
	}))
	mux.HandleFunc("POST /products/{id}/orders", answer(func(r *http.Request, id int64) (any, error) {
		var body struct{ Quantity int }
		if err := read(r, &body); err != nil || body.Quantity <= 0 {
			return nil, errBadRequest
		}
		left, err := c.order(r.Context(), id, body.Quantity)
		return map[string]int{"left": left}, err
	}))
	return mux
}

var errBadRequest = errors.New("bad request")

func read(r *http.Request, body any) error {
	return json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<10)).Decode(body)
}

// answer makes a handler from a route's function of a product's number.
func answer(do func(r *http.Request, id int64) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if err != nil {
			err = errBadRequest
		}
		var body any
		if err == nil {
			body, err = do(r, id)
		}
		switch {
		case errors.Is(err, errBadRequest):
			http.Error(w, "bad request", http.StatusBadRequest)
		case errors.Is(err, errUnknown):
			http.Error(w, "no such product", http.StatusNotFound)
		case errors.Is(err, errSoldOut):
			http.Error(w, "not enough in stock", http.StatusConflict)
		case err != nil: // the database: the shop does not depend on Redis
			http.Error(w, "try again later", http.StatusServiceUnavailable)
		case body == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(body)
		}
	}
}
