package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
)

// A receiver verifies the body as it came, and takes each id once.
func ExampleVerify() {
	secret := webhook.NewSecret()
	seen := map[string]bool{} // a real one keeps it in its database, in the transaction that does the work
	receive := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "cannot read", http.StatusBadRequest)
			return
		}
		if err := webhook.Verify(r.Header, body, time.Now(), secret); err != nil {
			http.Error(w, "not signed", http.StatusUnauthorized)
			return
		}
		if id := r.Header.Get("webhook-id"); !seen[id] {
			seen[id] = true
			var event struct {
				Type string
				Data struct{ Subject struct{ ID string } }
			}
			if err := json.Unmarshal(body, &event); err == nil {
				fmt.Println(event.Type, event.Data.Subject.ID)
			}
		}
	}
	srv := httptest.NewServer(http.HandlerFunc(receive))
	defer srv.Close()

	hook, err := webhook.New(srv.URL, []string{secret}, &webhook.Options{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
	})
	if err != nil {
		panic(err)
	}
	defer hook.Close()
	for range 2 { // the service does this for each event, and again when in doubt
		if err := hook.Notify(context.Background(), assigned); err != nil {
			panic(err)
		}
	}
	// Output: task.assigned t1
}
