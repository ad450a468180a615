package egress

import (
	"net/netip"
	"testing"
)

func TestPublic(t *testing.T) {
	for _, s := range []string{"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
		"126.255.255.255", "128.0.0.0", "169.253.255.255", "172.15.255.255", "172.32.0.0",
		"192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111",
		"2001:4860:4860::8888", "2001:200::1", "2a00::1"} {
		if !public(netip.MustParseAddr(s)) {
			t.Errorf("%s is public", s)
		}
	}
	for _, s := range []string{"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1",
		"127.255.255.255", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1",
		"192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
		"239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "100::1", "2001::1", "2001:1ff::1",
		"2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1",
		"ff02::1", "::ffff:127.0.0.1"} {
		if public(netip.MustParseAddr(s)) {
			t.Errorf("%s is not public", s)
		}
	}
	if public(netip.Addr{}) {
		t.Error("no address is not public")
	}
}

func TestControl(t *testing.T) {
	g := guard{[]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fe80::/64")}}
	for address, ok := range map[string]bool{
		"10.1.2.3:80": true, "[::ffff:10.1.2.3]:80": true, "[fe80::1%eth0]:80": true, "1.1.1.1:443": true,
		"10.2.0.1:80": false, "[::ffff:10.2.0.1]:80": false, "[fe80:0:0:1::1%eth0]:80": false, "name:80": false,
		"": false,
	} {
		if err := g.control(t.Context(), "tcp", address, nil); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}
