package ttlaudit

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"slices"
	"time"
)

// auditState is everything that an audit knows: what it has counted, and where it is.
type auditState struct {
	Version int
	Terms   string
	Report  // what was counted so far. Took is that of the parts before this one; derived figures are added at the end
	Servers []*walked
	Recent  recent
	Forest  *forest
}

// walked is a server, and how far it was walked.
type walked struct {
	Addr    string `json:"addr"`
	Keys    int64  `json:"keys"`
	Of      int64  `json:"of"`
	Covered bool   `json:"covered"`
	Error   string `json:"error,omitempty"`

	Life   string // its run ID; empty: it did not tell
	Quota  int64  // how many keys to look at; 0: all
	Cursor uint64
	Done   bool
	Anew   bool // it was restarted while it was walked, which was noticed at the end: it is not known which keys were missed
}

// termsOf returns the options that an audit and its resumption must share.
func termsOf(o Options) string {
	return fmt.Sprintf("{Match:%q Keys:%d Sizes:%v TooLong:%v Largest:%d}", o.Match, o.Keys, o.Sizes, o.TooLong, o.Largest)
}

// version of auditState. Any other is refused.
const version = 2

// mostPatterns bounds how many patterns an audit keeps.
const mostPatterns = 2000

func newState(o Options) auditState {
	r := Report{Began: time.Now(), Match: o.Match, Longest: o.TooLong, Types: map[string]int64{}}
	r.TTLs = slices.Grow(r.TTLs, len(bounds)+1)[:len(bounds)+1] // the last is what is longer
	for i, b := range bounds {
		r.TTLs[i].UpTo = b
	}
	return auditState{Version: version, Terms: termsOf(o), Report: r, Forest: newForest(mostPatterns)}
}

var errCheckpoint = errors.New("the state could not be saved")

// checkpoint passes the state to Options.Checkpoint.
func (a *audit) checkpoint() error {
	if a.opt.Checkpoint == nil {
		return nil
	}
	s := a.auditState
	s.Took = a.took()
	s.Recent = a.walker.skipped
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(s)
	if err == nil {
		err = a.opt.Checkpoint(b.Bytes())
	}
	a.saved = time.Now()
	if err != nil {
		return fmt.Errorf("%w: %w", errCheckpoint, err)
	}
	return nil
}

// resume takes up the state of Options.Resume. The position in a server that was only partly walked is valid only if that server has not
// been restarted since.
func (a *audit) resume(all []*node) error {
	const anew = "begin anew, without Options.Resume"
	if err := gob.NewDecoder(bytes.NewReader(a.opt.Resume)).Decode(&a.auditState); err != nil {
		return fmt.Errorf("Options.Resume is not the state of an audit (%v): %s", err, anew)
	}
	if a.Version != version || a.Forest == nil || a.Types == nil || len(a.TTLs) != len(bounds)+1 {
		return fmt.Errorf("Options.Resume is the state of another version: %s", anew)
	}
	if now := termsOf(a.opt); a.Terms != now {
		return fmt.Errorf("Options.Resume is the state of an audit with other options, %s and not %s: %s", a.Terms, now, anew)
	}
	if !slices.EqualFunc(a.Servers, all, func(s *walked, n *node) bool { return s.Addr == n.addr }) {
		return fmt.Errorf("Options.Resume is the state of an audit of other servers: %s", anew)
	}
	for i, s := range a.Servers {
		switch {
		case s.Anew:
			return fmt.Errorf("%s was restarted while it was walked: %s", s.Addr, anew)
		case s.Done:
		case s.Cursor == 0:
			s.Life = all[i].life
		case s.Life == "":
			return fmt.Errorf("%s was only partly walked and does not allow INFO, so it is not known whether it was restarted: %s", s.Addr, anew)
		case all[i].life != "" && all[i].life != s.Life:
			return fmt.Errorf("%s was restarted since: %s", s.Addr, anew)
		}
	}
	return nil
}
