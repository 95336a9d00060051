package mayfly

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/keyform"
	"github.com/mayflycache/mayfly/internal/lease"
	"github.com/mayflycache/mayfly/jitter"
)

// Namespace says what one kind of cached value is. It is a plain value: fill it in, hand it to the constructor of a
// pattern, which checks it by [Namespace.Validate] and does no I/O. Name, Redis, Prefix and TTL are required;
// every other field's zero value is a default that works.
type Namespace[K comparable, V any] struct {
	// Name stands in Events, metrics and errors. Letters, digits, _, - and . only, so that it can be a label.
	Name string

	// Redis is where the values live: a single node, a cluster, a sentinel group.
	Redis redis.UniversalClient

	// Prefix begins every key: the full key is Prefix followed by the key's text, and nothing else. End it with a
	// separator, so that no other namespace's prefix begins with it. Two namespaces with the same Prefix share
	// their values. It must not lead into "mayfly:", where locks and leases live.
	Prefix string

	// Key writes a key as text, and two different keys must not have the same one. Nil: string kinds as they are,
	// types with MarshalText by that, integer kinds in decimal; any other type needs Key.
	Key func(K) string

	// TTL is how long a value lives, from [MinTTL] to [MaxTTL]. There is no default: nothing is stored without an
	// end, and how long a value may be wrong is for who knows the data to say.
	TTL time.Duration

	// Jitter moves each TTL by a random share. Zero moves nothing; [jitter.Default] is the guide's +-10 %.
	Jitter jitter.Spread

	// Codec turns values into bytes. Nil is [DefaultCodec].
	Codec Codec[V]

	// Local keeps copies of values in this process: see [OpenLocal]. Nil keeps none.
	Local *Local

	// Clone copies a value that the local tier hands to several callers. Nil hands out the value itself, which
	// nobody may then change.
	Clone func(V) V

	// Cost tells how many bytes a value takes in the local tier. Nil counts the bytes it had in Redis.
	Cost func(V) int

	// Observer sees what happens. Nil costs nothing.
	Observer Observer

	// Plain stores the codec's bytes and nothing else, for keys that programs in other languages read and write too.
	// What needs room for a header (stale values, early refresh by cost, remembered misses) is then refused by the
	// constructor that is asked for it.
	Plain bool
}

// Validate returns an error that names every field that cannot be used, its value, and what to do; nil if all can.
// Constructors call it, so there is rarely a need to.
func (n Namespace[K, V]) Validate() error {
	var wrong []error
	add := func(err error) {
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	add(checkName(n.Name))
	if isNil(n.Redis) {
		add(errors.New("Namespace.Redis is nil: give it a client, such as redis.NewClient"))
	}
	add(checkPrefix(n.Prefix))
	if _, err := keyform.Of(n.Key); err != nil {
		add(fmt.Errorf("Namespace.Key: %w", err))
	}
	add(CheckTTL("Namespace.TTL", n.TTL))
	if err := n.Jitter.Validate(); err != nil {
		add(fmt.Errorf("Namespace.%w", err))
	}
	if n.Local != nil {
		add(n.Local.serves(n.Redis, n.Prefix))
	}
	return errors.Join(wrong...)
}

// FullKey returns the name under which Redis holds key's value, to find it with redis-cli or to delete it from a
// program without mayfly.
func (n Namespace[K, V]) FullKey(key K) (string, error) {
	form, err := keyform.Of(n.Key)
	if err != nil {
		return "", fmt.Errorf("mayfly: Namespace.Key: %w", err)
	}
	full, err := form([]byte(n.Prefix), key)
	if err != nil {
		return "", fmt.Errorf("mayfly: namespace %q: %w", n.Name, err)
	}
	return string(full), nil
}

func checkName(name string) error {
	if name == "" {
		return errors.New("Namespace.Name is empty: metrics and errors need one, such as \"users\"")
	}
	for _, r := range name {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-', r == '.':
		default:
			return fmt.Errorf("Namespace.Name must hold only letters, digits, '_', '-' and '.', got %q", name)
		}
	}
	return nil
}

func checkPrefix(prefix string) error {
	switch {
	case prefix == "":
		return errors.New("Namespace.Prefix is empty: without one its keys could be anybody's; use one such as \"cache:user:\"")
	case lease.Collides(prefix):
		return fmt.Errorf("Namespace.Prefix %q leads into %q, where mayfly keeps its locks and leases: choose another", prefix, lease.Reserved)
	case len(prefix) >= keyform.MaxLen:
		return fmt.Errorf("Namespace.Prefix has %d bytes: Redis takes keys of %d, prefix included", len(prefix), keyform.MaxLen)
	}
	return nil
}

// isNil finds the nil pointer inside an interface too: var c *redis.Client handed over before it was made.
func isNil(client redis.UniversalClient) bool {
	if client == nil {
		return true
	}
	v := reflect.ValueOf(client)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
