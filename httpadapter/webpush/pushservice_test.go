package webpush_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/egress"
)

var b64 = base64.RawURLEncoding

func decode64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := b64.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A phone is a browser on the receiving end of Web Push.
type phone struct {
	endpoint string
	key      *ecdh.PrivateKey
	auth     []byte
	appKey   string // the applicationServerKey it subscribed with

	mu     sync.Mutex
	got    []message
	answer func(w http.ResponseWriter, nth int) // nil: 201; nth counts the requests, from 1
	asked  int
}

// message is what a phone got.
type message struct {
	TTL     int
	Topic   string
	Payload map[string]any
	Size    int
}

func newPhone(t testing.TB, endpoint, appKey string) *phone {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &phone{endpoint: endpoint, key: key, auth: make([]byte, 16), appKey: appKey}
	_, _ = rand.Read(p.auth)
	return p
}

func (p *phone) subscription() tracking.PushSubscription {
	return tracking.PushSubscription{
		Endpoint: tracking.Secret(p.endpoint), P256dh: b64.EncodeToString(p.key.PublicKey().Bytes()),
		Auth: tracking.Secret(b64.EncodeToString(p.auth)),
	}
}

func (p *phone) messages() []message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// requests is how often its push service was asked to tell it something.
func (p *phone) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func (p *phone) answers(f func(w http.ResponseWriter, nth int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = f
}

// status makes an answer of a number.
func status(code int) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, _ int) { w.WriteHeader(code) }
}

