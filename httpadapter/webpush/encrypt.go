package webpush

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/seed-8aba7b13/tracking"
)

const (
	// recordSize is the most a push service must take (RFC 8030, section 7.2), and so the size of
	// the one record (RFC 8291, section 4).
	recordSize = 4096

	saltSize   = 16
	headerSize = saltSize + 4 + 1 + 65 // salt, record size, length of the key, key
	gcmTag     = 16

	// maxPlaintext leaves room for the delimiter.
	maxPlaintext = recordSize - headerSize - gcmTag - 1

	// padding is what plaintexts are filled up to a multiple of, so that the push service does not
	// read from the length what kind of notice it is.
	padding = 256
)

// browser is a subscription, decoded.
type browser struct {
	key  *ecdh.PublicKey
	auth []byte
}

func decodeKeys(sub tracking.PushSubscription) (browser, error) {
	point, err := decode64(sub.P256dh)
	if err != nil {
		return browser{}, err
	}
	key, err := ecdh.P256().NewPublicKey(point)
	if err != nil {
		return browser{}, err
	}
	auth, err := decode64(string(sub.Auth))
	if err == nil && len(auth) != 16 {
		err = errors.New("the authentication secret has not 16 bytes")
	}
	return browser{key, auth}, err
}

// decode64 reads base64url with or without padding, as browsers and their libraries write it.
func decode64(s string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
}

func encode64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// seal encrypts a plaintext of at most maxPlaintext bytes for b, with a key and a salt of its own.
func (b browser) seal(plaintext []byte) ([]byte, error) {
	sender, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	pad := padding - 1 - len(plaintext)%padding
	return b.sealWith(sender, salt, plaintext, min(pad, maxPlaintext-len(plaintext)))
}

// sealWith makes the body of a message: a header and one record of the content coding aes128gcm
// (RFC 8188) with the keys of RFC 8291.
func (b browser) sealWith(sender *ecdh.PrivateKey, salt, plaintext []byte, pad int) ([]byte, error) {
	shared, err := sender.ECDH(b.key)
	if err != nil {
		return nil, err
	}
	own := sender.PublicKey().Bytes()
	ikm, err := hkdf.Key(sha256.New, shared, b.auth, "WebPush: info\x00"+string(b.key.Bytes())+string(own), 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, ikm, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	body := make([]byte, 0, headerSize+len(plaintext)+1+pad+gcmTag)
	body = append(body, salt...)
	body = binary.BigEndian.AppendUint32(body, recordSize)
	body = append(body, byte(len(own)))
	body = append(body, own...)
	record := append(append([]byte{}, plaintext...), 2) // 2: the last record
	record = append(record, make([]byte, pad)...)
	return gcm.Seal(body, nonce, record, nil), nil // the record's number, 0, changes nothing in the nonce
}
