// Makes a photo small enough to be sent from the road.

export const longSide = 1600; // px
export const mostBytes = 2 * 1024 * 1024; // what the server takes
export const mostFiles = 10; // of a task

export interface Size {
  width: number;
  height: number;
}

/** A file that is no picture, or none that this browser can read. */
export class NoPicture extends Error {}

/** The size within a longest side, in whole pixels. Nothing is made larger. */
export function fit({ width, height }: Size, longest: number): Size {
  const scale = Math.min(1, longest / Math.max(width, height));
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
}

const qualities = [0.82, 0.7, 0.55, 0.4];

/** The best encoding that is not too large: first with less quality, then with fewer pixels. */
export async function within(encode: (longest: number, quality: number) => Promise<Blob | null>, most = mostBytes): Promise<Blob> {
  for (let longest = longSide; longest >= 200; longest = Math.round(longest / 2)) {
    for (const quality of qualities) {
      const blob = await encode(longest, quality);
      if (!blob) throw new NoPicture();
      if (blob.size <= most) return blob;
    }
  }
  throw new NoPicture();
}

/** Decodes a picture, turned as its camera says. */
async function decode(file: Blob): Promise<ImageBitmap> {
  try {
    return await createImageBitmap(file, { imageOrientation: 'from-image' });
  } catch (e) {
    if (!(e instanceof TypeError)) throw new NoPicture();
    return createImageBitmap(file).catch(() => Promise.reject(new NoPicture())); // an older browser: it turns without being told
  }
}

/** A photo as a JPEG that can be sent. Throws NoPicture. */
export async function photo(file: Blob): Promise<Blob> {
  const bitmap = await decode(file);
  try {
    return await within((longest, quality) => {
      const size = fit(bitmap, longest);
      const canvas = Object.assign(document.createElement('canvas'), size);
      const c = canvas.getContext('2d');
      if (!c) return Promise.resolve(null);
      c.fillStyle = '#fff'; // behind what is transparent
      c.fillRect(0, 0, size.width, size.height);
      c.imageSmoothingQuality = 'high';
      c.drawImage(bitmap, 0, 0, size.width, size.height);
      return new Promise((done) => canvas.toBlob(done, 'image/jpeg', quality));
    });
  } finally {
    bitmap.close();
  }
}
