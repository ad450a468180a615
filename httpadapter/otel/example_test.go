package otel_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/otel"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// A program that Prometheus watches.
func Example() {
	provider, metrics, err := otel.Prometheus()
	if err != nil {
		panic(err)
	}
	tel, err := otel.New(&otel.Options{MeterProvider: provider})
	if err != nil {
		panic(err)
	}
	svc, err := tracking.New(memory.New(), &tracking.Options{Observe: tel.Observe})
	if err != nil {
		panic(err)
	}
	if err := tel.Watch(svc); err != nil {
		panic(err)
	}
	_, err = svc.CreateTask(context.Background(), tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "12 Anna Salai"},
	})
	if err != nil {
		panic(err)
	}

	internal := httptest.NewServer(metrics) // an address that only Prometheus reaches
	defer internal.Close()
	res, err := http.Get(internal.URL)
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		panic(err)
	}
	for _, line := range regexp.MustCompile(`(?m)^tracking_(tasks\{|operation_duration_seconds_count.*CreateTask).*`).FindAllString(string(page), -1) {
		fmt.Println(line)
	}
	// Output:
	// tracking_operation_duration_seconds_count{tracking_operation="CreateTask"} 1
	// tracking_tasks{tracking_task_status="assigned"} 0
	// tracking_tasks{tracking_task_status="created"} 1
	// tracking_tasks{tracking_task_status="in_progress"} 0
}
