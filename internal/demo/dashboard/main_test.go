package dashboard_test

import "github.com/redis/go-redis/v9/logging"

func init() { logging.Disable() } // go-redis tells of each Redis that these tests kill
