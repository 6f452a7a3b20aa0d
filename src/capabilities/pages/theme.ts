// Turns the tenant's theme (`/branding/themes`) into custom properties and a few CSS rules. Its colours are adjusted
// to the contrast of colors.ts. Where a member is missing or invalid, the page keeps the value of the branding.
// docs/understand/decisions/login-pages.md#a-theme-applies-to-the-hosted-pages-and-keeps-them-readable
import {
  addressCss,
  blackOrWhite,
  contrast,
  declarations,
  EDGE_CONTRAST,
  type Hex,
  mix,
  pageColors,
  parseHex,
  primaryColors,
  readable,
  TEXT_CONTRAST,
} from './colors.ts';

/** A theme as stored. Every member is checked where it is used. */
export type Theme = Readonly<Record<string, unknown>>;

interface ThemeLook {
  /** CSS that follows the CSS of the branding. */
  css: string;
  /** The origin of the image behind the card, for the page's content security policy. */
  image?: string[];
}

/** Colours of an organization that take precedence over the theme's. */
export interface OrganizationColors {
  primary?: string | undefined;
  page?: string | undefined;
}

/** The shares of the text's colour in the lines and in the quiet parts of a surface. */
const LINE = 0.14;
const QUIET = 0.05;
const WHITE: Hex = '#ffffff';
const BLACK: Hex = '#000000';
/** Smaller text is not readable, and larger text does not fit the card. Percent. */
const FONT_PERCENT = { smallest: 75, largest: 200 };

/** Returns the CSS of a theme. @param own an organization's colours. */
export function themeLook(theme: Theme, own: OrganizationColors = {}): ThemeLook {
  const { colors, isDark } = schemeOf(theme, own);
  const background = addressCss(section(theme, 'page_background').background_image_url);
  const scheme = `:root{color-scheme:${isDark ? 'dark' : 'light'};${declarations(colors)}}`;
  // A light theme would glare in the dark scheme, so the dark scheme of the branding applies there.
  const colorsCss = isDark ? scheme : `@media not (prefers-color-scheme:dark){${scheme}}`;
  const css = [
    colorsCss,
    `:root{${declarations({ ...bordersOf(theme), ...fontsOf(theme) })}}`,
    placesCss(theme),
    background === undefined
      ? ''
      : `.arch{display:none}.gate{background:${background.css} center/cover no-repeat}`,
  ].join('');
  return { css, ...(background !== undefined && { image: [background.origin] }) };
}

/**
 * Returns the backgrounds of text: `quiet` is the card's surface shaded towards the text, or away from it where the
 * contrast would suffer.
 */
function groundsOf(surface: Hex) {
  const end = blackOrWhite(surface);
  const towards = mix(surface, end, QUIET);
  const isTowards = contrast(towards, end) >= 7;
  const quiet = isTowards ? towards : mix(surface, end === WHITE ? BLACK : WHITE, QUIET);
  // `worst` gives text less contrast than the other background: text that is readable on it is readable on both.
  return { end, quiet, worst: isTowards ? quiet : surface };
}

/** Returns the colours of a theme, each moved until its contrast suffices, and whether they are light on dark. */
function schemeOf(
  theme: Theme,
  own: OrganizationColors,
): { colors: Record<string, string>; isDark: boolean } {
  const colors = section(theme, 'colors');
  const color = (name: string): Hex | undefined => colorOf(colors[name]);
  const surface = color('widget_background') ?? WHITE;
  const { end, quiet, worst } = groundsOf(surface);
  const text = (name: string, other: Hex = end) => readable(color(name) ?? other, worst, TEXT_CONTRAST);
  const edge = (name: string) => readable(color(name) ?? mix(surface, end, 0.5), worst, EDGE_CONTRAST);
  const ink = text('body_text');
  const primary = parseHex(own.primary) ?? color('primary_button') ?? '#2b5b52';
  const label = own.primary === undefined ? color('primary_button_label') : undefined;
  const isRead = label !== undefined && contrast(label, primary) >= 4.5;
  const accent = text('links_focused_components', primary);
  const page = parseHex(own.page) ?? colorOf(section(theme, 'page_background').background_color);
  const field = color('input_background') ?? surface;
  const danger = text('error', '#b3261e');
  const reddish = mix(surface, danger, 0.06);
  return {
    isDark: end === WHITE,
    colors: {
      ...pageColors(page ?? mix(surface, primary, 0.08), accent),
      surface,
      ink,
      heading: text('header', ink),
      muted: text('input_labels_placeholders', mix(ink, surface, 0.3)),
      accent,
      ...primaryColors(primary, isRead ? label : blackOrWhite(primary), surface, accent),
      edge: edge('input_border'),
      hairline: mix(surface, end, LINE),
      quiet,
      field,
      'on-field': readable(color('input_filled_text') ?? ink, field, TEXT_CONTRAST),
      'on-secondary': text('secondary_button_label', ink),
      'edge-secondary': edge('secondary_button_border'),
      danger,
      'danger-quiet': contrast(reddish, danger) >= 4.5 ? reddish : surface,
      good: text('success', '#1c6b43'),
      'edge-card': color('widget_border') ?? mix(surface, end, LINE),
    },
  };
}

