// Package prelude has the imports and names that the documents' blocks of Go may use without declaring them.
package prelude

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/fieldttl"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/jitter"
	"github.com/mayflycache/mayfly/metrics"
	"github.com/mayflycache/mayfly/navsession"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
	"github.com/mayflycache/mayfly/ttlaudit"
	"github.com/mayflycache/mayfly/ttlguard"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// The program around a block.
var (
	ctx context.Context
	err error
	t   *testing.T
	w   http.ResponseWriter
	r   *http.Request

	rdb    redis.UniversalClient
	db     Database
	origin Database
	users  mayfly.Namespace[int64, User]
	id     string
	userID int64
	user   User
	mux    *http.ServeMux
	sqlDB  *sql.DB
	site   http.Handler
)

type User struct {
	ID   int64
	Name string
}

type Session struct {
	UserID int64
	Theme  string
}

// Database is the origin.
type Database struct{}

func (Database) QueryUser(ctx context.Context, id int64) (User, error)               { return User{}, nil }
func (Database) QueryUsers(ctx context.Context, ids []int64) (map[int64]User, error) { return nil, nil }
func (Database) UpdateUser(ctx context.Context, u User) error                        { return nil }
