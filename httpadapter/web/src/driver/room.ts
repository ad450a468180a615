import { useLayoutEffect, useRef, useState } from 'preact/hooks';

const share = 1 / 4; // of the window's height

/** Keeps something in sight only where that leaves room for the work, as large letters and small screens do not. */
export function useRoom<E extends HTMLElement>(): { ref: { current: E | null }; loose: boolean } {
  const ref = useRef<E>(null);
  const [loose, setLoose] = useState(false);
  useLayoutEffect(() => {
    const look = () => setLoose(ref.current !== null && ref.current.offsetHeight > share * innerHeight);
    const seen = new ResizeObserver(look);
    seen.observe(ref.current!);
    addEventListener('resize', look);
    return () => {
      seen.disconnect();
      removeEventListener('resize', look);
    };
  }, []);
  return { ref, loose };
}
