// Places and the people at them, as the API tells of them.

import type { LngLat } from './geo';

export interface Contact {
  name?: string;
  mobile?: string;
}

export interface Place {
  lnglat?: LngLat;
  address?: string;
  customer?: Contact;
}
