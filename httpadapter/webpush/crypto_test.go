package webpush_test

import (
	"bytes"
	"crypto/ecdh"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/webpush"
)

// The vector of RFC 8291, section 5 and appendix A.
const (
	vectorText     = "When I grow up, I want to be a watermelon"
	vectorSender   = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
	vectorReceiver = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
	vectorP256dh   = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
	vectorAuth     = "BTBZMqHH6r4Tts7J_aSIgg"
	vectorSalt     = "DGv6ra1nlYgDCS1FRnbzlw"
	vectorBody     = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)

func privateKey(t *testing.T, s string) *ecdh.PrivateKey {
	t.Helper()
	k, err := ecdh.P256().NewPrivateKey(decode64(t, s))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestVector(t *testing.T) {
	sub := tracking.PushSubscription{P256dh: vectorP256dh, Auth: vectorAuth}
	body, err := webpush.SealWith(sub, privateKey(t, vectorSender), decode64(t, vectorSalt), []byte(vectorText))
	if err != nil {
		t.Fatal(err)
	}
	if got := b64.EncodeToString(body); got != vectorBody {
		t.Errorf("the body is\n%s, want\n%s", got, vectorBody)
	}
	// The receiver of the other tests knows its trade.
	plain, err := open(decode64(t, vectorBody), privateKey(t, vectorReceiver), decode64(t, vectorAuth))
	if err != nil || string(plain) != vectorText {
		t.Errorf("the receiver reads %q: %v", plain, err)
	}
	for i := range body {
		wrong := bytes.Clone(body)
		wrong[i] ^= 1
		// the record size is not authenticated
		if plain, err := open(wrong, privateKey(t, vectorReceiver), decode64(t, vectorAuth)); err == nil &&
			(i < 16 || i > 19) {
			t.Errorf("with byte %d changed the receiver reads %q", i, plain)
		}
	}
}

func TestSeal(t *testing.T) {
	p := newPhone(t, "https://push.example/1", "")
	seen := map[string]bool{}
	for _, n := range []int{
		0, 1, 100, 254, 255, 256, 257, 510, 511, 512, 1000, webpush.MaxPlaintext - 256, webpush.MaxPlaintext - 1,
		webpush.MaxPlaintext,
	} {
		text := bytes.Repeat([]byte{0}, n) // such as a careless receiver takes for padding
		body, err := webpush.Seal(p.subscription(), text)
		if err != nil {
			t.Fatal(err)
		}
		if len(body) > 4096 || len(body) < 4096 && (len(body)-86-16)%256 != 0 {
			t.Errorf("%d bytes become %d", n, len(body))
		}
		if plain, err := open(body, p.key, p.auth); err != nil || !bytes.Equal(plain, text) {
			t.Errorf("%d bytes are read as %d: %v", n, len(plain), err)
		}
		for _, part := range []string{string(body[:16]), string(body[21:86])} {
			if seen[part] {
				t.Errorf("salt or key %x is there twice", part)
			}
			seen[part] = true
		}
		if plain, err := open(body, p.key, decode64(t, vectorAuth)); err == nil {
			t.Errorf("with another secret it reads %q", plain)
		}
	}
}

// The token of RFC 8292, section 2.4.
const (
	vectorToken = "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3NjgsInN1YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSSHzvoD1oA"
	vectorKey   = "BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"
)

func TestAuthorization(t *testing.T) {
	if c, err := verifyJWT(vectorToken, vectorKey); err != nil || c != (claims{
		"https://push.example.net", 1453523768, "mailto:push@example.com",
	}) {
		t.Fatalf("the receiver of these tests reads the RFC's token as %+v: %v", c, err)
	}
	if _, err := verifyJWT(strings.Replace(vectorToken, ".eyJh", ".eyJi", 1), vectorKey); err == nil {
		t.Fatal("the receiver of these tests takes a forged token")
	}

	secret := decode64(t, vectorSender)
	at := time.Unix(1453480568, 0)
	header, public, err := webpush.Authorization(secret, "https://push.example.net", "mailto:push@example.com", at)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkVAPID(header, public, "https://push.example.net", at); err != nil {
		t.Error(err)
	}
	head, rest, _ := strings.Cut(strings.TrimPrefix(header, "vapid t="), ".")
	body, _, _ := strings.Cut(rest, ".")
	if got, want := string(decode64(t, head)), `{"typ":"JWT","alg":"ES256"}`; got != want {
		t.Errorf("the header is %s, want %s", got, want)
	}
	if got, want := string(decode64(t,
		body)), `{"aud":"https://push.example.net","exp":1453521600,"sub":"mailto:push@example.com"}`; got != want {
		t.Errorf("the claims are %s, want %s", got, want)
	}

	// One token an hour and origin, of use for at least 11 hours more.
	const hours = 3
	tokens := map[string]bool{}
	for minute := range hours * 60 {
		now := at.Truncate(time.Hour).Add(time.Duration(minute) * time.Minute)
		h, k, err := webpush.Authorization(secret, "https://push.example.net", "mailto:push@example.com", now)
		if err != nil || k != public {
			t.Fatalf("the key changed from %s to %s: %v", public, k, err)
		}
		if err := checkVAPID(h, public, "https://push.example.net", now.Add(11*time.Hour-time.Second)); err != nil {
			t.Error(err)
		}
		if err := checkVAPID(h, public, "https://push.example.net", now); err != nil {
			t.Error(err)
		}
		tokens[h] = true
	}
	if len(tokens) != hours {
		t.Errorf("%d tokens in %d hours", len(tokens), hours)
	}
	if h, _, err := webpush.Authorization(secret, "https://other.example.net", "mailto:push@example.com",
		at); err != nil || h == header {
		t.Errorf("another origin gets the same token: %v", err)
	}
}

func TestOrigin(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://fcm.googleapis.com/fcm/send/a:b": "https://fcm.googleapis.com",
		"https://Push.Example.com:443/x?y":        "https://push.example.com",
		"https://push.example.com:8443/":          "https://push.example.com:8443",
		"https://[2606:4700::1111]:443/1":         "https://[2606:4700::1111]",
		"https://[2606:4700::443]/1":              "https://[2606:4700::443]",
	} {
		u, err := url.Parse(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		if got := webpush.Origin(u); got != want {
			t.Errorf("the origin of %s is %s, want %s", endpoint, got, want)
		}
	}
}

// A change of the derivation would end all subscriptions there are.
func TestKeyIsStable(t *testing.T) {
	for secret, want := range map[string]string{
		strings.Repeat("\x00",
			32): "BJLL_pmkL5Icw1w3ONg-B6zrh5OM2gejFkH6I4QvHhC1bdLhJ0ajXKxHftB8b_Tz8htHIV5fJOQOec2kz_6oARg",
		strings.Repeat("k",
			32): "BMiH8hgSPAkhOb-MA0YP2Gl1ypztRi5V2aZhLTLfj1mBixy81fnEjg4QDBa9UmHoJRBSTXjgmQHNfSkHhwr8wtI",
	} {
		_, public, err := webpush.Authorization([]byte(secret), "https://push.example.net", "mailto:a@example.com",
			time.Unix(0, 0))
		if err != nil || public != want {
			t.Errorf("%q gives %s, want %s: %v", secret, public, want, err)
		}
	}
}

func TestTopic(t *testing.T) {
	for _, tt := range []struct {
		event string
		nth   int
		want  string
	}{
		{"01kab3vq5e8h0c7m2x9tj4wznd", 1, "01kab3vq5e8h0c7m2x9tj4wznd"},
		{"01kab3vq5e8h0c7m2x9tj4wznd", 2, "01kab3vq5e8h0c7m2x9tj4wznd-2"},
		{"a b", 1, ""}, {"", 1, ""}, {"é", 1, ""}, {strings.Repeat("a", 33), 1, ""}, {strings.Repeat("a", 31), 2, ""},
	} {
		got := webpush.TopicOf(tt.event, tt.nth)
		if !topicPattern.MatchString(got) || tt.want != "" && got != tt.want ||
			got != webpush.TopicOf(tt.event, tt.nth) {
			t.Errorf("the topic of %q, %d is %q", tt.event, tt.nth, got)
		}
	}
	seen := map[string]bool{}
	for i := range 10 {
		for nth := 1; nth < 4; nth++ {
			seen[webpush.TopicOf(fmt.Sprintf("event #%d", i), nth)] = true
		}
	}
	if len(seen) != 30 {
		t.Errorf("%d topics, want 30", len(seen))
	}
}
