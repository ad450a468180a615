// A sound for what is new.

/** Whether the page has been touched since it was opened. Before that, browsers refuse sound and vibration, and complain. */
function touched(): boolean {
  return (navigator.userActivation as UserActivation | undefined)?.hasBeenActive ?? true; // one that does not say is tried
}

/**
 * A sound and a vibration for what is new. Browsers allow sound only after a touch, and anew after
 * each loading of the page: `arm` is called from one.
 */
export class Alarm {
  private audio: AudioContext | null = null;
  private never = typeof AudioContext === 'undefined';

  constructor(private readonly onChange: () => void) {}

  /** Whether it can be heard: yes; after a touch; or never on this phone. */
  get sound(): 'on' | 'touch' | 'none' {
    return this.never ? 'none' : this.audio?.state === 'running' ? 'on' : 'touch';
  }

  arm(): void {
    if (!touched() || this.sound !== 'touch') return; // not touched: called by a script, as from a page that fills in the code
    try {
      if (!this.audio) {
        this.audio = new AudioContext();
        this.audio.onstatechange = this.onChange; // a call takes the sound away, too
      }
      if (this.audio.state !== 'running') void this.audio.resume().then(this.onChange, () => {});
    } catch {
      this.never = true;
    }
    this.onChange();
  }

  ring(): void {
    if (!touched()) return;
    try {
      navigator.vibrate?.([250, 120, 250]);
    } catch {
      // Not allowed here.
    }
    const a = this.audio;
    if (!a || a.state !== 'running') return;
    for (const [i, hz] of [659, 880, 659, 880].entries()) {
      const from = a.currentTime + i * 0.18;
      const tone = a.createOscillator();
      const gain = a.createGain();
      tone.type = 'triangle';
      tone.frequency.value = hz;
      gain.gain.setValueAtTime(0.0001, from);
      gain.gain.exponentialRampToValueAtTime(0.4, from + 0.02);
      gain.gain.exponentialRampToValueAtTime(0.0001, from + 0.16);
      tone.connect(gain).connect(a.destination);
      tone.start(from);
      tone.stop(from + 0.17);
    }
  }
}
