// Package maptest makes small maps of streets for tests: PMTiles files, version 3, with vector tiles
// in the schema of Protomaps.
package maptest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
)

// Attribution is what the file says of its data, as HTML, as is usual.
const Attribution = `<a href="https://www.openstreetmap.org/copyright" target="_blank">&copy; OpenStreetMap</a>`

const (
	extent = 4096   // units across a tile
	degree = 111195 // metres of latitude
)

// plan is how much there is of a town.
type plan struct {
	streets     int     // from its middle to each side, 200 m apart
	east, north float64 // degrees from its middle to its edges
	maxZoom     int
	leaf        int // how many tiles one directory lists, of several; 0: there is one
}

// Write makes a file of a town around a place: a park, a river, and streets 200 m apart, which have
// names.
func Write(file string, lng, lat float64) error {
	return plan{streets: 10, east: 0.04, north: 0.025, maxZoom: 14}.write(file, lng, lat)
}

// WriteCity makes a file like Write, of a city 20 by 20 km in size, to the zoom and with the
// directories of directories that files have which are cut from a map of the world.
func WriteCity(file string, lng, lat float64) error {
	return plan{streets: 50, east: 0.16, north: 0.1, maxZoom: 15, leaf: 128}.write(file, lng, lat)
}

func (p plan) write(file string, lng, lat float64) error {
	features := town(lng, lat, p.streets)
	type tile struct {
		id   uint64
		data []byte
	}
	var tiles []tile
	for z := 0; z <= p.maxZoom; z++ {
		west, north := project(lng-p.east, lat+p.north, z)
		east, south := project(lng+p.east, lat-p.north, z)
		for x := int(west); x <= int(east); x++ {
			for y := int(north); y <= int(south); y++ {
				data, err := squash(encode(features, z, x, y))
				if err != nil {
					return err
				}
				tiles = append(tiles, tile{tileID(z, x, y), data})
			}
		}
	}
	slices.SortFunc(tiles, func(a, b tile) int { return cmp.Compare(a.id, b.id) })

	var entries []entry
	var body, leaves []byte
	for _, t := range tiles {
		entries = append(entries, entry{t.id, 1, len(t.data), len(body)})
		body = append(body, t.data...)
	}
	if p.leaf > 0 {
		var roots []entry
		for list := range slices.Chunk(entries, p.leaf) {
			leaf, err := squash(directory(list))
			if err != nil {
				return err
			}
			roots = append(roots, entry{list[0].id, 0, len(leaf), len(leaves)})
			leaves = append(leaves, leaf...)
		}
		entries = roots
	}
	root, err := squash(directory(entries))
	if err != nil {
		return err
	}
	metadata, err := squash(fmt.Appendf(nil, `{"name":"Town","attribution":%q}`, Attribution))
	if err != nil {
		return err
	}

	head := append([]byte("PMTiles"), 3)
	at := uint64(127)
	for _, part := range [][]byte{root, metadata, leaves, body} {
		head = binary.LittleEndian.AppendUint64(head, at)
		head = binary.LittleEndian.AppendUint64(head, uint64(len(part)))
		at += uint64(len(part))
	}
	for range 3 { // tiles addressed, entries, contents
		head = binary.LittleEndian.AppendUint64(head, uint64(len(tiles)))
	}
	head = append(head, 1, 2, 2, 1, 0, byte(p.maxZoom)) // in order; gzip, gzip; vector tiles
	for _, degrees := range []float64{lng - p.east, lat - p.north, lng + p.east, lat + p.north} {
		head = binary.LittleEndian.AppendUint32(head, uint32(int32(degrees*1e7)))
	}
	head = append(head, 12)
	for _, degrees := range []float64{lng, lat} {
		head = binary.LittleEndian.AppendUint32(head, uint32(int32(degrees*1e7)))
	}
	return os.WriteFile(file, slices.Concat(head, root, metadata, leaves, body), 0o644)
}

// entry says where a tile is: how many after it have the same content. With none, not even itself, it
// is a further directory, and its tile the first one listed there.
type entry struct {
	id             uint64
	run            uint64
	length, offset int
}

// directory lists entries: their ids as differences, runs, lengths, offsets.
func directory(list []entry) []byte {
	b := binary.AppendUvarint(nil, uint64(len(list)))
	last := uint64(0)
	for _, e := range list {
		b = binary.AppendUvarint(b, e.id-last)
		last = e.id
	}
	for _, e := range list {
		b = binary.AppendUvarint(b, e.run)
	}
	for _, e := range list {
		b = binary.AppendUvarint(b, uint64(e.length))
	}
	for _, e := range list {
		b = binary.AppendUvarint(b, uint64(e.offset)+1)
	}
	return b
}

func squash(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}

// feature is a line or an area on the map.
type feature struct {
	layer  string
	area   bool
	points [][2]float64 // degrees
	tags   []string     // key, value, key, value
}

