// A QR code as one SVG path, dark on white in both themes: many scanners read nothing else.

import { generate } from 'lean-qr';

export function QR({ text, label }: { text: string; label: string }) {
  const code = generate(text);
  const quiet = 4; // modules of white around it, which the standard asks for
  let d = '';
  for (let y = 0; y < code.size; y++) {
    for (let x = 0; x < code.size; x++) {
      if (!code.get(x, y)) continue;
      let run = 1;
      while (x + run < code.size && code.get(x + run, y)) run++;
      d += `M${x + quiet} ${y + quiet}h${run}v1h-${run}z`;
      x += run;
    }
  }
  const size = code.size + 2 * quiet;
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={d} fill="#000" />
    </svg>
  );
}