function bordersOf(theme: Theme): Record<string, string> {
  const borders = section(theme, 'borders');
  const corner = (style: unknown, radius: unknown) => {
    if (style === 'pill') return '999px';
    return style === 'sharp' ? '0' : pixels(radius, 0, 24);
  };
  return defined({
    'round-button': corner(borders.buttons_style, borders.button_border_radius),
    'round-input': corner(borders.inputs_style, borders.input_border_radius),
    'line-button': pixels(borders.button_border_weight, 0, 10),
    // At least 1: without a line a field on a surface of its own colour cannot be seen.
    'line-input': pixels(borders.input_border_weight, 1, 10),
    'line-card': pixels(borders.widget_border_weight, 0, 10),
    'round-card': pixels(borders.widget_corner_radius, 0, 50),
    'shadow-card': borders.show_widget_shadow === false ? 'none' : undefined,
  });
}

/** Returns the font sizes relative to the reader's own, so that enlarged text stays enlarged. */
function fontsOf(theme: Theme): Record<string, string> {
  const fonts = section(theme, 'fonts');
  const size = (name: string) => {
    const percent = numberIn(section(fonts, name).size, FONT_PERCENT.smallest, FONT_PERCENT.largest);
    return percent === undefined ? undefined : `${percent / 100}rem`;
  };
  const weight = (name: string) => {
    const { bold } = section(fonts, name);
    return typeof bold === 'boolean' ? (bold ? '700' : '400') : undefined;
  };
  const reference = numberIn(fonts.reference_text_size, 12, 24);
  return defined({
    'size-root': reference === undefined ? undefined : `${(reference / 16) * 100}%`,
    'size-title': size('title'),
    'bold-title': weight('title'),
    'size-lead': size('subtitle'),
    'bold-lead': weight('subtitle'),
    'size-body': size('body_text'),
    'bold-body': weight('body_text'),
    'size-button': size('buttons_text'),
    'bold-button': weight('buttons_text'),
    'size-label': size('input_labels'),
    'bold-label': weight('input_labels'),
    'bold-link': weight('links'),
  });
}

/** Returns the rules for the position of the card, and for its logo and heading. */
function placesCss(theme: Theme): string {
  const widget = section(theme, 'widget');
  const side = { left: 'start', right: 'end' };
  const place = sideOf(section(theme, 'page_background').page_layout, side);
  const logo = sideOf(widget.logo_position, side);
  const head = sideOf(widget.header_text_alignment, side);
  const height = pixels(widget.logo_height, 1, 100);
  return [
    place && `@media (min-width:48rem){.gate{place-content:center ${place};padding-inline:6vw}}`,
    logo && `.brand{align-items:${logo}}`,
    widget.logo_position === 'none' && '.card .brand .marks{display:none}',
    head && `.card h1,.card .lead{text-align:${head}}`,
    height && `.logo{height:${height}}`,
  ]
    .filter((rule) => typeof rule === 'string')
    .join('');
}

const sideOf = (value: unknown, sides: Readonly<Record<string, string>>): string | undefined =>
  typeof value === 'string' && Object.hasOwn(sides, value) ? sides[value] : undefined;

export function logoOf(theme: Theme): string | undefined {
  const { logo_url: logo } = section(theme, 'widget');
  return typeof logo === 'string' && logo !== '' ? logo : undefined;
}

export function fontOf(theme: Theme): string | undefined {
  const { font_url: font } = section(theme, 'fonts');
  return typeof font === 'string' && font !== '' ? font : undefined;
}

function section(theme: Theme, name: string): Theme {
  const value = theme[name];
  return typeof value === 'object' && value !== null ? (value as Theme) : {};
}

/**
 * Reads `#rgb` and `#rrggbb`, and both with an opacity, which is ignored: the colour would depend on what is behind
 * it.
 */
function colorOf(value: unknown): Hex | undefined {
  if (typeof value !== 'string') return undefined;
  const [, short] = /^#([0-9a-f]{3})[0-9a-f]?$/i.exec(value) ?? [];
  if (short !== undefined) return parseHex(`#${[...short].map((sign) => sign + sign).join('')}`);
  return parseHex(/^#[0-9a-f]{8}$/i.test(value) ? value.slice(0, 7) : value);
}

function numberIn(value: unknown, least: number, most: number): number | undefined {
  return typeof value === 'number' && Number.isFinite(value)
    ? Math.min(most, Math.max(least, value))
    : undefined;
}

function pixels(value: unknown, least: number, most: number): string | undefined {
  const number = numberIn(value, least, most);
  return number === undefined ? undefined : `${number}px`;
}

const defined = (all: Record<string, string | undefined>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
