package demo

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-8aba7b13/tracking"
)

// town is a map around the course: the streets that it drives along, carried on and filled up to a
// grid, with blocks between them. Its plane is in metres from the first point of the course, turned
// so that streets go along its axes.
type town struct {
	origin tracking.LngLat
	turn   float64 // of the first axis from east, in radians
	unit   float64 // metres from street to street

	// By the axis that is the same all along, the first or the second.
	streets [2][]street
}

type street struct {
	at   float64
	name string // "": none
}

const (
	degree   = 111_195.0 // metres of latitude
	halfRoad = 9.0       // metres from the middle of a street to the blocks
	cutOff   = 16.0      // metres that the blocks' corners are cut off
	margin   = 2         // streets beyond those of the course, on each side
	far      = 40_000.0  // metres that the roads out of town go on
)

// newTown makes the map of a course.
func newTown(c *course) *town {
	t := &town{origin: c.points[0]}
	t.turn = (90 - bearing(c.points[1], c.points[2])) * math.Pi / 180
	for i, p := range c.points {
		a, b := t.plane(p), t.plane(c.points[(i+1)%len(c.points)])
		axis := 0 // the leg goes along the second
		if math.Abs(b[0]-a[0]) > math.Abs(b[1]-a[1]) {
			axis = 1
		}
		if math.Abs(b[1-axis]-a[1-axis]) < 3*math.Abs(b[axis]-a[axis]) {
			continue // a corner that is cut off
		}
		s := t.street(axis, a[axis])
		for _, d := range c.doors {
			if d.at == c.along[i] {
				s.name = strings.TrimLeft(d.address, "0123456789 ")
			}
		}
	}
	t.unit = math.Inf(1)
	for axis := range t.streets {
		t.sort(axis)
		for i := 1; i < len(t.streets[axis]); i++ {
			t.unit = min(t.unit, t.streets[axis][i].at-t.streets[axis][i-1].at)
		}
	}
	for axis, list := range t.streets {
		from, to := list[0].at-margin*t.unit, list[len(list)-1].at+margin*t.unit
		for at := from; at < to+t.unit/2; at += t.unit {
			t.street(axis, at)
		}
		t.sort(axis)
	}
	return t
}

func (t *town) sort(axis int) {
	slices.SortFunc(t.streets[axis], func(a, b street) int { return cmp.Compare(a.at, b.at) })
}

// street is the one at a place of an axis, made if need be.
func (t *town) street(axis int, at float64) *street {
	for i, s := range t.streets[axis] {
		if math.Abs(s.at-at) < 20 {
			return &t.streets[axis][i]
		}
	}
	t.streets[axis] = append(t.streets[axis], street{at: at})
	return &t.streets[axis][len(t.streets[axis])-1]
}

// plane is where a place is in the town's plane.
func (t *town) plane(p tracking.LngLat) [2]float64 {
	east := (p.Lng - t.origin.Lng) * degree * math.Cos(t.origin.Lat*math.Pi/180)
	north := (p.Lat - t.origin.Lat) * degree
	sin, cos := math.Sincos(t.turn)
	return [2]float64{east*cos + north*sin, north*cos - east*sin}
}

// place is the reverse of plane.
func (t *town) place(u, v float64) tracking.LngLat {
	sin, cos := math.Sincos(t.turn)
	east, north := u*cos-v*sin, u*sin+v*cos
	return tracking.LngLat{
		Lng: t.origin.Lng + east/degree/math.Cos(t.origin.Lat*math.Pi/180), Lat: t.origin.Lat + north/degree,
	}
}

// palette are the colours of a map.
type palette struct {
	land, water, ground, block, yard, park, road, edge, name string
}

var palettes = map[string]palette{
	"light": {
		land: "#eceee6", water: "#aed3e8", ground: "#ffffff", block: "#e6e1d8", yard: "#efece6", park: "#c3e0b4",
		road: "#fbe3a4", edge: "#e3bf66", name: "#565b62",
	},
	"dark": {
		land: "#171b1d", water: "#16303f", ground: "#3a4048", block: "#23282e", yard: "#1e2226", park: "#1c3526",
		road: "#6a5a30", edge: "#3c3420", name: "#b4bcc6",
	},
}

