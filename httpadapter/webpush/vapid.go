package webpush

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

const (
	tokenLife  = 12 * time.Hour // a push service refuses more than 24 (RFC 8292, section 2)
	tokenRenew = time.Hour
)

// PublicKey is the applicationServerKey that a web app subscribes with: an uncompressed point on
// P-256, in base64url without padding. It is derived from the secret of the service
// ([tracking.Options].Secret), the same for all applications, and lasts as long as that: with
// another secret all browsers have to subscribe anew.
func (n *Notifier) PublicKey(ctx context.Context) (string, error) {
	key, err := n.key(ctx)
	if err != nil {
		return "", err
	}
	return key.public, nil
}

// vapidKey is the key pair that identifies us to push services.
type vapidKey struct {
	private *ecdsa.PrivateKey
	public  string
}

func (n *Notifier) key(ctx context.Context) (vapidKey, error) {
	svc := n.svc.Load()
	if svc == nil {
		return vapidKey{}, errNoService
	}
	secret, err := svc.DeriveKey(ctx, "vapid")
	if err != nil {
		return vapidKey{}, err
	}
	return deriveKey(secret[:])
}

// deriveKey makes a key pair. One in 2³² secrets gives a number that is not below the order of the
// curve's group, and the next one is taken.
func deriveKey(secret []byte) (vapidKey, error) {
	for i := 0; ; i++ {
		number, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprintf("P-256 %d", i), 32)
		if err != nil {
			return vapidKey{}, err
		}
		private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), number)
		if err != nil {
			continue
		}
		point, err := private.PublicKey.Bytes()
		return vapidKey{private, encode64(point)}, err
	}
}

// authorization is the header of that name for a push service (RFC 8292, section 3). For one origin
// it stays the same for an hour: push services keep what they have verified, and some take offence
// at a new token with each message.
func (k vapidKey) authorization(origin, contact string, now time.Time) (string, error) {
	claims, err := json.Marshal(struct {
		Audience string `json:"aud"`
		Expires  int64  `json:"exp"`
		Subject  string `json:"sub"`
	}{origin, now.Truncate(tokenRenew).Add(tokenLife).Unix(), contact})
	if err != nil {
		return "", err
	}
	token := encode64([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + encode64(claims)
	digest := sha256.Sum256([]byte(token))
	// without a source of randomness the signature is deterministic (RFC 6979)
	der, err := k.private.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return "", err
	}
	var sum struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &sum); err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	sum.R.FillBytes(signature[:32])
	sum.S.FillBytes(signature[32:])
	return "vapid t=" + token + "." + encode64(signature) + ", k=" + k.public, nil
}

// origin is the audience of a token for an endpoint: scheme and host, and the port if it is not 443
// (RFC 6454, section 6.2).
func origin(endpoint *url.URL) string {
	return "https://" + strings.ToLower(strings.TrimSuffix(endpoint.Host, ":443"))
}

// checkContact holds a contact to what the push services do: Apple's answers 403 BadJwtToken when
// nobody could be reached there.
func checkContact(contact string) error {
	wrong := errors.New("webpush: Options.Contact must be where operators of push services reach you: mailto:ops@example.com or https://example.com, with a public host, since some push services refuse messages else")
	u, err := url.Parse(contact)
	if err != nil || strings.ContainsAny(contact, " \t\r\n<>") {
		return wrong
	}
	host := u.Hostname()
	switch u.Scheme {
	case "mailto":
		user, domain, ok := strings.Cut(u.Opaque, "@")
		if !ok || user == "" || u.RawQuery != "" {
			return wrong
		}
		host = domain
	case "https":
		if u.User != nil {
			return wrong
		}
	default:
		return wrong
	}
	labels := strings.Split(strings.ToLower(host), ".")
	switch labels[len(labels)-1] { // RFC 2606, RFC 6762, and the one that ICANN keeps for private use
	case "localhost", "local", "invalid", "test", "example", "internal":
		return wrong
	}
	for _, l := range labels {
		if l == "" {
			return wrong
		}
	}
	if _, err := netip.ParseAddr(host); err == nil || len(labels) < 2 || strings.ContainsAny(host, "@:[]") {
		return wrong
	}
	return nil
}
