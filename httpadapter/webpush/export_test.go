package webpush

import (
	"crypto/ecdh"
	"net/url"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// MaxPlaintext is the most that a message holds, in bytes.
const MaxPlaintext = maxPlaintext

// Remember limits how many events are remembered.
func (n *Notifier) Remember(limit int) { n.told.limit = limit }

// SealWith encrypts with a given key and salt and no padding.
func SealWith(sub tracking.PushSubscription, sender *ecdh.PrivateKey, salt, plaintext []byte) ([]byte, error) {
	b, err := decodeKeys(sub)
	if err != nil {
		return nil, err
	}
	return b.sealWith(sender, salt, plaintext, 0)
}

// Seal encrypts as messages are.
func Seal(sub tracking.PushSubscription, plaintext []byte) ([]byte, error) {
	b, err := decodeKeys(sub)
	if err != nil {
		return nil, err
	}
	return b.seal(plaintext)
}

// Authorization is the header for a key derived from a secret.
func Authorization(secret []byte, origin, contact string, now time.Time) (header, public string, err error) {
	k, err := deriveKey(secret)
	if err != nil {
		return "", "", err
	}
	header, err = k.authorization(origin, contact, now)
	return header, k.public, err
}

// TopicOf is the Topic of an event's nth notice to a driver.
func TopicOf(event string, nth int) string { return topicOf(event, nth) }

// Underway is how many events are remembered now.
func (n *Notifier) Underway() int {
	n.told.mu.Lock()
	defer n.told.mu.Unlock()
	return len(n.told.underway)
}

// Queued is how long the list of remembered events is.
func (n *Notifier) Queued() int {
	n.told.mu.Lock()
	defer n.told.mu.Unlock()
	return len(n.told.oldest)
}

// Origin is the audience of a token for an endpoint.
func Origin(endpoint *url.URL) string { return origin(endpoint) }
