// What the server wrote into the page.

export type Words = Record<string, string>;

export interface Tiles {
  url: string;
  dark_url?: string;
  attribution?: string;
  attribution_url?: string;
  max_zoom: number;
}

/** A vector map in one file. */
export interface BaseMap {
  url: string;
  attribution?: string;
  attribution_url?: string;
  max_zoom: number; // that the file holds
}

export interface Config {
  base: string;
  lang: string;
  time_zone?: string;
  words: Words;
  tiles?: Tiles;
  map?: BaseMap;
  name: string;
  token?: string;
  tracking?: unknown;
  now: number;
  reasons: Record<string, string>; // the words of a reason_code; one that is not there is left out
  links?: { contact?: string; help?: string; feedback?: string }; // tracking page
  push_key?: string;
  logo?: string; // driver app, board; the tracking page's is in its HTML
  keys?: boolean; // board: API keys are taken
  geocodes?: boolean; // board: addresses can be looked up
  silent_after?: number; // board: ms
}

export function readConfig(doc: Document): Config {
  return JSON.parse(doc.getElementById('config')!.textContent!) as Config;
}

/** Puts values into the {places} of a text. */
export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (place, name: string) => (name in values ? String(values[name]) : place));
}

/** A look-up in the table of texts; a key that is missing shows itself. */
export function translator(words: Words): (key: string, values?: Record<string, string | number>) => string {
  return (key, values = {}) => fill(words[key] ?? key, values);
}
export type Translate = ReturnType<typeof translator>;
