// Links that leave the app: to navigation, to a map.

import type { Place } from '../shared/place';

export type Platform = 'android' | 'ios' | 'other';

export function platform(userAgent: string, touchPoints: number): Platform {
  if (/android/i.test(userAgent)) return 'android';
  // An iPad calls itself a Macintosh, but no Macintosh has a touch screen.
  if (/iphone|ipad|ipod/i.test(userAgent) || (/macintosh/i.test(userAgent) && touchPoints > 1)) return 'ios';
  return 'other';
}

/** The apps that show the way. geo is the phone's own choice (RFC 5870). */
export type MapApp = 'geo' | 'apple' | 'google' | 'waze' | 'osm';

/** The apps to choose from, the phone's own first. */
export function mapApps(on: Platform): MapApp[] {
  if (on === 'android') return ['geo', 'google', 'waze'];
  return on === 'ios' ? ['apple', 'google', 'waze'] : ['google', 'waze', 'osm'];
}

/** The link that shows the way to a place in an app; null where nobody knows where it is. */
export function navigationLink(place: Place, app: MapApp): string | null {
  const text = place.address ?? '';
  if (!place.lnglat && text === '') return null;
  const q = encodeURIComponent(text);
  const at = place.lnglat ? `${place.lnglat[1]},${place.lnglat[0]}` : '';
  switch (app) {
    case 'geo':
      return at ? `geo:${at}?q=${at}${text ? `(${q})` : ''}` : `geo:0,0?q=${q}`;
    case 'apple':
      return `https://maps.apple.com/?daddr=${at || q}`;
    case 'google':
      return `https://www.google.com/maps/dir/?api=1&destination=${at || q}`;
    case 'waze':
      return `https://waze.com/ul?${at ? 'll=' + at : 'q=' + q}&navigate=yes`;
    case 'osm':
      return place.lnglat ? `https://www.openstreetmap.org/?mlat=${place.lnglat[1]}&mlon=${place.lnglat[0]}#map=17/${place.lnglat[1]}/${place.lnglat[0]}` : `https://www.openstreetmap.org/search?query=${q}`;
  }
}

const setupSchemes = new Set(['org.traccar.client:', 'owntracks:', 'overland:', 'gpslogger:', 'https:', 'http:']);

/** Whether a set-up link may be shown as a link. */
export function safeSetupLink(link: string): boolean {
  const m = /^([a-z][a-z0-9.+-]*:)/i.exec(link);
  return m !== null && setupSchemes.has(m[1]!.toLowerCase());
}
