// What a map stands on: a vector map from one file, raster tiles, or a grid of our own with a scale.

import * as L from 'leaflet';
import type { BaseMap, Tiles } from './config';

/** A grid of hair lines that moves and zooms with the map. */
const Grid = L.GridLayer.extend({
  createTile() {
    return L.DomUtil.create('div', 'grid-tile');
  },
}) as unknown as new (o: L.GridLayerOptions) => L.GridLayer;

export interface GroundOptions {
  map?: BaseMap;
  tiles?: Tiles;
  dark: boolean;
  lang: string;
}

/** The largest zoom that makes sense. */
export const largestZoom = (o: GroundOptions): number => (o.map ? 19 : (o.tiles?.max_zoom ?? 18));

/** Lays the ground below a map. Without a map of streets it shows how far things are apart. */
export function layGround(map: L.Map, o: GroundOptions): void {
  if (o.map) {
    const base = o.map;
    attribute(map, base.attribution, base.attribution_url);
    void import('./basemap').then(
      ({ baseLayer }) => flat(baseLayer(base, o.dark, o.lang)).addTo(map),
      () => layGrid(map), // offline before it was ever loaded
    );
    return;
  }
  const tiles = o.tiles;
  if (!tiles) {
    layGrid(map);
    return;
  }
  const own = o.dark && tiles.dark_url;
  flat(
    L.tileLayer(own ? tiles.dark_url! : tiles.url, {
      maxZoom: tiles.max_zoom,
      className: o.dark && !own ? 'tiles-inverted' : '',
      referrerPolicy: 'strict-origin-when-cross-origin',
    }),
  ).addTo(map);
  attribute(map, tiles.attribution, tiles.attribution_url);
}

/** Puts tiles by left and top: by a transform, as Leaflet does it, each would be a layer of its own for the browser to put together. */
function flat(layer: L.GridLayer): L.GridLayer {
  return layer.on('tileloadstart', ({ tile }: L.TileEvent) => {
    const at = L.DomUtil.getPosition(tile);
    tile.style.transform = '';
    tile.style.left = at.x + 'px';
    tile.style.top = at.y + 'px';
  });
}

function layGrid(map: L.Map): void {
  flat(new Grid({ tileSize: 256, updateWhenZooming: false })).addTo(map);
  L.control.scale({ imperial: false, position: 'bottomleft', maxWidth: 120, updateWhenIdle: true }).addTo(map);
}

function attribute(map: L.Map, text: string | undefined, url: string | undefined): void {
  if (!text) return;
  L.control.attribution({ prefix: false, position: 'bottomright' }).addTo(map).addAttribution(attribution(text, url));
}

/** Leaflet takes the attribution as HTML, so it is made from text nodes. */
function attribution(text: string, url: string | undefined): string {
  const box = document.createElement('span');
  if (url) {
    const a = document.createElement('a');
    a.href = url;
    a.target = '_blank';
    a.rel = 'noopener';
    a.textContent = text;
    box.append(a);
  } else {
    box.textContent = text;
  }
  return box.innerHTML;
}
