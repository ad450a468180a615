package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
)

// TestWebhook: the receiver gets each event, signed with both secrets while they change, with the row as the API shows it.
func TestWebhook(t *testing.T) {
	old, secret := webhook.NewSecret(), webhook.NewSecret()
	got := make(chan object, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		for _, s := range []string{old, secret} {
			if err := httpadapter.VerifyWebhook(r.Header, body, time.Now(), s); err != nil {
				t.Error(err)
			}
		}
		var v object
		if err != nil || json.Unmarshal(body, &v) != nil {
			t.Errorf("the body is %s, error %v", body, err)
		}
		got <- v
	}))
	defer receiver.Close()
	s := start(t, "-webhook", receiver.URL+"/hook", "-webhook-secret", old, "-webhook-secret", secret, "-webhook-allow-private")
	task := s.call("", "/v1/task/create", `{"type":2,"drop":{"lnglat":[2.17,41.39],"address":"45 First Avenue"},"order_id":"#1"}`).text(t, "task.task_id")
	v := <-got
	if v.text(t, "type") != "task.created" || v.text(t, "data.task.task_id") != task || v.text(t, "data.task.order_id") != "#1" {
		t.Errorf("it got %v", v)
	}
}

// TestWebhookOwnNetwork: without leave nothing is sent to this machine, and a secret is made.
func TestWebhookOwnNetwork(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a webhook reached this machine") }))
	defer receiver.Close()
	s := start(t, "-webhook", receiver.URL)
	if secret := s.wait(`Webhook secret of this run: (\S+)`); !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("the secret is %q", secret)
	}
	s.call("", "/v1/task/create", `{"type":2,"drop":{"address":"45 First Avenue"}}`)
	s.await(s.log, regexp.MustCompile(`delivery failed.*is not public`))
}
