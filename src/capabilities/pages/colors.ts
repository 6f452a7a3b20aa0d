// Turns the tenant's colours into custom properties of the pages, adjusted to the contrast of WCAG 2.2 §1.4.3 and
// §1.4.11 in the light and the dark scheme.

/** Only `#rrggbb`, because it is written into a style element unescaped. */
export type Hex = `#${string}`;

interface BrandColors {
  primary?: string | undefined;
  /** A colour or a gradient. The page's colour is the start of a gradient. */
  page_background?: string | { readonly start: string } | undefined;
}

const HEX = /^#[0-9a-f]{6}$/i;
const WHITE: Hex = '#ffffff';
const BLACK: Hex = '#000000';
/**
 * Contrast of text with its background. §1.4.3 requires 4.5; surfaces are shaded under the pointer, so a little more
 * is kept.
 */
export const TEXT_CONTRAST = 5.5;
/** Contrast of the edge of a control with its background (§1.4.11). */
export const EDGE_CONTRAST = 3;

interface Scheme {
  primary: Hex;
  page: Hex;
  /** The share of the primary colour in the page's colour, 0 to 1. */
  tint: number;
  surface: Hex;
  ink: Hex;
}

/** Default colours. */
const DEFAULTS = {
  light: { primary: '#2b5b52', page: '#eff0ec', tint: 0.08, surface: '#ffffff', ink: '#1b1e22' },
  dark: { primary: '#8fd3be', page: '#0b0e10', tint: 0.03, surface: '#171b1e', ink: '#eceff0' },
} as const satisfies Record<string, Scheme>;

/** Custom properties, by their names without the two hyphens. */
type Properties = Readonly<Record<string, string>>;

/** Returns the custom properties of both colour schemes as CSS. Invalid colours fall back to the defaults. */
export function themeCss(brand: BrandColors): string {
  const { light, dark } = brandSchemes(brand);
  return `:root{${declarations(light)}}@media (prefers-color-scheme:dark){:root{${declarations(dark)}}}`;
}

function brandSchemes(brand: BrandColors): { light: Properties; dark: Properties } {
  const primary = parseHex(brand.primary);
  const { page_background: background } = brand;
  const page = parseHex(typeof background === 'object' ? background.start : background);
  // A light page colour would glare in the dark scheme.
  const darkPage = page !== undefined && luminance(page) < 0.1 ? page : undefined;
  return { light: scheme(DEFAULTS.light, primary, page), dark: scheme(DEFAULTS.dark, primary, darkPage) };
}

/** @param url the address of the font file; anything but an https address gives no CSS. */
export function fontCss(url: unknown): { css: string; origin?: string } {
  const file = addressCss(url);
  if (file === undefined) return { css: '' };
  const face = `@font-face{font-family:tenant;src:${file.css};font-display:swap}`;
  return {
    css: `${face}body,button,input,select{font-family:tenant,system-ui,sans-serif}`,
    origin: file.origin,
  };
}

