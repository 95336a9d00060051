package httppeers

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// sessions is a sliding.Store as a store of scs: the TTL is for how long a session may be idle, MaxAge is scs's Lifetime.
type sessions struct {
	*sliding.Store[string, []byte]
}

func (s sessions) FindCtx(ctx context.Context, token string) (b []byte, found bool, err error) {
	if b, err = s.Store.Get(ctx, token); errors.Is(err, mayfly.ErrNotFound) {
		return nil, false, nil
	}
	return b, err == nil, err
}
func (s sessions) CommitCtx(ctx context.Context, token string, b []byte, _ time.Time) error {
	return s.Store.Set(ctx, token, b)
}
func (s sessions) DeleteCtx(ctx context.Context, token string) error {
	return s.Store.Delete(ctx, token)
}

// The older half of scs's interface, which it does not call where there is the other.
func (s sessions) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}
func (s sessions) Commit(token string, b []byte, end time.Time) error {
	return s.CommitCtx(context.Background(), token, b, end)
}
func (s sessions) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

const idle, lifetime = 20 * time.Minute, 12 * time.Hour

// browser keeps the cookie of a site.
type browser struct {
	site   http.Handler
	cookie *http.Cookie
}

func (b *browser) get(path string) string {
	r := httptest.NewRequest("GET", path, nil)
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	w := httptest.NewRecorder()
	b.site.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		b.cookie = c
	}
	return w.Body.String()
}

func TestASlidingStoreUnderSCS(t *testing.T) {
	m := scs.New() // outside: it starts a goroutine that never ends
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		store := mayfly.Must(sliding.New(mayfly.Namespace[string, []byte]{Name: "sessions", Redis: srv.Client(), Prefix: "session:", TTL: idle},
			sliding.Options{MaxAge: lifetime}))
		m.Store, m.Lifetime = sessions{store}, lifetime
		m.ErrorFunc = func(_ http.ResponseWriter, _ *http.Request, err error) { t.Error(err) }
		mux := http.NewServeMux()
		mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
			if err := m.RenewToken(r.Context()); err != nil { // no token from before the login is worth anything after it
				t.Error(err)
			}
			m.Put(r.Context(), "user", "ada")
		})
		mux.HandleFunc("/who", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(m.GetString(r.Context(), "user"))) })
		mux.HandleFunc("/look", func(w http.ResponseWriter, r *http.Request) { m.Put(r.Context(), "looked", true) })
		mux.HandleFunc("/logout", func(w http.ResponseWriter, r *http.Request) { m.Destroy(r.Context()) })
		b := &browser{site: m.LoadAndSave(mux)}
		who := func(want string) {
			t.Helper()
			if got := b.get("/who"); got != want {
				t.Errorf("/who says %q, want %q", got, want)
			}
		}
		b.get("/look")
		before := b.cookie
		b.get("/login")
		who("ada")
		if stolen := (&browser{b.site, before}); before.Value == b.cookie.Value || stolen.get("/who") != "" {
			t.Error("the token from before the login still works")
		}
		for begun := time.Now(); time.Since(begun) < lifetime-idle; { // used, it lives
			time.Sleep(idle - time.Millisecond)
			who("ada")
		}
		time.Sleep(idle + time.Millisecond) // idle, or past its lifetime: it ends
		who("")

		b.get("/login")
		time.Sleep(idle + time.Millisecond)
		who("")

		b.get("/login")
		gone := b.cookie
		b.get("/logout")
		if kept := (&browser{b.site, gone}); kept.get("/who") != "" {
			t.Error("a session that was destroyed is back")
		}
	})
}
