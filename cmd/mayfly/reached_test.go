package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// A proxy whose INFO has no headings is a Redis like others.
func TestInfoWithoutHeadings(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go proxied(conn)
		}
	}()
	r := &reached{url: "redis://" + l.Addr().String()}
	if err := r.open(t.Context()); err != nil || r.version != "Redis 7.2.4" || !r.noFields {
		t.Errorf("%+v, %v", r, err)
	}
}

// proxied answers INFO, and else that it does not know the command.
func proxied(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		var parts int
		if _, err := fmt.Fscanf(in, "*%d\r\n", &parts); err != nil {
			return
		}
		var command string
		for i := range parts {
			var size int
			fmt.Fscanf(in, "$%d\r\n", &size)
			text := make([]byte, size+2)
			if _, err := io.ReadFull(in, text); err != nil {
				return
			}
			if i == 0 {
				command = strings.ToLower(string(text[:size]))
			}
		}
		const info = "redis_version:7.2.4\r\nrun_id:1\r\n"
		if command == "info" {
			fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(info), info)
		} else {
			fmt.Fprintf(conn, "-ERR unknown command '%s'\r\n", command)
		}
	}
}
