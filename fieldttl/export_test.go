package fieldttl

// Apart makes a store write as it does with Redis 7.4, on a server that is newer.
func (s *Store[K, T]) Apart() { s.server.found.Store(&finding{way: apart}) }
