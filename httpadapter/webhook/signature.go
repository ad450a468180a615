package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"

	secretPrefix = "whsec_"
	version      = "v1,"
)

// Tolerance is how far a request's timestamp may be from the receiver's clock, either way, for
// [Verify] to take it. An older one may be a recording.
const Tolerance = 5 * time.Minute

// What [Verify] finds wrong.
var (
	ErrHeaders   = errors.New("webhook: a header is missing or malformed")
	ErrTimestamp = errors.New("webhook: the timestamp is too far from now")
	ErrSignature = errors.New("webhook: no signature matches")
)

// NewSecret makes a secret: "whsec_" and the base64 of 32 random bytes.
func NewSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// parseSecret gives the key of a secret, which the standard wants to have 24 to 64 bytes. Its
// errors do not show it.
func parseSecret(s string) ([]byte, error) {
	enc, ok := strings.CutPrefix(s, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(enc)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		return nil, fmt.Errorf("webhook: a secret is %q and the base64 of 24 to 64 bytes", secretPrefix)
	}
	return key, nil
}

// mac is the HMAC-SHA256 of "id.timestamp.body".
func mac(key []byte, id, timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + timestamp + "."))
	h.Write(body)
	return h.Sum(nil)
}

// sign puts the three headers into h, with a signature for each key.
func sign(h http.Header, id string, now time.Time, body []byte, keys [][]byte) {
	at := strconv.FormatInt(now.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		signatures[i] = version + base64.StdEncoding.EncodeToString(mac(key, id, at, body))
	}
	h.Set(headerID, id)
	h.Set(headerTimestamp, at)
	h.Set(headerSignature, strings.Join(signatures, " "))
}

// Verify checks, for a receiver, that the body came from somebody who has one of secrets and was
// sent within [Tolerance] of now. body is to be what came, byte for byte: verify first, then
// decode. The id is the event's, in the header webhook-id; whoever keeps it knows an event that
// comes again.
//
// The error is [ErrHeaders], [ErrTimestamp] or [ErrSignature], or says that a secret is malformed.
func Verify(h http.Header, body []byte, now time.Time, secrets ...string) error {
	keys := make([][]byte, len(secrets))
	for i, s := range secrets {
		var err error
		if keys[i], err = parseSecret(s); err != nil {
			return err
		}
	}
	id, at, given := h.Get(headerID), h.Get(headerTimestamp), h.Get(headerSignature)
	seconds, err := strconv.ParseInt(at, 10, 64)
	if id == "" || given == "" || err != nil {
		return ErrHeaders
	}
	// In seconds, since a wild timestamp is beyond what a time.Duration can hold.
	if d := now.Unix() - seconds; d > int64(Tolerance/time.Second) || d < -int64(Tolerance/time.Second) || seconds < 0 {
		return ErrTimestamp
	}
	for signature := range strings.FieldsSeq(given) {
		enc, ok := strings.CutPrefix(signature, version)
		sum, err := base64.StdEncoding.DecodeString(enc)
		if !ok || err != nil {
			continue // another version's
		}
		for _, key := range keys {
			if hmac.Equal(sum, mac(key, id, at, body)) {
				return nil
			}
		}
	}
	return ErrSignature
}