/** Returns an https address as a CSS `url()`, with its origin; undefined for anything else. */
export function addressCss(url: unknown): { css: string; origin: string } | undefined {
  const address = typeof url === 'string' ? URL.parse(url) : null;
  if (address?.protocol !== 'https:') return undefined;
  // Percent-encodes every character that could end the CSS string or the style element.
  const href = address.href.replaceAll(/[\\"'<>()]/g, encodeSign);
  return { css: `url("${href}")`, origin: address.origin };
}

const encodeSign = (sign: string) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`;

/** The colours of mails. Mail programs do not all support custom properties. */
export interface MailColors {
  page: Hex;
  surface: Hex;
  ink: Hex;
  primary: Hex;
  onPrimary: Hex;
  /** The primary colour, adjusted to be readable as text on the surface. */
  accent: Hex;
}

/** Returns the colours of mails in both schemes. */
export function mailColors(brand: BrandColors): { light: MailColors; dark: MailColors } {
  const primary = parseHex(brand.primary);
  const colors = (
    { primary: byDefault, page, tint, surface, ink }: Scheme,
    chosen: Hex = byDefault,
  ): MailColors => ({
    page: mix(page, chosen, tint),
    surface,
    ink,
    primary: chosen,
    onPrimary: blackOrWhite(chosen),
    accent: readable(chosen, surface, TEXT_CONTRAST),
  });
  return { light: colors(DEFAULTS.light, primary), dark: colors(DEFAULTS.dark, primary) };
}

function scheme(defaults: Scheme, primary: Hex = defaults.primary, page?: Hex): Record<string, Hex> {
  const { surface, ink } = defaults;
  const accent = readable(primary, surface, TEXT_CONTRAST);
  return {
    ...pageColors(page ?? mix(defaults.page, primary, defaults.tint), accent),
    surface,
    ink,
    ...primaryColors(primary, blackOrWhite(primary), surface, accent),
    accent,
  };
}

/** Returns the properties of the page behind the card. */
export function pageColors(page: Hex, accent: Hex): Record<string, Hex> {
  return { page, 'on-page': blackOrWhite(page), ...arches(page, accent) };
}

/** Returns the properties of primary buttons. @param label the colour of a button's text, readable on `primary`. */
export function primaryColors(primary: Hex, label: Hex, surface: Hex, accent: Hex): Record<string, Hex> {
  return {
    primary,
    'on-primary': label,
    // The hover colour moves away from the text's colour, which raises the contrast.
    'primary-hover': mix(primary, luminance(label) > luminance(primary) ? BLACK : WHITE, 0.14),
    'primary-edge': contrast(primary, surface) >= EDGE_CONTRAST ? primary : accent,
  };
}

/** Returns the shades of the arches behind the card, which become lighter towards the middle. */
function arches(page: Hex, accent: Hex): Record<string, Hex> {
  const isLight = luminance(page) > 0.4;
  const shares = isLight ? [0.72, 0.46, 0.26, 0.12] : [0.11, 0.075, 0.045, 0.02];
  const light = isLight ? WHITE : mix(WHITE, accent, 0.35);
  return Object.fromEntries(shares.map((share, i) => [`arch-${i + 1}`, mix(page, light, share)]));
}

export function declarations(all: Properties): string {
  return Object.entries(all)
    .map(([name, value]) => `--${name}:${value}`)
    .join(';');
}

/** Returns a colour as lower-case `#rrggbb`; undefined for anything else. */
export function parseHex(text: string | undefined): Hex | undefined {
  return text !== undefined && HEX.test(text) ? (text.toLowerCase() as Hex) : undefined;
}

/** Returns the contrast ratio of two colours (WCAG 2.2), from 1 (none) to 21 (black on white). */
export function contrast(a: Hex, b: Hex): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/** Returns black or white, whichever has more contrast with a colour; that is always at least 4.5. */
export function blackOrWhite(background: Hex): Hex {
  return contrast(WHITE, background) >= contrast(BLACK, background) ? WHITE : BLACK;
}

/** Returns a colour, moved towards black or white until it has the required contrast with a background. */
export function readable(color: Hex, background: Hex, minContrast: number): Hex {
  const end = blackOrWhite(background);
  for (let share = 0; share < 1; share += 0.04) {
    const candidate = mix(color, end, share);
    if (contrast(candidate, background) >= minContrast) return candidate;
  }
  return end;
}

/** Returns the relative luminance of a colour (WCAG 2.2), from 0 (black) to 1 (white). */
function luminance(hex: Hex): number {
  const [r = 0, g = 0, b = 0] = channels(hex).map((value) => {
    const c = value / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function channels(hex: Hex): number[] {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}

/** Mixes two colours. @param share the share of `other`, 0 to 1. */
export function mix(hex: Hex, other: Hex, share: number): Hex {
  const to = channels(other);
  const mixed = channels(hex).map((value, i) => Math.round(value + ((to[i] ?? 0) - value) * share));
  return `#${mixed.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}
