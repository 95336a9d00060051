package realserver

import "testing"

func TestSentinel(t *testing.T) {
	eachFlavour(t, func(t *testing.T, o Options) {
		s := StartSentinel(t, 2, o)
		if n, w := len(s.Nodes()), len(s.Sentinels()); n != 3 || w != 3 || !flavours[o.Flavour].fits(s.Nodes()[0].Version()) {
			t.Errorf("%d nodes, %d sentinels of %v, want 3 and 3 of %v", n, w, s.Nodes()[0].Version(), o.Flavour)
		}
		master := func(string) *Server { return s.Master() }
		first := s.Master()
		if first != s.Nodes()[0] {
			t.Errorf("the master is %s, want the first node", first.Addr())
		}
		holds(t, master)

		second := s.Failover()
		if second == first || s.Master() != second {
			t.Errorf("after Failover the master is %s, was %s", s.Master().Addr(), first.Addr())
		}
		holds(t, master)

		if o.Flavour != Redis8 {
			return // the others have shown that they start and fail over
		}
		s.Sentinels()[0].Kill() // two are a quorum
		second.Kill()
		third := s.Settle()
		if third == second {
			t.Error("the killed master is still the master")
		}
		second.Restart()
		third.Pause()
		if s.Settle() == third {
			t.Error("the paused master is still the master")
		}
		holds(t, master)
	})
}
