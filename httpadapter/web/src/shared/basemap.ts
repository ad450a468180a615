// The vector map, drawn from one file that is read in parts. Loaded only where there is one.

import type * as L from 'leaflet';
import { leafletLayer } from 'protomaps-leaflet';
import type { BaseMap } from './config';

export function baseLayer(base: BaseMap, dark: boolean, lang: string): L.GridLayer {
  return leafletLayer({
    url: base.url,
    flavor: dark ? 'dark' : 'light',
    lang: lang.split('-')[0],
    maxDataZoom: base.max_zoom,
    attribution: '', // is on the map already
  }) as unknown as L.GridLayer;
}
