// Links that leave the app: to the telephone, to navigation, to a map.

import type { Place } from './model';

export type Platform = 'android' | 'ios' | 'other';

export function platform(userAgent: string, touchPoints: number): Platform {
  if (/android/i.test(userAgent)) return 'android';
  // An iPad calls itself a Macintosh, but no Macintosh has a touch screen.
  if (/iphone|ipad|ipod/i.test(userAgent) || (/macintosh/i.test(userAgent) && touchPoints > 1)) return 'ios';
  return 'other';
}

/** A tel: link, or null when there is nothing to dial. */
export function telLink(mobile: string | undefined): string | null {
  const digits = (mobile ?? '').replace(/[^\d+*#,;]/g, '');
  return /\d/.test(digits) ? 'tel:' + digits.replace(/#/g, '%23') : null;
}

/** The link that opens the phone's own navigation: geo: on Android (RFC 5870), Apple's maps on an iPhone. */
export function navigationLink(place: Place, on: Platform): string | null {
  const text = place.address ?? '';
  if (!place.lnglat && text === '') return null;
  const q = encodeURIComponent(text);
  const at = place.lnglat ? `${place.lnglat[1]},${place.lnglat[0]}` : '';
  switch (on) {
    case 'android':
      return at ? `geo:${at}?q=${at}${text ? `(${q})` : ''}` : `geo:0,0?q=${q}`;
    case 'ios':
      return `maps://?daddr=${at || q}`;
  }
  return mapLink(place);
}

/** A map on the web. */
export function mapLink(place: Place): string | null {
  if (place.lnglat) {
    const [lng, lat] = place.lnglat;
    return `https://www.openstreetmap.org/?mlat=${lat}&mlon=${lng}#map=17/${lat}/${lng}`;
  }
  return place.address ? `https://www.openstreetmap.org/search?query=${encodeURIComponent(place.address)}` : null;
}

const setupSchemes = new Set(['org.traccar.client:', 'owntracks:', 'overland:', 'gpslogger:', 'https:', 'http:']);

/** Whether a set-up link may be shown as a link. */
export function safeSetupLink(link: string): boolean {
  const m = /^([a-z][a-z0-9.+-]*:)/i.exec(link);
  return m !== null && setupSchemes.has(m[1]!.toLowerCase());
}
