package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/dashboard"
	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/shop"
)

const aboutDemo = `Demo runs a small shop: product pages, carts and logins, served by several processes over a slow database, and simulated shoppers. It
prints the address of a dashboard that shows the load on the database live, with a switch for each feature of mayfly and buttons that
cause trouble. The shop starts with caching by hand, as the TTL guide writes it: press the red button, switch mayfly on, and press it again.

The button Empty Redis empties the embedded Redis; on a Redis named by --redis it removes only the demo's own keys. Then, for a minute, a
crowd asks for 2,000 articles, four times what the database can answer: switch the admission of loads off and on to compare. Slow database makes
queries take four times as long for ten seconds, with a crowd that asks for what no cache has.

The shop's data outlives it: end it with Ctrl-C and run it again within a minute, and the carts and logins that have not expired
are still there.

With --load there is no dashboard: the shop runs by hand for the first half of that time and with mayfly for the second. Everything expires
once in the middle of each half, and the figures before, during and after that are printed at the end; --report writes them and the charts to a
page. Ctrl-C ends the run early and prints the figures so far.`

// demo is mayfly demo.
func demo(ctx context.Context, args []string, out io.Writer) error {
	set := panel.Default
	var load, runs time.Duration
	var addr, report string
	var r reached
	flags := newFlags("demo", aboutDemo)
	flags.StringVar(&addr, "addr", "127.0.0.1:8379", "`host:port` of the dashboard")
	flags.DurationVar(&load, "load", 0, "run for this long without the dashboard, and print the figures")
	flags.DurationVar(&runs, "for", 0, "stop after this long")
	flags.StringVar(&report, "report", "", "write the charts to this `file`, as a self-contained page")
	flags.BoolVar(&set.Mayfly, "mayfly", false, "start with mayfly on")
	flags.IntVar(&set.Shoppers, "shoppers", set.Shoppers, "the `number` of shoppers, 0 to 2000")
	flags.DurationVar(&set.Pause, "pause", set.Pause, "average pause of a shopper between two pages")
	flags.DurationVar(&set.Query, "query", set.Query, "how long the database takes for a query")
	flags.IntVar(&set.Connections, "connections", set.Connections, "the `number` of queries the database answers at once")
	flags.DurationVar(&set.TTL, "ttl", set.TTL, "how long products are cached")
	flags.IntVar(&set.Processes, "processes", set.Processes, "the `number` of processes that serve the shop, 1 to 12")
	r.flag(flags)
	flags.StringVar(&r.dir, "dir", "", "the `directory` where the embedded Redis keeps its data, or none to keep nothing\n(default mayfly/demo in $XDG_STATE_HOME or ~/.local/state; with --load: none)")
	if err := flags.parse(args, out); err != nil {
		return err
	}
	if err := set.Validate(); err != nil {
		return usage("demo", "%s", asOne(err))
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return usage("demo", "--addr must be host:port: %v", err)
	}
	for name, d := range map[string]time.Duration{"load": load, "for": runs} {
		if given(flags, name) && d < time.Second {
			return usage("demo", "--%s must be a second or more, got %v", name, d)
		}
	}
	if load > 0 && runs > 0 {
		return usage("demo", "--load already sets the duration: leave out --for")
	}
	if err := hasRoom("demo", report); err != nil {
		return err
	}
	if r.url != "" && r.dir != "" {
		return usage("demo", "a Redis named by --redis keeps its own data: leave out --dir")
	}
	if err := r.openKept(ctx, load > 0, out); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer r.close(context.WithoutCancel(ctx))

	var listener net.Listener
	if load == 0 {
		var err error
		if listener, err = net.Listen("tcp", addr); errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("demo: %s is taken: choose another with --addr, or port 0 for any that is free", addr)
		} else if err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		defer listener.Close()
	}
	observer, figures, err := r.metrics()
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	s, err := shop.Open(ctx, shop.Options{Redis: r.options, Settings: set, NoFields: r.noFields, Observer: observer, Keep: r.dir != "", Own: r.db != nil})
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	host, _, _ := net.SplitHostPort(addr)
	o := dashboard.Options{Redis: r.name(), Until: ctx, Host: host, Metrics: figures}
	recorder := dashboard.NewRecorder(s)
	recording, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { recorder.Run(recording) })
	if load > 0 {
		fmt.Fprintf(out, "%d shoppers, %d processes, %s; the database takes %v a query, %d at a time; everything expires twice\n\n",
			set.Shoppers, set.Processes, r.name(), set.Query, set.Connections)
		err = recorder.Tour(ctx, load)
	} else {
		if runs > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, runs)
			defer cancel()
			o.Until = ctx
		}
		fmt.Fprintf(out, "mayfly: the shop is open: http://%s (Ctrl-C closes it)\n", shownAddr(listener.Addr()))
		err = serveUntil(ctx, listener, dashboard.Handler(s, recorder, o))
		fmt.Fprintln(out)
	}
	stop()
	running.Wait()
	recorder.Summary(out)
	err = errors.Join(err, written("demo", report, out, func(w io.Writer) error { return dashboard.Report(w, s, recorder, o) }))
	return errors.Join(err, s.Close(context.WithoutCancel(ctx)))
}

// serveUntil serves until ctx ends.
func serveUntil(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if server.Shutdown(stop) != nil {
		server.Close()
	}
	return nil
}

// shownAddr returns an address that a browser can open: localhost for a listener on all interfaces.
func shownAddr(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); err == nil && ip.IsUnspecified() {
		return net.JoinHostPort("localhost", port)
	}
	return a.String()
}

// hasRoom checks before the run that the file's directory exists.
func hasRoom(command, file string) error {
	if file == "" {
		return nil
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return usage(command, "there is no directory %q to write %s to", filepath.Dir(file), filepath.Base(file))
	}
	return nil
}
