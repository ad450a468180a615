// The service worker, and the browser's offer to install the app.

interface InstallPrompt extends Event {
  prompt(): Promise<void>;
}

export class Install {
  prompt: InstallPrompt | null = null;
  updated = false;
  private readonly listeners = new Set<() => void>();

  constructor(base: string) {
    addEventListener('beforeinstallprompt', (e) => {
      e.preventDefault();
      this.prompt = e as InstallPrompt;
      this.changed();
    });
    addEventListener('appinstalled', () => {
      this.prompt = null;
      this.changed();
    });
    if ('serviceWorker' in navigator) {
      const had = navigator.serviceWorker.controller !== null;
      navigator.serviceWorker.addEventListener('controllerchange', () => {
        if (!had) return; // the first one is no update
        this.updated = true;
        this.changed();
      });
      // A notice was tapped while the app was open.
      navigator.serviceWorker.addEventListener('message', (e) => {
        const hash = (e.data as { open?: unknown } | null)?.open;
        if (typeof hash === 'string' && hash.startsWith('#task/')) location.hash = hash;
      });
      // Without it (a private window, no HTTPS) the app works, but only with a network.
      navigator.serviceWorker.register(base + '/driver/sw.js', { scope: base + '/driver/' }).catch(() => {});
    }
  }

  subscribe(f: () => void): () => void {
    this.listeners.add(f);
    return () => this.listeners.delete(f);
  }

  private changed(): void {
    for (const f of this.listeners) f();
  }

  async install(): Promise<void> {
    const p = this.prompt;
    this.prompt = null;
    this.changed();
    await p?.prompt();
  }
}
