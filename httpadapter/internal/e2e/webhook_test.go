package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
)

// The standard's own Go module accepts what our notifier sends, with each of two secrets, and our
// Verify accepts what it signs.
func TestStandardWebhooks(t *testing.T) {
	secrets := []string{webhook.NewSecret(), webhook.NewSecret()}
	var received []http.Header
	var bodies [][]byte
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		received, bodies = append(received, r.Header), append(bodies, b)
	}))
	defer srv.Close()
	hook, err := webhook.New(srv.URL, secrets, &webhook.Options{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer hook.Close()
	for _, data := range []string{"", "d1", `"quoted" <b> & ☃ ` + "\u2028", strings.Repeat("x", 50_000)} {
		event := tracking.Event{
			ID: "01JV0000", Type: tracking.EventTaskAssigned, Time: time.Now(), RecordedAt: time.Now(),
			Subject: tracking.Subject{Kind: tracking.KindTask, ID: "t1"}, Seq: 1,
			Data: map[string]string{"driver_id": data},
		}
		if err := hook.Notify(t.Context(), tracking.Notification{
			App: tracking.DefaultApp, Event: event, Attempt: 1,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(received) != 4 {
		t.Fatalf("%d requests", len(received))
	}
	for _, secret := range secrets {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range received {
			if err := verifier.Verify(bodies[i], h); err != nil {
				t.Errorf("%d: %v", i, err)
			}
			if err := verifier.Verify(append(bodies[i], ' '), h); err == nil {
				t.Errorf("%d: the verifier takes another body too", i)
			}
		}
		now, body := time.Now(), []byte(`{"test": 1}`)
		signature, err := verifier.Sign("msg_1", now, body)
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		h.Set(standardwebhooks.HeaderWebhookID, "msg_1")
		h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
		h.Set(standardwebhooks.HeaderWebhookSignature, signature)
		if err := webhook.Verify(h, body, now, secret); err != nil {
			t.Errorf("our Verify: %v", err)
		}
	}
	stranger, err := standardwebhooks.NewWebhook(webhook.NewSecret())
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Verify(bodies[0], received[0]); err == nil {
		t.Error("the verifier takes a secret that did not sign")
	}
}
