// What axe says of a page. Its own driver reads its source anew, and opens one page more, each time that it is asked;
// here it is put into a document once and asked as often as the colours or the width change.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from 'playwright-core';

const driver = createRequire(import.meta.url).resolve('@axe-core/playwright');
const SOURCE = readFileSync(createRequire(driver).resolve('axe-core/axe.min.js'), 'utf8');

/** The rules of axe whose outcome depends on the colours. */
export const BY_COLOUR = ['color-contrast', 'link-in-text-block'];
/** And on the layout. */
const BY_LAYOUT = [...BY_COLOUR, 'target-size', 'scrollable-region-focusable', 'meta-viewport'];

export const WIDE = { width: 1280, height: 860 };
const PHONE = { width: 375, height: 740 };
/** The narrowest that pages are made for (WCAG 2.2, 1.4.10). */
export const NARROWEST = { width: 320, height: 640 };

/** By scheme, the texts whose colours axe has found no fault of, as {@link TEXTS} has them. */
export type Judged = Record<'light' | 'dark', Set<string>>;

/** What the texts of a page are shown in: their colours, size and weight, what is around them, and all grounds below them. */
const TEXTS = `(() => {
  const grounds = new Map([[null, '']]);
  const groundsOf = (element) => {
    if (!grounds.has(element)) {
      const { backgroundColor, backgroundImage, opacity, position } = getComputedStyle(element);
      const own = [backgroundColor, backgroundImage, opacity, /static|relative/.test(position) ? '' : position].join();
      const below = groundsOf(element.parentElement);
      grounds.set(element, own === 'rgba(0, 0, 0, 0),none,1,' ? below : below + own);
    }
    return grounds.get(element);
  };
  const styleOf = (element) => {
    const { color, fontSize, fontWeight, textDecorationLine } = getComputedStyle(element);
    return [element.tagName, color, fontSize, fontWeight, textDecorationLine].join();
  };
  const hasText = ({ nodeType, data }) => nodeType === Node.TEXT_NODE && data.trim() !== '';
  return [...document.body.querySelectorAll('*')]
    .filter((one) => one.matches('input, select, textarea') || [...one.childNodes].some(hasText))
    .filter((one) => one.checkVisibility())
    .map((one) => [groundsOf(one), styleOf(one.parentElement), styleOf(one)].join(' '));
})()`;

/**
 * The faults of a page that is shown light and wide, in a browser of reduced motion: as it is, dark, and on a phone in
 * both schemes. The markup stays as it is: only what a scheme or a width changes is looked at again, and the colours where a
 * text is shown in some that were not looked at before.
 * @param look called for each, before axe is.
 * @param judged what was looked at on other pages of the same styles.
 */
export async function faultsInAllLooks(
  page: Page,
  look: (name: string) => Promise<unknown> = async () => undefined,
  judged: Judged = { light: new Set(), dark: new Set() },
): Promise<string[]> {
  const faults: string[] = [];
  const note = async (scheme: keyof Judged, width: string, rules?: string[]) => {
    const name = `${scheme}-${width}`;
    await look(name);
    const texts = await page.evaluate<string[]>(TEXTS);
    const areJudged = texts.every((text) => judged[scheme].has(text));
    const left = areJudged ? rules?.filter((rule) => !BY_COLOUR.includes(rule)) : rules;
    const found = left?.length === 0 ? [] : await accessibilityFaults(page, left);
    if (found.length === 0) for (const text of texts) judged[scheme].add(text);
    faults.push(...found.map((fault) => `${name}: ${fault}`));
  };
  await note('light', 'wide');
  await page.emulateMedia({ colorScheme: 'dark' });
  await note('dark', 'wide', BY_COLOUR);
  await page.setViewportSize(PHONE);
  await note('dark', 'phone', BY_LAYOUT);
  await page.emulateMedia({ colorScheme: 'light' });
  await note('light', 'phone', BY_COLOUR);
  return faults;
}

/** Puts axe into whatever a page goes to from now on: it need not be sent, and its source read, for each. */
export function bringAxe(page: Page): Promise<unknown> {
  return page.addInitScript({ content: SOURCE });
}

/** How much further a page goes than it is wide, pixels. */
export function sidewaysScroll(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
}

interface Results {
  violations: { id: string; nodes: { html: string }[] }[];
  incomplete: Results['violations'];
}

/**
 * The faults of a page as it is shown now, each with its elements. What axe cannot see through, nobody has checked the
 * contrast of: that is one, too.
 * @param rules to check; axe's own choice unless said otherwise.
 */
export async function accessibilityFaults(page: Page, rules?: string[]): Promise<string[]> {
  // The driver knows how to look into frames.
  const { violations, incomplete } = await (page.frames().length > 1 ? byDriver : inPage)(page, rules);
  const unseen = incomplete.filter(({ id }) => id === 'color-contrast');
  return [...violations, ...unseen].map(({ id, nodes }) => `${id}: ${nodes.map((n) => n.html).join(' ')}`);
}

function byDriver(page: Page, rules?: string[]): Promise<Results> {
  const axe = new AxeBuilder({ page });
  return (rules === undefined ? axe : axe.withRules(rules)).analyze();
}

async function inPage(page: Page, rules?: string[]): Promise<Results> {
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(SOURCE);
  const options = {
    resultTypes: ['violations', 'incomplete'],
    ...(rules && { runOnly: { type: 'rule', values: rules } }),
  };
  const names = '({ violations, incomplete }) => ({ violations, incomplete })';
  return (await page.evaluate(`axe.run(${JSON.stringify(options)}).then(${names})`)) as Results;
}
