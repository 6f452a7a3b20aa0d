// A theme's colours are readable whatever they are, and only colours, numbers and https addresses get into the style.
import { expect } from 'chai';
import { contrast, type Hex } from '../../src/capabilities/pages/colors.ts';
import { themeLook } from '../../src/capabilities/pages/theme.ts';

/** Returns the custom properties of a theme's colours. */
function colorsOf(css: string): Record<string, Hex> {
  const [, block = ''] = /:root\{color-scheme:\w+;([^}]*)\}/.exec(css) ?? [];
  return Object.fromEntries(block.split(';').map((line) => line.slice(2).split(':') as [string, Hex]));
}

const STEPS = [0, 96, 128, 160, 255];
const samples = STEPS.flatMap((r) =>
  STEPS.flatMap((g) =>
    STEPS.map((b): Hex => `#${[r, g, b].map((c) => c.toString(16).padStart(2, '0')).join('')}`),
  ),
);

/** Text colours and the backgrounds on which they are used. */
const READ = [
  ['ink', 'surface'],
  ['ink', 'quiet'],
  ['heading', 'surface'],
  ['muted', 'surface'],
  ['muted', 'quiet'],
  ['accent', 'surface'],
  ['accent', 'quiet'],
  ['on-secondary', 'surface'],
  ['on-secondary', 'quiet'],
  ['on-field', 'field'],
  ['on-primary', 'primary'],
  ['on-primary', 'primary-hover'],
  ['danger', 'surface'],
  ['danger', 'danger-quiet'],
  ['good', 'quiet'],
] as const;

describe('the theme of the pages', () => {
  it('keeps the contrast of texts and edges for any colours', () => {
    for (const [n, surface] of samples.entries()) {
      const other = (step: number) => samples[(n * 7 + step * 31) % samples.length];
      const colors = {
        widget_background: surface,
        ...{ body_text: other(1), header: other(2), links_focused_components: other(3) },
        ...{ primary_button: other(4), primary_button_label: other(5), input_background: other(6) },
        ...{ input_filled_text: other(7), input_border: other(8), input_labels_placeholders: other(9) },
        ...{ secondary_button_label: other(10), secondary_button_border: other(11) },
        ...{ error: other(12), success: other(13) },
      };
      const found = colorsOf(themeLook({ colors }).css);
      const between = (a: string, b: string) => contrast(found[a] ?? '#', found[b] ?? '#');
      for (const [text, ground] of READ) {
        expect(between(text, ground), `${text} on ${ground} of ${surface}`).to.be.at.least(4.5);
      }
      for (const edge of ['edge', 'edge-secondary', 'primary-edge']) {
        expect(between(edge, 'surface'), `${edge} of ${surface}`).to.be.at.least(3);
      }
    }
  });

  it('keeps colours unchanged when their contrast suffices', () => {
    const colors = { widget_background: '#ffffff', body_text: '#1e212a', primary_button: '#635dff' };
    const found = colorsOf(themeLook({ colors: { ...colors, primary_button_label: '#fff' } }).css);
    expect(found).to.include({
      ink: '#1e212a',
      primary: '#635dff',
      'on-primary': '#ffffff',
      surface: '#ffffff',
    });
  });

  it('applies a light theme to the light scheme only, and a dark one to both', () => {
    const css = (surface: string) => themeLook({ colors: { widget_background: surface } }).css;
    expect(css('#ffffff')).to.match(/^@media not \(prefers-color-scheme:dark\)\{:root\{color-scheme:light/);
    expect(css('#101418')).to.match(/^:root\{color-scheme:dark/);
  });

  it('uses the colours of an organization in place of its own', () => {
    const theme = {
      colors: { primary_button: '#635dff', primary_button_label: '#ffffff' },
      page_background: { background_color: '#eeeeee' },
    };
    const found = colorsOf(themeLook(theme, { primary: '#ffd400', page: '#102030' }).css);
    expect(found).to.include({ primary: '#ffd400', 'on-primary': '#000000', page: '#102030' });
  });

  it('ignores values that are not colours, numbers or https addresses', () => {
    const nasty = '1px;}body{background:url(https://evil.example)}</style>';
    const section = new Proxy(
      {},
      {
        get: () => nasty,
        has: () => true,
        getOwnPropertyDescriptor: () => ({ configurable: true, enumerable: true }),
      },
    );
    const all = {
      colors: section,
      borders: section,
      fonts: section,
      page_background: section,
      widget: section,
    };
    expect(themeLook(all).css).to.equal(themeLook({}).css);
    expect(themeLook({ colors: 'red', fonts: { title: 7, body_text: { size: Number.NaN } } }).css).to.equal(
      themeLook({}).css,
    );
  });

  it('limits text sizes to a readable range', () => {
    const fonts = { reference_text_size: 1, title: { size: 0 }, body_text: { size: 900 } };
    expect(themeLook({ fonts }).css)
      .to.contain('--size-root:75%;--size-title:0.75rem')
      .and.contain('--size-body:2rem');
  });
});
