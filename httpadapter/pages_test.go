package httpadapter_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// goneClient is a client that has gone.
type goneClient struct{ http.ResponseWriter }

func (goneClient) Write([]byte) (int, error) { return 0, errors.New("the client has gone") }

// Pages of tasks and answers are written into memory that others have used: each caller gets all of his
// application's tasks, and nothing of another's, however the answers before have ended.
func TestAnswersInUsedMemory(t *testing.T) {
	const apps, times = 4, 50
	svc, err := tracking.New(memory.New(), &tracking.Options{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]httpadapter.Principal{}
	var whole [apps]string
	for i := range apps {
		app := tracking.AppID(fmt.Sprint("app", i))
		keys[string(app)] = httpadapter.Principal{App: app}
		for n := range 3 + 9*i {
			place := &tracking.Place{LngLat: &tracking.LngLat{Lng: float64(i), Lat: 1}, Address: fmt.Sprintf("street of %s", app)}
			task := tracking.NewTask{Type: tracking.TypeDrop, Drop: place, OrderID: fmt.Sprintf("%s-%d", app, n)}
			if i%3 == n%3 { // some have what others have not
				task.Notes, task.Properties = "notes of "+string(app), map[string]string{"of": string(app)}
				place.Customer = &tracking.Contact{Name: "customer of " + string(app)}
			}
			if _, err := svc.ForApp(app).CreateTask(t.Context(), task); err != nil {
				t.Fatal(err)
			}
		}
	}
	h, err := httpadapter.New(svc, &httpadapter.Options{Keys: keys, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	list := func(h http.Handler, i int) string {
		r := httptest.NewRequest("GET", "/v1/task/list?limit=100", nil)
		r.Header.Set("X-Api-Key", fmt.Sprint("app", i))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Body.String()
	}
	for i := range apps {
		whole[i] = list(h, i)
		if n, want := strings.Count(whole[i], `"task_id"`), 3+9*i; n != want {
			t.Fatalf("application %d has %d tasks, want %d: %s", i, n, want, whole[i])
		}
		for other := range apps {
			if other != i && strings.Contains(whole[i], fmt.Sprint("app", other)) {
				t.Fatalf("application %d sees what is of %d: %s", i, other, whole[i])
			}
		}
	}
	limited := http.TimeoutHandler(h, time.Hour, "")
	gone := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(goneClient{w}, r) })
	var wg sync.WaitGroup
	for i := range 2 * apps {
		wg.Go(func() {
			for n := range times {
				through := []http.Handler{h, limited, gone}[n%3]
				got := list(through, i%apps)
				if n%3 < 2 && got != whole[i%apps] {
					t.Errorf("application %d: got %s, want %s", i%apps, got, whole[i%apps])
				}
			}
		})
	}
	wg.Wait()
}