// A pushService is as strict as the strictest of the real ones.
type pushService struct {
	t   testing.TB
	url string
	rt  *http.Transport

	mu     sync.Mutex
	phones map[string]*phone // by path
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func newPushService(t testing.TB) *pushService {
	t.Helper()
	s := &pushService{t: t, phones: map[string]*phone{}}
	srv := httptest.NewUnstartedServer(s)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	s.url = srv.URL
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	s.rt = egress.Transport(loopback)
	s.rt.TLSClientConfig = &tls.Config{RootCAs: roots}
	t.Cleanup(s.rt.CloseIdleConnections)
	return s
}

// phone makes one that has subscribed with an application server's key.
func (s *pushService) phone(appKey string) *phone {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := fmt.Sprintf("/wpush/v2/capability-%d", len(s.phones)+1)
	p := newPhone(s.t, s.url+path, appKey)
	s.phones[path] = p
	return p
}

func (s *pushService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	p := s.phones[r.URL.Path]
	s.mu.Unlock()
	if p == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if r.ProtoMajor != 2 {
		s.t.Errorf("HTTP %s, want 2, which RFC 8030 is for", r.Proto)
	}
	p.serve(s.t, w, r, s.url, time.Now())
}

func (p *phone) serve(t testing.TB, w http.ResponseWriter, r *http.Request, origin string, now time.Time) {
	m, err := p.receive(r, origin, now)
	if err != nil {
		t.Errorf("the push service refuses: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if p.answer == nil {
		w.Header().Set("Location", origin+"/message/1")
		w.WriteHeader(http.StatusCreated)
		p.got = append(p.got, m)
		return
	}
	rec := httptest.NewRecorder()
	p.answer(rec, p.asked)
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	if rec.Code < 300 {
		p.got = append(p.got, m)
	}
}

var (
	topicPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
	vapidPattern = regexp.MustCompile(`^vapid t=([A-Za-z0-9_.-]+), k=([A-Za-z0-9_-]+)$`)
)

func (p *phone) receive(r *http.Request, origin string, now time.Time) (m message, err error) {
	want := map[string]string{
		"Content-Encoding": "aes128gcm", "Content-Type": "application/octet-stream", "Urgency": "high",
		"User-Agent": "tracking-webpush/1",
	}
	for name, values := range r.Header {
		v, fixed := want[name]
		switch {
		case len(values) != 1:
			return m, fmt.Errorf("%s is there %d times", name, len(values))
		case fixed && v != values[0]:
			return m, fmt.Errorf("%s is %q, want %q", name, values[0], v)
		case !fixed && !slices.Contains([]string{"Authorization", "Ttl", "Topic", "Content-Length"}, name):
			return m, fmt.Errorf("a header %s: %q", name, values)
		}
		delete(want, name)
	}
	if len(want) > 0 || r.Method != http.MethodPost {
		return m, fmt.Errorf("%s without %v", r.Method, want)
	}
	ttl := r.Header.Get("TTL")
	if m.TTL, err = strconv.Atoi(ttl); err != nil || m.TTL < 0 || strconv.Itoa(m.TTL) != ttl {
		return m, fmt.Errorf("TTL is %q", ttl)
	}
	if m.Topic = r.Header.Get("Topic"); !topicPattern.MatchString(m.Topic) {
		return m, fmt.Errorf("the topic is %q", m.Topic)
	}
	if err := checkVAPID(r.Header.Get("Authorization"), p.appKey, origin, now); err != nil {
		return m, err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 4097))
	if err != nil || len(body) > 4096 || r.ContentLength != int64(len(body)) {
		return m, fmt.Errorf("a body of %d bytes, announced %d: %v", len(body), r.ContentLength, err)
	}
	m.Size = len(body)
	plain, err := open(body, p.key, p.auth)
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(plain, &m.Payload)
}

// checkVAPID holds an Authorization to RFC 8292 and to what push services want beyond it.
func checkVAPID(header, appKey, origin string, now time.Time) error {
	parts := vapidPattern.FindStringSubmatch(header)
	if parts == nil {
		return fmt.Errorf("the Authorization is %q", header)
	}
	if parts[2] != appKey {
		return errors.New("signed by another key than the one subscribed with")
	}
	claims, err := verifyJWT(parts[1], parts[2])
	if err != nil {
		return err
	}
	exp := time.Unix(claims.Exp, 0)
	if claims.Aud != origin || !exp.After(now) || exp.After(now.Add(24*time.Hour)) ||
		!strings.HasPrefix(claims.Sub, "mailto:") && !strings.HasPrefix(claims.Sub, "https:") {
		return fmt.Errorf("the claims at %v: %+v, want the audience %s", now, claims, origin)
	}
	return nil
}

type claims struct {
	Aud string
	Exp int64
	Sub string
}

// verifyJWT checks an ES256 token (RFC 7518, section 3.4) with a public key in base64url.
func verifyJWT(token, key string) (c claims, err error) {
	point, err := b64.DecodeString(key)
	if err != nil {
		return c, err
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return c, err
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, errors.New("a token of three parts was expected")
	}
	var raw [3][]byte
	for i, p := range parts {
		if raw[i], err = b64.Strict().DecodeString(p); err != nil {
			return c, err
		}
	}
	var head struct{ Typ, Alg string }
	if err := json.Unmarshal(raw[0], &head); err != nil || head.Alg != "ES256" || head.Typ != "JWT" {
		return c, fmt.Errorf("the token's header is %s", raw[0])
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if len(raw[2]) != 64 ||
		!ecdsa.Verify(public, digest[:], new(big.Int).SetBytes(raw[2][:32]), new(big.Int).SetBytes(raw[2][32:])) {
		return c, errors.New("the signature is wrong")
	}
	return c, json.Unmarshal(raw[1], &c)
}

func sum(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// open decrypts a message as a browser does, written down from RFC 8291, section 3.4, with HMAC
// alone.
func open(body []byte, key *ecdh.PrivateKey, auth []byte) ([]byte, error) {
	if len(body) < 21 || len(body) < 21+int(body[20])+17 {
		return nil, errors.New("a message too short for its header")
	}
	salt, size, id, record := body[:16], binary.BigEndian.Uint32(body[16:]), body[21:21+int(body[20])], body[21+
		int(body[20]):]
	if int(size) < len(record) || size < 18 {
		return nil, fmt.Errorf("records of %d bytes: the message has more than one", size)
	}
	sender, err := ecdh.P256().NewPublicKey(id)
	if err != nil {
		return nil, err
	}
	shared, err := key.ECDH(sender)
	if err != nil {
		return nil, err
	}
	ikm := sum(sum(auth, shared), []byte("WebPush: info\x00"), key.PublicKey().Bytes(), id, []byte{1})
	prk := sum(salt, ikm)
	block, err := aes.NewCipher(sum(prk, []byte("Content-Encoding: aes128gcm\x00\x01"))[:16])
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain, err := gcm.Open(nil, sum(prk, []byte("Content-Encoding: nonce\x00\x01"))[:12], record, nil)
	if err != nil {
		return nil, err
	}
	trimmed := strings.TrimRight(string(plain), "\x00")
	text, ok := strings.CutSuffix(trimmed, "\x02")
	if !ok {
		return nil, errors.New("no delimiter of a last record")
	}
	return []byte(text), nil
}
