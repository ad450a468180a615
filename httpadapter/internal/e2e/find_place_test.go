package e2e_test

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// oneAddress is a Geocoder that knows one address, and no other.
type oneAddress struct{}

func (oneAddress) Point(_ context.Context, address string) (tracking.LngLat, error) {
	if address == "12 River Street" {
		return tracking.LngLat{Lng: 13.395, Lat: 52.517}, nil
	}
	return tracking.LngLat{}, tracking.ErrNotFound
}

func (oneAddress) Address(context.Context, tracking.LngLat) (string, error) {
	return "", tracking.ErrNotFound
}

// An address is looked up before its task is saved, and is seen on the map with how far 300 m are; one
// that is not known is told, and a point that was found for one address is not kept for another.
func TestBoardFindPlace(t *testing.T) {
	s := newBoardService(t, func(o *tracking.Options, _ *httpadapter.Options) { o.Geocoder = oneAddress{} })
	dana := s.dispatcher(chromium(t), "dana")
	dana.expected = append(dana.expected, "status of 404")
	const point, find, said = `document.querySelector('[name=drop-point]').value`, `document.querySelector('.find button')`,
		`document.querySelector('.find [role=status]').textContent`
	dana.keys("n")
	dana.see("the form, and nothing to look up", `document.activeElement.name === 'drop-address' && `+find+`.disabled`)
	dana.keys("12 River Street")
	dana.eval(find + `.click()`)
	dana.see("the point, and it on the map with the ring around it", point+` === '52.517, 13.395' && `+said+`.startsWith('There it is') &&
		document.querySelector('.mark.pin.drop') !== null && document.querySelector('.ring') !== null && document.querySelector('.ring-label').textContent === '300 m'`)
	dana.eval(`document.querySelector('[name=drop-address]').focus()`)
	dana.do("the end of the address", chromedp.KeyEvent("7"))
	dana.see("the point of that no more", point+` === '' && document.querySelector('.mark.pin') === null && document.querySelector('.ring') === null`)
	dana.eval(find + `.click()`)
	dana.see("that this one is not known", said+`.startsWith('This address is not known')`)
	dana.onlyFrom(s.origins[1])
}
