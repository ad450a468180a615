package webhook_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
)

// The vector of the standard's own libraries.
const (
	vectorID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorBody      = `{"test": 2432232314}`
	vectorSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	vectorTime      = 1614265330
)

func headers(id, at, signature string) http.Header {
	h := http.Header{}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", at)
	h.Set("webhook-signature", signature)
	return h
}

func TestVerify(t *testing.T) {
	at := strconv.Itoa(vectorTime)
	for _, tt := range []struct {
		name   string
		header http.Header
		body   string
		after  time.Duration
		keys   []string
		want   error
	}{
		{"good", headers(vectorID, at, vectorSignature), vectorBody, 0, []string{secret}, nil},
		{"one of two secrets", headers(vectorID, at, vectorSignature), vectorBody, 0, []string{secret2, secret}, nil},
		{
			"one of many signatures",
			headers(vectorID, at, "v1,AAAA v2,x v1a,"+vectorSignature[3:]+"  v1,?  "+vectorSignature), vectorBody, 0,
			[]string{secret}, nil,
		},
		{"5 min old", headers(vectorID, at, vectorSignature), vectorBody, 5 * time.Minute, []string{secret}, nil},
		{"5 min early", headers(vectorID, at, vectorSignature), vectorBody, -5 * time.Minute, []string{secret}, nil},

		{
			"older", headers(vectorID, at, vectorSignature), vectorBody, 5*time.Minute + time.Second, []string{secret},
			webhook.ErrTimestamp,
		},
		{
			"earlier", headers(vectorID, at, vectorSignature), vectorBody, -5*time.Minute - time.Second,
			[]string{secret}, webhook.ErrTimestamp,
		},
		{
			"far future", headers(vectorID, "9223372036854775807", vectorSignature), vectorBody, 0, []string{secret},
			webhook.ErrTimestamp,
		},
		{
			"far past", headers(vectorID, "-9223372036854775808", vectorSignature), vectorBody, 0, []string{secret},
			webhook.ErrTimestamp,
		},
		{
			"another body", headers(vectorID, at, vectorSignature), vectorBody + " ", 0, []string{secret},
			webhook.ErrSignature,
		},
		{
			"another id", headers(vectorID+"x", at, vectorSignature), vectorBody, 0, []string{secret},
			webhook.ErrSignature,
		},
		{
			"another time", headers(vectorID, "1614265331", vectorSignature), vectorBody, 0, []string{secret},
			webhook.ErrSignature,
		},
		{
			"another spelling of the time", headers(vectorID, "0"+at, vectorSignature), vectorBody, 0,
			[]string{secret}, webhook.ErrSignature,
		},
		{
			"another secret", headers(vectorID, at, vectorSignature), vectorBody, 0, []string{secret2},
			webhook.ErrSignature,
		},
		{"no secret", headers(vectorID, at, vectorSignature), vectorBody, 0, nil, webhook.ErrSignature},
		{
			"another version", headers(vectorID, at, "v1a"+vectorSignature[2:]), vectorBody, 0, []string{secret},
			webhook.ErrSignature,
		},
		{
			"no version", headers(vectorID, at, vectorSignature[3:]), vectorBody, 0, []string{secret},
			webhook.ErrSignature,
		},
		{"empty signature", headers(vectorID, at, "v1,"), vectorBody, 0, []string{secret}, webhook.ErrSignature},
		{"no header", http.Header{}, vectorBody, 0, []string{secret}, webhook.ErrHeaders},
		{"no id", headers("", at, vectorSignature), vectorBody, 0, []string{secret}, webhook.ErrHeaders},
		{"no time", headers(vectorID, "", vectorSignature), vectorBody, 0, []string{secret}, webhook.ErrHeaders},
		{"no number", headers(vectorID, "now", vectorSignature), vectorBody, 0, []string{secret}, webhook.ErrHeaders},
		{"no signature", headers(vectorID, at, ""), vectorBody, 0, []string{secret}, webhook.ErrHeaders},
	} {
		if err := webhook.Verify(tt.header, []byte(tt.body), time.Unix(vectorTime, 0).Add(tt.after),
			tt.keys...); err != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if err := webhook.Verify(headers(vectorID, at, vectorSignature), []byte(vectorBody), time.Unix(vectorTime, 0),
		"hello"); err == nil {
		t.Error("a malformed secret is taken")
	}
}

func TestNewSecret(t *testing.T) {
	a, b := webhook.NewSecret(), webhook.NewSecret()
	if _, err := webhook.New("https://example.com", []string{a, b}, nil); err != nil || a == b {
		t.Errorf("%s %s: %v", a, b, err)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(vectorID, strconv.Itoa(vectorTime), vectorSignature, vectorBody)
	f.Add("", "", "v1, v1,=", "")
	f.Fuzz(func(t *testing.T, id, at, signature, body string) {
		err := webhook.Verify(headers(id, at, signature), []byte(body), time.Unix(vectorTime, 0), secret)
		if err == nil && (id != vectorID || body != vectorBody || at != strconv.Itoa(vectorTime)) {
			t.Errorf("forged: %q %q %q %q", id, at, signature, body)
		}
	})
}
