// What the server wrote into the page.

export type Words = Record<string, string>;

export interface Tiles {
  url: string;
  dark_url?: string;
  attribution?: string;
  attribution_url?: string;
  max_zoom: number;
}

export interface Config {
  base: string;
  lang: string;
  time_zone?: string;
  words: Words;
  tiles?: Tiles;
  name: string;
  token?: string;
  tracking?: unknown;
  now: number;
  push_key?: string;
  logo?: string; // driver app; the tracking page's is in its HTML
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
