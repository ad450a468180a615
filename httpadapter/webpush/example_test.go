package webpush_test

import (
	"context"
	"fmt"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
	"github.com/seed-8aba7b13/tracking/httpadapter/webpush"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// Drivers' browsers and another program are both told: the notifiers are made first, then the
// service with them, and then it is given to the one that needs it.
func ExampleNew() {
	push, err := webpush.New(nil, &webpush.Options{Contact: "mailto:ops@example.com"})
	if err != nil {
		panic(err)
	}
	defer push.Close()
	hook, err := webhook.New("https://example.com/hooks/tracking", []string{webhook.NewSecret()}, nil)
	if err != nil {
		panic(err)
	}
	defer hook.Close()

	svc, err := tracking.New(memory.New(), &tracking.Options{
		Notifiers: map[string]tracking.Notifier{"webhook": hook, "push": push}, // neither waits for the other
		Secret:    []byte("32 bytes or more, always the same"),
	})
	if err != nil {
		panic(err)
	}
	push.Bind(svc)

	key, err := push.PublicKey(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(key) // for the web app, which subscribes with it
	// Output: BPP2QucP8ytA9qwU3HnJdMOQ8Klfx93AMMqLpPOZF39hMlI6Jt00yC92NFMwxqzBbfawH8kiX380MM77MhOnwdI
}
