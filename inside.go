package mayfly

import (
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/localsync"
)

// The patterns reach the internals of this package's types by these functions, which users cannot name; methods would be part of the
// API.
func init() {
	localsync.Of = func(local any) *localsync.Local { return local.(*Local).local }
	admission.Of = func(origin any) *admission.Limiter { return origin.(*Origin).limiter }
	flight.Public = func(p *flight.PanicError) error { return (*PanicError)(p) }
}
