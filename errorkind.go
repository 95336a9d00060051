package mayfly

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// replies are the kinds of Redis's error replies, by their first word.
var replies = map[string]string{
	"OOM": "oom", "READONLY": "readonly", "LOADING": "loading", "NOPERM": "auth", "NOAUTH": "auth", "WRONGPASS": "auth", "MOVED": "cluster",
	"ASK": "cluster", "CLUSTERDOWN": "cluster", "TRYAGAIN": "cluster", "CROSSSLOT": "cluster", "MASTERDOWN": "replication", "NOREPLICAS": "replication",
	"WRONGTYPE": "wrong_type", "MISCONF": "misconf", "BUSY": "busy", "NOSCRIPT": "script",
}

// ErrorKind classifies Err where it is an error of Redis, however it is wrapped: one of a few words, fit for a label, such as "timeout",
// "network", "oom" or "auth". It is "other" for nil and for errors that are not from Redis.
func (e Event) ErrorKind() string {
	err := e.Err
	var reply redis.Error
	var network net.Error
	switch {
	case err == nil:
		return "other"
	case errors.Is(err, ErrCrowded):
		return "crowded"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "network"
	case errors.Is(err, redis.ErrClosed):
		return "closed"
	case errors.As(err, &reply):
		word, _, _ := strings.Cut(reply.Error(), " ")
		if kind, ok := replies[word]; ok {
			return kind
		}
		return "reply"
	}
	return "other"
}
