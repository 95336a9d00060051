package main

import (
	"context"
	"fmt"
	"time"
)

// promote makes the target a master while writes to the source are held back: a write to the source after the promotion would be lost.
func (h *handover) promote(ctx context.Context) error {
	// Pause again, so that the pause lasts until the source is a replica. If the first one has ended, the target first gets what was written since.
	if err := h.from.Do(ctx, "CLIENT", "PAUSE", h.pause.Milliseconds(), "WRITE").Err(); err != nil {
		return fmt.Errorf("CLIENT PAUSE at the source: %w", err)
	}
	began := time.Now()
	err := h.poll(ctx, h.pause/4, func(ctx context.Context) (bool, error) {
		n, err := h.behind(ctx)
		return n <= 0, err
	}, "the target did not receive what was written since the comparison")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.pause/2)
	defer cancel()
	h.reached = "the target was told REPLICAOF NO ONE, but it is unknown whether it obeyed: look at its ROLE. Everything that your program wrote is also at the source"
	if err := h.to.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		return fmt.Errorf("REPLICAOF NO ONE at the target: %w", err)
	}
	to, err := h.ask(ctx, h.to, "target")
	if err != nil {
		return err
	}
	if role := field(to.info, "role"); role != "master" {
		return fmt.Errorf("the target is a %s after REPLICAOF NO ONE", role)
	}
	if time.Since(began) > h.pause {
		return fmt.Errorf("the promotion took longer than the pause of %v", h.pause)
	}
	h.promoted = true
	return nil
}

// linkWithin is how long the source may take to connect to the target. It is a variable so that a test can shorten it.
var linkWithin = 5 * time.Second

// finish makes the source a replica of the target, so that no write is lost there, and prints what to change. An error concerns the source only:
// the data is at the target.
func (h *handover) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	h.restore(ctx)
	addr := h.back
	if addr == "" {
		addr = h.toOptions.Addr
	}
	var failed error
	if err := follow(ctx, h.from, addr, h.toOptions); err != nil {
		h.say("the target is promoted")
		failed = fmt.Errorf("the source cannot follow it (%w): its writes wait for %v and then continue THERE, where nobody will find them", err, h.pause)
	} else {
		h.unpause(ctx)
		failed = h.linked(ctx, addr)
	}
	h.say("from now on your program's line is:\n\n\trdb := redis.NewClient(&redis.Options{Addr: %q})\n", h.toOptions.Addr)
	h.say("stop the source once nothing uses it any more")
	if failed != nil {
		return exit{fmt.Errorf("handover: done, but %w", failed), exitPartial}
	}
	return nil
}

// linked waits until the source has connected to addr, its new master. A server that answers OK to REPLICAOF has only noted the address.
func (h *handover) linked(ctx context.Context, addr string) error {
	syncs := false
	err := h.poll(ctx, linkWithin, func(ctx context.Context) (bool, error) {
		s, err := h.ask(ctx, h.from, "source")
		if err != nil {
			return false, err
		}
		syncs = field(s.info, "master_sync_in_progress") == "1"
		return field(s.info, "master_link_status") == "up", nil
	}, "the source cannot reach "+addr+": its reads stay as they are; send it REPLICAOF with the right address")
	switch {
	case err == nil:
		h.say("the target is promoted. The source follows it now: writes there are refused with READONLY, reads see what the target has")
	case syncs:
		h.say("the target is promoted. The source is being sent its data: writes there are refused with READONLY, reads are old until it has them")
		return nil
	default:
		h.say("the target is promoted. Writes to the source are refused with READONLY")
	}
	return err
}

// restore gives the target back the credentials it had for its masters.
func (h *handover) restore(ctx context.Context) {
	for name, value := range h.before {
		h.to.ConfigSet(ctx, name, value)
	}
}

func (h *handover) unpause(ctx context.Context) error {
	if err := h.from.Do(ctx, "CLIENT", "UNPAUSE").Err(); err != nil {
		return fmt.Errorf("CLIENT UNPAUSE at the source: %w: its writes go on by themselves within %v", err, h.pause)
	}
	return nil
}

// giveUp detaches the target, lets the source take writes again, and describes the state of both.
func (h *handover) giveUp(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if !h.attached {
		return "Nothing was changed"
	}
	text := "So far: " + h.reached + ". "
	if h.held {
		if err := h.unpause(ctx); err != nil {
			return text + err.Error()
		}
	}
	h.restore(ctx)
	text += "The source takes writes, as before. "
	if err := h.to.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		return text + fmt.Sprintf("The target could not be told to stop following it (%v): send it REPLICAOF NO ONE", err)
	}
	text += "The target no longer follows it, and "
	if to, err := h.ask(ctx, h.to, "target"); err == nil && to.total == 0 {
		return text + "holds no keys"
	}
	return text + "keeps what it has received: give --overwrite next time"
}