// Tiles serves the map of the town as pictures in SVG, at /demo/light/{z}/{x}/{y}.svg and, for dark
// screens, at /demo/dark/….
func Tiles() (http.Handler, error) {
	c, err := readCourse(courseFile)
	if err != nil {
		return nil, fmt.Errorf("the course of the demo: %w", err)
	}
	t := newTown(c)
	mux := http.NewServeMux()
	for scheme, colours := range palettes {
		mux.HandleFunc("GET /demo/"+scheme+"/{z}/{x}/{y}", func(w http.ResponseWriter, r *http.Request) {
			z, errZ := strconv.Atoi(r.PathValue("z"))
			x, errX := strconv.Atoi(r.PathValue("x"))
			name, isSVG := strings.CutSuffix(r.PathValue("y"), ".svg")
			y, errY := strconv.Atoi(name)
			if errZ != nil || errX != nil || errY != nil || !isSVG || z < 0 || z > 22 || min(x, y) < 0 || max(x, y) >= 1<<z {
				http.NotFound(w, r)
				return
			}
			h := w.Header()
			h.Set("Content-Type", "image/svg+xml")
			h.Set("Content-Security-Policy", "default-src 'none'")
			h.Set("Cache-Control", "public, max-age=86400")
			h.Set("X-Content-Type-Options", "nosniff")
			// Should this fail, the reader has gone.
			_, _ = w.Write(t.tile(z, x, y, colours))
		})
	}
	return mux, nil
}

const tileSize = 256

// pixel is where a place is on a tile.
func pixel(p tracking.LngLat, z, x, y int) [2]float64 {
	n := math.Exp2(float64(z))
	lat := p.Lat * math.Pi / 180
	return [2]float64{
		tileSize * (n*(p.Lng+180)/360 - float64(x)),
		tileSize * (n*(1-math.Asinh(math.Tan(lat))/math.Pi)/2 - float64(y)),
	}
}

// view is a tile's look at the plane. The town is so small that it is a straight one.
type view struct {
	at   [2]float64    // the pixel of the plane's zero
	axes [2][2]float64 // pixels for a metre along each axis
}

func (t *town) view(z, x, y int) view {
	const step = 1000
	v := view{at: pixel(t.origin, z, x, y)}
	for axis, p := range []tracking.LngLat{t.place(step, 0), t.place(0, step)} {
		px := pixel(p, z, x, y)
		v.axes[axis] = [2]float64{(px[0] - v.at[0]) / step, (px[1] - v.at[1]) / step}
	}
	return v
}

func (v view) pixel(a, b float64) [2]float64 {
	return [2]float64{v.at[0] + a*v.axes[0][0] + b*v.axes[1][0], v.at[1] + a*v.axes[0][1] + b*v.axes[1][1]}
}

// sees reports whether a circle around a point of the plane is on the tile, in part at least. All is
// in metres but for more, which is in pixels.
func (v view) sees(a, b, radius, more float64) bool {
	p := v.pixel(a, b)
	r := radius*math.Hypot(v.axes[0][0], v.axes[0][1]) + more
	return p[0] > -r && p[0] < tileSize+r && p[1] > -r && p[1] < tileSize+r
}

// tile draws one.
func (t *town) tile(z, x, y int, c palette) []byte {
	var b strings.Builder
	v := t.view(z, x, y)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%[1]d" viewBox="0 0 %[1]d %[1]d">`+
		`<rect width="%[1]d" height="%[1]d" fill="%s"/>`, tileSize, c.land)
	if z >= 9 {
		t.draw(&b, v, z, c)
	}
	b.WriteString("</svg>")
	return []byte(b.String())
}

