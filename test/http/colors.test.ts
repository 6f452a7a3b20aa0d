import { expect } from 'chai';
import { blackOrWhite, contrast, type Hex, readable, themeCss } from '../../src/capabilities/pages/colors.ts';

/** Returns the custom properties of a theme, by colour scheme. */
function schemes(css: string): Record<string, Hex>[] {
  return [...css.matchAll(/:root\{([^}]*)\}/g)].map(([, block = '']) =>
    Object.fromEntries(block.split(';').map((line) => line.slice(2).split(':') as [string, Hex])),
  );
}

/** Colours with every channel in steps of 51. */
const samples = [0, 51, 102, 153, 204, 255].flatMap((r) =>
  [0, 51, 102, 153, 204, 255].flatMap((g) =>
    [0, 51, 102, 153, 204, 255].map(
      (b): Hex => `#${[r, g, b].map((c) => c.toString(16).padStart(2, '0')).join('')}`,
    ),
  ),
);

describe('brand colours', () => {
  it('compute the contrast as WCAG does', () => {
    expect(contrast('#000000', '#ffffff')).to.equal(21);
    expect(contrast('#767676', '#ffffff')).to.be.closeTo(4.54, 0.005);
    expect(contrast('#ff0000', '#0000ff')).to.be.closeTo(2.15, 0.005);
  });

  it('keep the contrast of text, links and edges for every brand colour, in the light and the dark scheme', () => {
    for (const primary of samples) {
      for (const page_background of ['#ffffff', '#808080', '#000000', primary]) {
        const found = schemes(themeCss({ primary, page_background }));
        expect(found).to.have.length(2);
        for (const scheme of found) {
          const between = (a: string, b: string) => contrast(scheme[a] ?? '#', scheme[b] ?? '#');
          const what = `${primary} on ${page_background}`;
          expect(between('on-primary', 'primary'), what).to.be.at.least(4.5);
          expect(between('on-primary', 'primary-hover'), what).to.be.at.least(4.5);
          expect(between('accent', 'surface'), what).to.be.at.least(5.5);
          expect(between('primary-edge', 'surface'), what).to.be.at.least(3);
          expect(between('on-page', 'page'), what).to.be.at.least(4.5);
          expect(between('ink', 'surface'), what).to.be.at.least(7);
        }
      }
    }
  });

  it('are used unchanged where their contrast suffices', () => {
    const [light] = schemes(themeCss({ primary: '#1A3C8B', page_background: '#FAFAFA' }));
    expect(light).to.include({
      primary: '#1a3c8b',
      accent: '#1a3c8b',
      'primary-edge': '#1a3c8b',
      page: '#fafafa',
    });
  });

  it('replace a light page colour in the dark scheme, and keep a dark one', () => {
    const pageInTheDark = (page_background: string) => schemes(themeCss({ page_background }))[1]?.page ?? '#';
    expect(contrast(pageInTheDark('#ffffff'), '#ffffff')).to.be.above(15);
    expect(pageInTheDark('#101828')).to.equal('#101828');
  });

  it('fall back to the defaults for an invalid colour, which is not written into the style', () => {
    const nasty = '#123456;}body{background:url(https://evil.example)}';
    for (const text of [nasty, 'red', '#fff', '#12345g', '', '#123456\n']) {
      expect(themeCss({ primary: text, page_background: text })).to.equal(themeCss({}));
    }
  });

  it('choose black or white text, whichever has more contrast', () => {
    expect(blackOrWhite('#ffd400')).to.equal('#000000');
    expect(blackOrWhite('#3b5bdb')).to.equal('#ffffff');
  });

  it('end at black or white when no colour between has the wanted contrast', () => {
    expect(readable('#808080', '#ffffff', 21)).to.equal('#000000');
    expect(readable('#808080', '#000000', 21)).to.equal('#ffffff');
  });
});
