// The tenant's colours as custom properties of the pages, adjusted to the contrast of WCAG 2.2 §1.4.3 and §1.4.11 in the
// light and the dark scheme.

/** `#rrggbb` only: it is written into a style element unescaped. */
export type Hex = `#${string}`;

interface BrandColors {
  primary?: string | undefined;
  /** A colour, or a gradient: what it begins with is the page's colour. */
  page_background?: string | { readonly start: string } | undefined;
}

const HEX = /^#[0-9a-f]{6}$/i;
const WHITE: Hex = '#ffffff';
const BLACK: Hex = '#000000';
/** Text on its background: §1.4.3 wants 4.5; a little more, because surfaces are shaded under the pointer. */
export const TEXT_CONTRAST = 5.5;
/** The edge of a control on its background; §1.4.11. */
export const EDGE_CONTRAST = 3;

interface Scheme {
  primary: Hex;
  page: Hex;
  /** Share of the primary colour in the page's, 0 to 1. */
  tint: number;
  surface: Hex;
  ink: Hex;
}

/** Default colours. */
const OWN = {
  light: { primary: '#2b5b52', page: '#eff0ec', tint: 0.08, surface: '#ffffff', ink: '#1b1e22' },
  dark: { primary: '#8fd3be', page: '#0b0e10', tint: 0.03, surface: '#171b1e', ink: '#eceff0' },
} as const satisfies Record<string, Scheme>;

/** Custom properties, by their names without the two hyphens. */
type Properties = Readonly<Record<string, string>>;

/** The custom properties of both colour schemes, as CSS. Invalid colours fall back to the defaults. */
export function themeCss(brand: BrandColors): string {
  const { light, dark } = brandSchemes(brand);
  return `:root{${declarations(light)}}@media (prefers-color-scheme:dark){:root{${declarations(dark)}}}`;
}

function brandSchemes(brand: BrandColors): { light: Properties; dark: Properties } {
  const primary = parseHex(brand.primary);
  const { page_background: background } = brand;
  const page = parseHex(typeof background === 'object' ? background.start : background);
  // The dark scheme keeps the tenant's page colour only if that is dark.
  const darkPage = page !== undefined && luminance(page) < 0.1 ? page : undefined;
  return { light: scheme(OWN.light, primary, page), dark: scheme(OWN.dark, primary, darkPage) };
}

/**
 * The tenant's font as CSS, and where it comes from.
 * @param url its file; what is no https address is left out.
 */
export function fontCss(url: unknown): { css: string; origin?: string } {
  const file = addressCss(url);
  if (file === undefined) return { css: '' };
  const face = `@font-face{font-family:tenant;src:${file.css};font-display:swap}`;
  return {
    css: `${face}body,button,input,select{font-family:tenant,system-ui,sans-serif}`,
    origin: file.origin,
  };
}

/** An https address as CSS, and its origin; undefined for what is none. */
export function addressCss(url: unknown): { css: string; origin: string } | undefined {
  const address = typeof url === 'string' ? URL.parse(url) : null;
  if (address?.protocol !== 'https:') return undefined;
  // Written into a style element: no sign of this may end the text or the element.
  const href = address.href.replaceAll(/[\\"'<>()]/g, encodeSign);
  return { css: `url("${href}")`, origin: address.origin };
}

const encodeSign = (sign: string) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`;

/** The colours of mails, where custom properties do not work everywhere. */
export interface MailColors {
  page: Hex;
  surface: Hex;
  ink: Hex;
  primary: Hex;
  onPrimary: Hex;
  /** The primary colour as text on the surface. */
  accent: Hex;
}

/** The mail's colours of both schemes. */
export function mailColors(brand: BrandColors): { light: MailColors; dark: MailColors } {
  const own = parseHex(brand.primary);
  const colors = ({ primary, page, tint, surface, ink }: Scheme, chosen: Hex = primary): MailColors => ({
    page: mix(page, chosen, tint),
    surface,
    ink,
    primary: chosen,
    onPrimary: blackOrWhite(chosen),
    accent: readable(chosen, surface, TEXT_CONTRAST),
  });
  return { light: colors(OWN.light, own), dark: colors(OWN.dark, own) };
}

function scheme(own: Scheme, primary: Hex = own.primary, page?: Hex): Record<string, Hex> {
  const { surface, ink } = own;
  const accent = readable(primary, surface, TEXT_CONTRAST);
  return {
    ...pageColors(page ?? mix(own.page, primary, own.tint), accent),
    surface,
    ink,
    ...primaryColors(primary, blackOrWhite(primary), surface, accent),
    accent,
  };
}

/** Of the page behind the card. */
export function pageColors(page: Hex, accent: Hex): Record<string, Hex> {
  return { page, 'on-page': blackOrWhite(page), ...arches(page, accent) };
}

/** Of a button that is pressed to go on, on a surface. @param label the colour of its text, readable on it. */
export function primaryColors(primary: Hex, label: Hex, surface: Hex, accent: Hex): Record<string, Hex> {
  return {
    primary,
    'on-primary': label,
    // Away from the text's colour, so that hovering raises the contrast.
    'primary-hover': mix(primary, luminance(label) > luminance(primary) ? BLACK : WHITE, 0.14),
    'primary-edge': contrast(primary, surface) >= EDGE_CONTRAST ? primary : accent,
  };
}

/** The arches behind the card: from the page's colour towards white, inwards. */
function arches(page: Hex, accent: Hex): Record<string, Hex> {
  const isLight = luminance(page) > 0.4;
  const shares = isLight ? [0.72, 0.46, 0.26, 0.12] : [0.11, 0.075, 0.045, 0.02];
  const light = isLight ? WHITE : mix(WHITE, accent, 0.35);
  return Object.fromEntries(shares.map((share, i) => [`arch-${i + 1}`, mix(page, light, share)]));
}

/** Custom properties as CSS. */
export function declarations(all: Properties): string {
  return Object.entries(all)
    .map(([name, value]) => `--${name}:${value}`)
    .join(';');
}

/** A colour as `#rrggbb`; undefined for what is none. */
export function parseHex(text: string | undefined): Hex | undefined {
  return text !== undefined && HEX.test(text) ? (text.toLowerCase() as Hex) : undefined;
}

/** WCAG 2.2 "contrast ratio": from 1, none, to 21, black on white. */
export function contrast(a: Hex, b: Hex): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/** Black or white, whichever has more contrast on a colour: always at least 4.5. */
export function blackOrWhite(background: Hex): Hex {
  return contrast(WHITE, background) >= contrast(BLACK, background) ? WHITE : BLACK;
}

/** A colour, moved towards black or white until it has the contrast on a background. */
export function readable(color: Hex, background: Hex, wanted: number): Hex {
  const end = blackOrWhite(background);
  for (let share = 0; share < 1; share += 0.04) {
    const candidate = mix(color, end, share);
    if (contrast(candidate, background) >= wanted) return candidate;
  }
  return end;
}

/** WCAG 2.2 "relative luminance": from 0, black, to 1, white. */
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

/** @param share of `other`, 0 to 1. */
export function mix(hex: Hex, other: Hex, share: number): Hex {
  const to = channels(other);
  const mixed = channels(hex).map((value, i) => Math.round(value + ((to[i] ?? 0) - value) * share));
  return `#${mixed.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}
