package main

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
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

// TestWebhook: the receiver gets each event, signed with both secrets while they change, with the
// row as the API shows it.
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
	s := start(t, "-webhook", receiver.URL+"/hook", "-webhook-secret", old, "-webhook-secret", secret,
		"-webhook-allow-private")
	task := s.call("", "/v1/task/create",
		`{"type":2,"drop":{"lnglat":[2.17,41.39],"address":"45 First Avenue"},"order_id":"#1"}`).text(t, "task.task_id")
	v := <-got
	if v.text(t, "type") != "task.created" || v.text(t, "data.task.task_id") != task ||
		v.text(t, "data.task.order_id") != "#1" {
		t.Errorf("it got %v", v)
	}
}

// TestWebhookOwnNetwork: without leave nothing is sent to this machine, and a secret is made.
func TestWebhookOwnNetwork(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a webhook reached this machine")
	}))
	defer receiver.Close()
	s := start(t, "-webhook", receiver.URL)
	if secret := s.wait(`Webhook secret of this run: (\S+)`); !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("the secret is %q", secret)
	}
	s.call("", "/v1/task/create", `{"type":2,"drop":{"address":"45 First Avenue"}}`)
	s.await(s.log, regexp.MustCompile(`delivery failed.*notifier=webhook.*is not public`))
}

// TestPush: with -push-contact the driver app gets a key to subscribe with, and what a driver is to
// know goes to his browser as well as to the webhook.
func TestPush(t *testing.T) {
	got := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var v object
		if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
			t.Error(err)
		}
		got <- fmt.Sprint(v["type"])
	}))
	defer receiver.Close()
	s := start(t, "-push-contact", "mailto:ops@example.com", "-webhook", receiver.URL, "-webhook-allow-private")
	s.wait("(by Web Push)")
	key := regexp.MustCompile(`"push_key":"([A-Za-z0-9_-]{87})"`)
	_, app := s.get(s.base + "/driver/")
	if !key.MatchString(app) {
		t.Error("the driver app has no key for Web Push")
	}

	inv := s.call("", "/v1/invite_user", `{"user_id":"dora"}`)
	token := s.call("none", "/v1/driver/join", fmt.Sprintf(`{"invite_code":%v}`, inv["invite_code"])).text(t, "token")
	browser, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s.call(token, "/v1/driver/push",
		fmt.Sprintf(`{"endpoint":"https://127.0.0.1:9/a","keys":{"p256dh":%q,"auth":"AAAAAAAAAAAAAAAAAAAAAA"}}`,
			base64.RawURLEncoding.EncodeToString(browser.PublicKey().Bytes())))
	task := s.call("", "/v1/task/create", `{"type":2,"drop":{"address":"45 First Avenue"}}`).text(t, "task.task_id")
	s.call("", "/v1/task/assign", fmt.Sprintf(`{"task_id":%q,"driver_id":"dora"}`, task))
	for <-got != "task.assigned" {
	}
	// Nothing is sent to this machine, by leave given for the webhook or otherwise.
	s.await(s.log, regexp.MustCompile(`delivery failed.*notifier=push.*task\.assigned.*webpush: .*is not public`))
}

// TestPushContact: a public address of the server is contact enough; without any there is no Web
// Push.
func TestPushContact(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"-base-url", "https://tracking.example.com/here/"}, "https://tracking.example.com/here"},
		{[]string{"-base-url", "http://tracking.example.com"}, ""},
		{[]string{"-base-url", "https://tracking.local"}, ""},
		{[]string{"-base-url", "https://203.0.113.7"}, ""},
		{
			[]string{"-base-url", "https://tracking.example.com", "-push-contact", "mailto:ops@example.com"},
			"mailto:ops@example.com",
		},
	} {
		if c, err := parseFlags(tt.args, quiet); err != nil || c.pushContact != tt.want {
			t.Errorf("server %q has the contact %q, error %v, want %q", tt.args, c.pushContact, err, tt.want)
		}
	}
	s := start(t)
	if _, app := s.get(s.base + "/driver/"); strings.Contains(app, "push_key") ||
		!strings.Contains(app, `"driver.push.none"`) {
		t.Error("without Web Push the driver app has a key for it, or no words to say that there is none")
	}
	if strings.Contains(s.out.String(), "Web Push") {
		t.Errorf("it prints %s", s.out)
	}
}