// town has so many streets to each side of its middle.
func town(lng, lat float64, streets int) []feature {
	k := float64(streets) / 10
	at := func(east, north float64) [2]float64 {
		return [2]float64{lng + east/degree/math.Cos(lat*math.Pi/180), lat + north/degree}
	}
	box := func(west, south, east, north float64) [][2]float64 {
		return [][2]float64{at(west, south), at(west, north), at(east, north), at(east, south)}
	}
	list := []feature{
		{"earth", true, box(-3000*k, -2500*k, 3000*k, 2500*k), []string{"kind", "earth"}},
		{"landuse", true, box(210, 210, 790, 590), []string{"kind", "park"}},
		{"water", true, [][2]float64{
			at(-3000*k, -900), at(-800, -620), at(900, -840), at(3000*k, -500),
			at(3000*k, -620), at(900, -960), at(-800, -740), at(-3000*k, -1020),
		}, []string{"kind", "river"}},
	}
	names := []string{"Ash", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Maple", "Oak", "Pine", "Rowan"}
	for i := range 2*streets + 1 {
		d, name := float64(i-streets)*200, names[i%len(names)]
		kind := "minor_road"
		if i%5 == 0 {
			kind = "major_road"
		}
		list = append(list,
			feature{"roads", false, [][2]float64{at(d, -2200*k), at(d, 2200*k)}, []string{
				"kind", kind, "name", name + " Street",
			}},
			feature{"roads", false, [][2]float64{at(-2600*k, d), at(2600*k, d)}, []string{
				"kind", kind, "name", name + " Avenue",
			}})
	}
	return list
}

// project says where a place is, in tiles of a zoom.
func project(lng, lat float64, z int) (x, y float64) {
	n := math.Exp2(float64(z))
	rad := lat * math.Pi / 180
	return n * (lng + 180) / 360, n * (1 - math.Asinh(math.Tan(rad))/math.Pi) / 2
}

// tileID is the number of a tile along the Hilbert curve of its zoom, after all tiles of the zooms
// before.
func tileID(z, x, y int) uint64 {
	id := uint64(0)
	for i := range z {
		id += 1 << (2 * i)
	}
	for s := 1 << z / 2; s > 0; s /= 2 {
		var rx, ry int
		if x&s > 0 {
			rx = 1
		}
		if y&s > 0 {
			ry = 1
		}
		id += uint64(s) * uint64(s) * uint64(3*rx^ry)
		if ry == 0 {
			if rx == 1 {
				x, y = s-1-x&(s-1), s-1-y&(s-1)
			}
			x, y = y, x
		}
	}
	return id
}

// encode makes a vector tile (Mapbox Vector Tile, version 2) of what is in all the map: what lies
// outside of the tile is not drawn.
func encode(features []feature, z, x, y int) []byte {
	var tile []byte
	for _, layer := range []string{"earth", "landuse", "water", "roads"} {
		data := text(nil, 1, layer)
		var keys, values []string
		index := func(list *[]string, s string) uint64 {
			i := slices.Index(*list, s)
			if i < 0 {
				i = len(*list)
				*list = append(*list, s)
			}
			return uint64(i)
		}
		for _, f := range features {
			if f.layer != layer {
				continue
			}
			var tags []byte
			for i := 0; i < len(f.tags); i += 2 {
				tags = binary.AppendUvarint(tags, index(&keys, f.tags[i]))
				tags = binary.AppendUvarint(tags, index(&values, f.tags[i+1]))
			}
			kind := uint64(2)
			if f.area {
				kind = 3
			}
			one := bytesField(nil, 2, tags)
			one = binary.AppendUvarint(append(one, 3<<3), kind)
			data = bytesField(data, 2, bytesField(one, 4, geometry(f, z, x, y)))
		}
		for _, k := range keys {
			data = text(data, 3, k)
		}
		for _, v := range values {
			data = bytesField(data, 4, text(nil, 1, v))
		}
		data = binary.AppendUvarint(append(data, 5<<3), extent)
		data = append(data, 15<<3, 2)
		tile = bytesField(tile, 3, data)
	}
	return tile
}

// geometry are the commands to draw a feature: one to move, one to all further points, and one to
// close an area.
func geometry(f feature, z, x, y int) []byte {
	var out []byte
	var lastX, lastY int
	for i, p := range f.points {
		px, py := project(p[0], p[1], z)
		toX, toY := int(math.Round((px-float64(x))*extent)), int(math.Round((py-float64(y))*extent))
		switch i {
		case 0:
			out = binary.AppendUvarint(out, 1<<3|1)
		case 1:
			out = binary.AppendUvarint(out, uint64(len(f.points)-1)<<3|2)
		}
		out = binary.AppendVarint(out, int64(toX-lastX)) // zigzag
		out = binary.AppendVarint(out, int64(toY-lastY))
		lastX, lastY = toX, toY
	}
	if f.area {
		out = binary.AppendUvarint(out, 1<<3|7)
	}
	return out
}

func bytesField(to []byte, number int, data []byte) []byte {
	to = binary.AppendUvarint(to, uint64(number)<<3|2)
	return append(binary.AppendUvarint(to, uint64(len(data))), data...)
}

func text(to []byte, number int, s string) []byte { return bytesField(to, number, []byte(s)) }
