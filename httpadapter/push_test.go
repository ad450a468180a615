package httpadapter_test

import (
	"fmt"
	"strings"
	"testing"
)

// subscription is what a browser sends.
func subscription(endpoint string) string {
	return fmt.Sprintf(`{"endpoint":%q,"expirationTime":null,"keys":{"p256dh":%q,"auth":%q}}`, endpoint,
		"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
		strings.Repeat("A", 22))
}

func TestPush(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	subscribed := func() []string {
		t.Helper()
		d, err := s.svc.Driver(t.Context(), "ravi")
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, p := range d.Push {
			list = append(list, string(p.Endpoint))
		}
		return list
	}
	for _, n := range []string{"1", "2", "1"} {
		if r := s.asDriver(token, "POST", "/v1/driver/push",
			subscription("https://push.example/"+n)); r.body != `{"message":"Push subscribed","success":true}`+"\n" {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	if got := strings.Join(subscribed(), " "); got != "https://push.example/2 https://push.example/1" {
		t.Errorf("subscribed: %s", got)
	}
	good := subscription("https://push.example/3")
	for _, c := range [][2]string{
		{`{}`, "endpoint"}, {
			`{"endpoint":"https://push.example/3"}`, "keys",
		}, {`{"endpoint":7,"keys":{}}`, "endpoint"}, {
			subscription("http://push.example/3"), "endpoint",
		}, {
			strings.Replace(good, "BCVx", "BCVy", 1), "keys.p256dh",
		}, {strings.Replace(good, "AA", "!!", 1), "keys.auth"},
		{strings.Replace(good, `"auth"`, `"Auth"`, 1), "keys.auth"}, {
			`{"endpoint":"https://push.example/3","keys":[]}`, "keys",
		},
	} {
		s.check(c[0], s.asDriver(token, "POST", "/v1/driver/push", c[0]), 400, c[1])
	}
	for _, endpoint := range []string{"https://push.example/2", "https://push.example/2", "nonsense"} {
		s.check(endpoint, s.asDriver(token, "POST", "/v1/driver/push/delete", `{"endpoint":"`+endpoint+`"}`), 200, "")
	}
	if got := strings.Join(subscribed(), " "); got != "https://push.example/1" {
		t.Errorf("subscribed: %s", got)
	}
	s.data(s.app("POST", "/v1/users/driver/revoke", `{"driver_id":"ravi"}`))
	if got := subscribed(); len(got) != 0 {
		t.Errorf("after the tokens were revoked: %v", got)
	}
}
