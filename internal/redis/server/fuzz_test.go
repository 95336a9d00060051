package server_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

// Whatever a client sends, the server neither panics nor hangs, and it sends only whole replies. In the bubble a hang is a panic.
func FuzzConnection(f *testing.F) {
	for _, seed := range []string{
		"*-10\r\n*1\r\n$4\r\nPING\r\n",
		"*4\r\n$8\r\nSETRANGE\r\n$1\r\nk\r\n$19\r\n9223372036854775807\r\n$1\r\nx\r\n",
		"SET k v PX 10\r\nGET k\r\nBLPOP l 0\r\nPING\r\n",
		"HELLO 3\r\nCLIENT TRACKING ON\r\nGET k\r\nSET k v\r\nSUBSCRIBE c\r\nPUBLISH c m\r\nQUIT\r\n",
		"MULTI\r\nSET k v\r\nEXEC\r\nHSET h f v\r\nHRANDFIELD h -9223372036854775808 WITHVALUES\r\nZADD z 1 m\r\nZRANDMEMBER z -9223372036854775807 WITHSCORES\r\n",
		"CLIENT REPLY SKIP\r\nPING\r\nCLIENT REPLY OFF\r\nPING\r\nCLIENT REPLY ON\r\n",
		"SET \"a\\x00\" 'b'\r\nKEYS *\r\n\"\r\n",
	} {
		f.Add(seed, uint8(7))
	}
	f.Fuzz(func(t *testing.T, stream string, size uint8) {
		if lower := strings.ToLower(stream); strings.Contains(lower, "eval") || strings.Contains(lower, "debug") {
			t.Skip("a script may run for ever and DEBUG SLEEP last as long, as in Redis")
		}
		synctest.Test(t, func(t *testing.T) {
			s := start(t, engine.Options{Seed: 1}, server.Options{})
			conn, err := s.Dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go func() {
				for rest := stream; rest != ""; {
					n := min(len(rest), int(size)+1)
					io.WriteString(conn, rest[:n])
					rest = rest[n:]
				}
				conn.(interface{ CloseWrite() error }).CloseWrite()
			}()
			replies := resp.NewReader(conn)
			for {
				if _, err := replies.Read(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			dial(t, s).want("PING", "PONG")
		})
	})
}
