package embedded_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

// The link uses TLS if requested, with the master's name verified, and InStep reports a wrong password or certificate.
func TestAMasterWithTLSAndAPassword(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	db := open(t, embedded.Options{Password: "sesame"})
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: web.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	go db.Serve(l)
	db.Client().Set(t.Context(), "k", "v", time.Hour)
	addr := l.Addr().String()
	for _, test := range []struct {
		name string
		o    embedded.Options
		says string
	}{
		{"right", embedded.Options{ReplicaOf: addr, MasterPassword: "sesame", MasterTLS: &tls.Config{RootCAs: roots}}, ""},
		{"no password", embedded.Options{ReplicaOf: addr, MasterTLS: &tls.Config{RootCAs: roots}}, "the master requires a password"},
		{"a wrong password", embedded.Options{ReplicaOf: addr, MasterPassword: "open", MasterTLS: &tls.Config{RootCAs: roots}}, "WRONGPASS"},
		{"an unknown certificate", embedded.Options{ReplicaOf: addr, MasterPassword: "sesame", MasterTLS: &tls.Config{}}, "certificate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			replica := open(t, test.o)
			inStep := func(within time.Duration) error {
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				return replica.InStep(ctx)
			}
			if test.says == "" {
				if err := inStep(time.Minute); err != nil || replica.Client().Get(t.Context(), "k").Val() != "v" {
					t.Errorf("not in step: %v", err)
				}
				return
			}
			expect.Eventually(t, "InStep says "+test.says, func() bool {
				err := inStep(20 * time.Millisecond)
				return errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), test.says)
			})
			if err := replica.Promote(); err == nil || !strings.Contains(err.Error(), "nothing has come from "+addr) {
				t.Errorf("Promote: %v", err)
			}
		})
	}
}

func TestWrongMastersNameTheField(t *testing.T) {
	for _, test := range []struct {
		o    embedded.Options
		says string
	}{
		{embedded.Options{ReplicaOf: "here"}, "embedded: Options.ReplicaOf must be host:port, got \"here\""},
		{embedded.Options{ReplicaOf: ":6379"}, "embedded: Options.ReplicaOf must name a host"},
		{embedded.Options{ReplicaOf: "x:y"}, "embedded: Options.ReplicaOf must be host:port"},
		{embedded.Options{MasterPassword: "p"}, "embedded: Options.ReplicaOf is empty"},
		{embedded.Options{ReplicaOf: "x:1", MasterUsername: "u"}, "embedded: Options.MasterUsername is set, but no MasterPassword"},
	} {
		if _, err := embedded.Open(test.o); err == nil || !strings.HasPrefix(err.Error(), test.says) {
			t.Errorf("%+v: %v", test.o, err)
		}
	}
	db := open(t, embedded.Options{})
	if err := db.Promote(); err == nil || !strings.Contains(err.Error(), "follows no master") {
		t.Errorf("Promote of a master: %v", err)
	}
	if err := db.InStep(t.Context()); err == nil {
		t.Error("a master is in step with nobody")
	}
	if s := db.Replication(); s.Of != "" || s.InStep || s.Problem != nil {
		t.Errorf("%+v", s)
	}
}

func ExampleDB_Promote() {
	ctx := context.Background()
	first, err := embedded.Open(embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer first.Close(ctx)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go first.Serve(l)
	first.Client().Set(ctx, "session:7", "mary", time.Hour)

	second, err := embedded.Open(embedded.Options{ReplicaOf: l.Addr().String()})
	if err != nil {
		panic(err)
	}
	defer second.Close(ctx)
	if err := second.InStep(ctx); err != nil {
		panic(err)
	}
	fmt.Println(second.Client().Get(ctx, "session:7").Val(), second.Client().Set(ctx, "k", "v", time.Hour).Err())
	if err := second.Promote(); err != nil {
		panic(err)
	}
	fmt.Println(second.Client().Set(ctx, "k", "v", time.Hour).Err())
	// Output:
	// mary READONLY You can't write against a read only replica.
	// <nil>
}