func (t *town) draw(b *strings.Builder, v view, z int, c palette) {
	us, vs := t.streets[0], t.streets[1]
	west, east, south, north := us[0].at, us[len(us)-1].at, vs[0].at, vs[len(vs)-1].at
	fmt.Fprintf(b, `<g transform="matrix(%.6g %.6g %.6g %.6g %.2f %.2f)" fill="none">`, v.axes[0][0], v.axes[0][1],
		v.axes[1][0], v.axes[1][1], v.at[0], v.at[1])

	// A river that winds along one side of the town.
	bend := 3 * t.unit
	fmt.Fprintf(b, `<path d="M%.0f %.0fq%.0f %.0f 0 %.0f`, east+1.6*t.unit, south-12*bend, t.unit, bend/2, bend)
	for range 24 {
		fmt.Fprintf(b, "t0 %.0f", bend)
	}
	fmt.Fprintf(b, `" stroke="%s" stroke-width="90"/>`, c.water)

	edge := halfRoad + 3
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="30" fill="%s"/>`, west-edge, south-edge,
		east-west+2*edge, north-south+2*edge, c.ground)
	if z < 13 { // there would be dots only
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, west, south, east-west,
			north-south, c.block)
	} else {
		t.blocks(b, v, c)
	}

	// The two roads out of town, along streets in its middle.
	u, w := us[len(us)/2].at, vs[len(vs)/2].at
	road := fmt.Sprintf("M%.1f %.0fV%.0fM%.0f %.1fH%.0f", u, -far, far, -far, w, far)
	fmt.Fprintf(b, `<path d="%s" stroke="%s" stroke-width="20"/><path d="%[1]s" stroke="%[3]s" stroke-width="15"/></g>`,
		road, c.edge, c.road)
	if z >= 15 {
		t.names(b, v, z, c)
	}
}

// blocks draws what stands between the streets: houses around a yard, or a park.
func (t *town) blocks(b *strings.Builder, v view, c palette) {
	square := func(a, d, half, cut float64) string {
		side := 2 * (half - cut)
		return fmt.Sprintf("M%.1f %.1fh%.1fl%g %gv%.1fl-%g %gh-%.1fl-%g -%gv-%.1fz", a-half+cut, d-half, side, cut, cut,
			side, cut, cut, side, cut, cut, side)
	}
	var houses, yards, parks strings.Builder
	for i := 1; i < len(t.streets[0]); i++ {
		for j := 1; j < len(t.streets[1]); j++ {
			a, d := (t.streets[0][i-1].at+t.streets[0][i].at)/2, (t.streets[1][j-1].at+t.streets[1][j].at)/2
			if !v.sees(a, d, t.unit, 0) {
				continue
			}
			half := t.unit/2 - halfRoad
			if (5*i+3*j)%17 == 0 {
				parks.WriteString(square(a, d, half, cutOff))
				continue
			}
			houses.WriteString(square(a, d, half, cutOff))
			yards.WriteString(square(a, d, half-24, 8))
		}
	}
	fmt.Fprintf(b, `<path d="%s" fill="%s"/><path d="%s" fill="%s"/><path d="%s" fill="%s"/>`, houses.String(), c.block,
		yards.String(), c.yard, parks.String(), c.park)
}

// names writes the streets' names along them, so often that one is in sight. A name at the edge of a
// tile is on the next one too.
func (t *town) names(b *strings.Builder, v view, z int, c palette) {
	every := map[int]int{15: 6, 16: 4, 17: 2}[z] // blocks
	if every == 0 {
		every = 1
	}
	fmt.Fprintf(b, `<g font-family="sans-serif" font-size="%d" text-anchor="middle" fill="%s" stroke="%s" `+
		`stroke-width="3" stroke-linejoin="round" paint-order="stroke">`, min(z-4, 14), c.name, c.ground)
	for axis, list := range t.streets {
		along := v.axes[1-axis]
		angle := math.Atan2(along[1], along[0]) * 180 / math.Pi
		if angle > 90 || angle <= -90 {
			angle += 180
		}
		for n, s := range list {
			for i := n%every + 1; s.name != "" && i < len(t.streets[1-axis]); i += every {
				at := [2]float64{}
				at[axis], at[1-axis] = s.at, t.streets[1-axis][i].at-t.unit/2
				if !v.sees(at[0], at[1], 0, 80) {
					continue
				}
				p := v.pixel(at[0], at[1])
				fmt.Fprintf(b, `<text transform="translate(%.1f %.1f)rotate(%.1f)" dy=".35em">%s</text>`, p[0], p[1], angle,
					s.name)
			}
		}
	}
	b.WriteString("</g>")
}
