// Notices to a locked phone, by Web Push.

import type { App } from './app';

export type PushState = 'unset' | 'insecure' | 'none' | 'ios' | 'off' | 'on' | 'denied';

export async function pushState(app: App, ios: boolean): Promise<PushState> {
  if (!app.config.push_key) return 'unset'; // the server sends none, to whichever browser
  if (!isSecureContext) return 'insecure';
  if (!('serviceWorker' in navigator) || !('PushManager' in window)) {
    return ios && !matchMedia('(display-mode: standalone)').matches ? 'ios' : 'none';
  }
  if (Notification.permission === 'denied') return 'denied';
  const registration = await navigator.serviceWorker.getRegistration(app.appUrl);
  const subscription = await registration?.pushManager.getSubscription();
  const kept = await app.store.get('push');
  const mine = kept && kept.driver === app.session?.driver.driver_id && kept.endpoint === subscription?.endpoint;
  return subscription && mine ? 'on' : 'off';
}

/** Asks for leave, subscribes and tells the server. Must be called from a touch. */
export async function enablePush(app: App): Promise<boolean> {
  if ((await Notification.requestPermission()) !== 'granted') return false;
  const registration = await navigator.serviceWorker.ready;
  const subscription = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: app.config.push_key! });
  const r = await app.api.call('POST', '/v1/driver/push', subscription.toJSON());
  if (r.kind !== 'ok' || !app.session) return false;
  await app.store.set('push', { driver: app.session.driver.driver_id, endpoint: subscription.endpoint });
  return true;
}

/** Ends the notices to this phone. Best effort: without a network the server finds out when it next tries. */
export async function disablePush(app: App): Promise<void> {
  if (!('serviceWorker' in navigator) || !('PushManager' in window)) return;
  const registration = await navigator.serviceWorker.getRegistration(app.appUrl);
  const subscription = await registration?.pushManager.getSubscription();
  if (!subscription) return;
  await app.api.call('POST', '/v1/driver/push/delete', { endpoint: subscription.endpoint });
  await subscription.unsubscribe();
  await app.store.remove('push');
}
