package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// asBare makes this test binary a bare server: its value is the path of its file.
const asBare = "TRACKING_TEST_BARE"

const (
	cityBare = 50 // calls of the bare server a second
	bareKind = "bare"
)

// bareServer is what stands beside the server of a city, in a process of its own: each call reads a small
// body of JSON, appends a page to a file, syncs it, and answers. It keeps nothing else, so that it never
// becomes slower by itself. Where it does, the machine did, as one that others share does by the hour.
type bareServer struct {
	mu   sync.Mutex
	file *os.File
	at   int64 // where the next page goes
	page [4096]byte
}

func (b *bareServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet { // is it there?
		return
	}
	var body object
	err := json.NewDecoder(r.Body).Decode(&body)
	if err == nil {
		err = b.keep()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(object{"data": body}) // who does not hear it says so
}

// keep writes a page behind the last one, in a file that begins anew at a megabyte.
func (b *bareServer) keep() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.file.WriteAt(b.page[:], b.at); err != nil {
		return err
	}
	b.at = (b.at + int64(len(b.page))) % (1 << 20)
	return b.file.Sync()
}

func serveBare(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("Serving at http://%s with nothing\n", l.Addr())
	return http.Serve(l, &bareServer{file: file})
}

func startBare(t *testing.T) *process {
	t.Helper()
	return startAs(t, asBare+"="+filepath.Join(t.TempDir(), "bare"))
}

// callBare makes one call of it.
func (c *city) callBare(base string) {
	body, _ := json.Marshal(object{"type": 2, "order_id": "A-000001", "notes": "ring twice"})
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, base+"/", bytes.NewReader(body))
	if err != nil {
		c.note(bareKind, err)
		return
	}
	c.send(bareKind, req)
}
