package httpadapter_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"regexp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// A program with a mux and a login of its own has the service below /delivery, and frames the
// customer's page in one of its own. Examples/shop is all of it, with a database and an outbox.
func Example() {
	svc, err := tracking.New(memory.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	delivery, err := httpadapter.New(svc, &httpadapter.Options{
		Prefix: "/delivery",
		Authenticate: func(r *http.Request) (httpadapter.Principal, error) {
			if user, password, _ := r.BasicAuth(); user == "owner" && password == "secret" {
				return httpadapter.Principal{Actor: "user:owner"}, nil
			}
			return httpadapter.Principal{}, tracking.ErrUnauthorized
		},
		Logger: quiet(),
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	delivery.Mount(mux)
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		task, err := svc.CreateTask(r.Context(), tracking.NewTask{ // asked for again, it is the same
			Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "12 Anna Salai"}, Key: r.PathValue("id"),
		})
		if err != nil {
			http.Error(w, "The order cannot be shown.", http.StatusServiceUnavailable)
			return
		}
		token, err := svc.LinkToken(r.Context(), task)
		if err != nil {
			http.Error(w, "The order cannot be shown.", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `<iframe src="%s"></iframe>`, delivery.TrackingURL(token))
	})

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // or signal.NotifyContext
	ended := make(chan error)
	go func() { ended <- httpadapter.Serve(ctx, svc, &http.Server{Handler: mux}, l) }()

	_, page := fetch("http://" + l.Addr().String() + "/orders/1001")
	framed := regexp.MustCompile(`src="([^"]*)"`).FindStringSubmatch(page)[1]
	status, _ := fetch("http://" + l.Addr().String() + framed)
	fmt.Println("the page in the frame:", status)
	status, _ = fetch("http://" + l.Addr().String() + "/delivery/v1/task/list")
	fmt.Println("the tasks, without the login:", status)
	status, _ = fetch("http://owner:secret@" + l.Addr().String() + "/delivery/v1/task/list")
	fmt.Println("with it:", status)
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// the page in the frame: 200 OK
	// the tasks, without the login: 401 Unauthorized
	// with it: 200 OK
	// ended: <nil>
}
