// The tenant's colours, made readable: text on them, and they as text, keep WCAG's contrast of 4.5.

/** `#rrggbb`. */
export type Hex = string;

const ENOUGH = 4.5;

function channels(hex: Hex): [number, number, number] {
  const value = Number.parseInt(hex.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** WCAG 2.2 "relative luminance". */
function luminance(hex: Hex): number {
  const [r, g, b] = channels(hex).map((channel) => {
    const c = channel / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** WCAG 2.2 "contrast ratio": 1 to 21. */
export function contrast(a: Hex, b: Hex): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function mix(hex: Hex, other: Hex, share: number): Hex {
  const to = channels(other);
  const mixed = channels(hex).map((channel, i) => Math.round(channel + ((to[i] ?? 0) - channel) * share));
  return `#${mixed.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;
}

/** Black or white, whichever reads better on a colour. */
export function textOn(background: Hex): Hex {
  return contrast(background, '#ffffff') >= ENOUGH ||
    contrast(background, '#ffffff') >= contrast(background, '#10121a')
    ? '#ffffff'
    : '#10121a';
}

/** A colour, moved towards black or white until it reads as text on a background. */
export function readableOn(hex: Hex, background: Hex): Hex {
  const towards = luminance(background) > 0.4 ? '#000000' : '#ffffff';
  for (let share = 0; share < 1; share += 0.05) {
    const candidate = mix(hex, towards, share);
    if (contrast(candidate, background) >= ENOUGH) return candidate;
  }
  return towards;
}

/** A colour that carries its text: darkened until white reads on it, where white nearly does. */
export function fill(hex: Hex): { background: Hex; text: Hex } {
  const text = textOn(hex);
  return { background: text === '#ffffff' ? readableOn(hex, '#ffffff') : hex, text };
}
