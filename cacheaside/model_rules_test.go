package cacheaside_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
)

// deletes does one of the things that end the right to fill key.
func (m *model) deletes(key int, do func()) {
	r := &m.keys[key]
	m.mu.Lock()
	r.deleting++
	r.disturbed = true
	m.mu.Unlock()
	do()
	m.mu.Lock()
	defer m.mu.Unlock()
	r.deleting--
	r.disturbed, r.deleted = true, time.Now()
}

// write commits a version, and then deletes or sets the key.
func (m *model) write(process, key int, set bool) {
	r := &m.keys[key]
	r.writing <- struct{}{} // no mutex: a bubble's time stands still while somebody waits for one
	defer func() { <-r.writing }()
	m.mu.Lock()
	r.versions = append(r.versions, time.Now())
	version := len(r.versions)
	set = set && !m.broken // a hung server may do it later, after others' Deletes: the documented price of Set
	m.mu.Unlock()
	var err error
	m.deletes(key, func() {
		if set {
			err = m.caches[process].Set(context.Background(), key, version)
		} else {
			err = m.caches[process].Delete(context.Background(), key)
		}
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil && set:
		r.unsure = true
	case err == nil:
		r.confirmed = max(r.confirmed, version)
		r.own[process] = max(r.own[process], version)
	}
}

// get gets keys and checks the values.
func (m *model) get(process int, keys []int, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	atLeast := map[int]int{}
	m.mu.Lock()
	for _, key := range keys {
		atLeast[key] = m.keys[key].own[process]
	}
	m.mu.Unlock()
	c := m.caches[process]
	got, errs := map[int]int{}, map[int]error{}
	if len(keys) == 1 {
		v, err := c.Get(ctx, keys[0])
		if errs[keys[0]] = err; err == nil {
			got[keys[0]] = v
		}
	} else {
		var err error
		got, err = c.GetMany(ctx, keys)
		if many := (*cacheaside.ManyError[int])(nil); errors.As(err, &many) {
			errs = many.Errs
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		version, ok := got[key]
		err := errs[key]
		switch {
		case err != nil && !errors.Is(err, errModel) && !errors.Is(err, mayfly.ErrFailedElsewhere) && !errors.Is(err, mayfly.ErrNotFound) && !errors.Is(err, ctx.Err()) &&
			!strings.Contains(err.Error(), "the load failed lately"):
			m.wrong("Get(%d): %v", key, err)
		case ok:
			m.checkVersion(process, key, version, atLeast[key])
		case err == nil || errors.Is(err, mayfly.ErrNotFound):
			m.checkVersion(process, key, 0, atLeast[key])
		}
	}
}

// unsure notes that a failed Set may still be executed, or be seen; m.mu is held.
func (m *model) unsure(key int) bool {
	r := &m.keys[key]
	r.unsure = r.unsure && (m.broken || m.open > 0 || time.Since(m.faulted) < 3*time.Second)
	return r.unsure
}

func (m *model) checkVersion(process, key, version, atLeast int) {
	r := &m.keys[key]
	switch {
	case version > len(r.versions):
		m.wrong("key %d: version %d was never committed", key, version)
	case version < atLeast && !m.unsure(key):
		m.wrong("process %d, key %d: version %d after Delete for version %d", process, key, version, atLeast)
	case version < len(r.versions):
		const load = 20 * time.Second // including its waits
		if age := time.Since(r.versions[version]); age > modelTTL+max(m.o.StaleWhile, m.o.StaleIfError)+m.o.MissTTL+load {
			m.wrong("key %d: version %d was replaced %v ago", key, version, age)
		}
	}
}

// load is the loader: it reads, and then takes its time.
func (m *model) load(ctx context.Context, key int) (int, error) {
	m.mu.Lock()
	r := &m.keys[key]
	version := len(r.versions)
	if r.running++; r.running == 1 {
		r.since = time.Now()
		r.disturbed = r.deleting > 0 || time.Since(r.deleted) <= 150*time.Millisecond // the load may have been claimed, or decided, that long before it began
	} else if m.once && !r.disturbed && !m.broken && m.open == 0 && r.since.Sub(m.faulted) > 3*time.Second {
		m.wrong("key %d: %d loads at once", key, r.running)
	}
	m.loads++
	takes, fails := time.Duration(m.dice.ExpFloat64()*200)*time.Millisecond, m.dice.IntN(20) == 0
	panics := m.dice.IntN(100) == 0
	m.mu.Unlock()
	pass(min(takes, 5*time.Second))
	m.mu.Lock()
	defer m.mu.Unlock()
	r.running--
	switch {
	case panics:
		panic(errModel)
	case fails:
		return 0, errModel
	case version == 0:
		return 0, mayfly.ErrNotFound
	}
	return version, nil
}

func (m *model) loadMany(ctx context.Context, keys []int) (map[int]int, error) {
	found, failed := map[int]int{}, error(nil)
	var mu sync.Mutex
	keep := func(key, version int, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			found[key] = version
		case !errors.Is(err, mayfly.ErrNotFound):
			failed = err
		}
	}
	var all sync.WaitGroup
	for _, key := range keys {
		all.Go(func() {
			version, err := 0, errModel // of one that panics
			defer func() { recover(); keep(key, version, err) }()
			version, err = m.load(ctx, key)
		})
	}
	all.Wait()
	return found, failed
}

// stored checks what Redis holds, with a client that no fault affects.
func (m *model) stored() {
	for key := range modelKeys {
		m.mu.Lock()
		confirmed, skip := m.keys[key].confirmed, m.broken || m.unsure(key)
		m.mu.Unlock()
		if skip {
			continue
		}
		e, ok, err := m.caches[0].Lookup(context.Background(), key)
		if err != nil && !errors.Is(err, mayfly.ErrNotFound) {
			continue // its breaker is open
		}
		if err != nil {
			ok = true
		}
		if ok && e.Value < confirmed {
			m.t.Errorf("key %d: version %d is stored after Delete for version %d", key, e.Value, confirmed)
		}
	}
	for _, name := range m.rdb.Keys(context.Background(), "*").Val() {
		if ttl := m.rdb.PTTL(context.Background(), name).Val(); ttl == -1 {
			m.t.Errorf("%.80q has no end", name)
		}
	}
}

// quiet checks what must hold when everything has come to rest.
func (m *model) quiet() {
	for key := range modelKeys {
		version := len(m.keys[key].versions)
		for i, c := range m.caches {
			e, ok, err := c.Lookup(context.Background(), key)
			for range 100 { // a client finds out about its cut connections one by one
				if err == nil || errors.Is(err, mayfly.ErrNotFound) {
					break
				}
				pass(100 * time.Millisecond)
				e, ok, err = c.Lookup(context.Background(), key)
			}
			switch {
			case errors.Is(err, mayfly.ErrNotFound) && version > 0, err == nil && ok && e.Value != version:
				m.wrong("when all is quiet process %d finds version %d of key %d (%v), the database has %d", i, e.Value, key, err, version)
			case err != nil && !errors.Is(err, mayfly.ErrNotFound):
				m.wrong("when all is quiet Lookup(%d): %v", key, err)
			}
		}
	}
}
