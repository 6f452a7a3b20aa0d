// Accessibility checks of pages with axe. Its own driver loads axe's source again and opens another page for each
// check; here axe is put into a document once, and run again when the colours or the width change.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from 'playwright-core';

const driver = createRequire(import.meta.url).resolve('@axe-core/playwright');
const SOURCE = readFileSync(createRequire(driver).resolve('axe-core/axe.min.js'), 'utf8');

/** The rules of axe that depend on colours. */
export const BY_COLOUR = ['color-contrast', 'link-in-text-block'];
/** The rules that also depend on the layout. */
const BY_LAYOUT = [...BY_COLOUR, 'target-size', 'scrollable-region-focusable', 'meta-viewport'];

export const WIDE = { width: 1280, height: 860 };
const PHONE = { width: 375, height: 740 };
/** The narrowest width that pages support (WCAG 2.2, 1.4.10). */
export const NARROWEST = { width: 320, height: 640 };

/** For each color scheme, the combinations of {@link TEXTS} in which axe has found no fault. */
export type Judged = Record<'light' | 'dark', Set<string>>;

/** Returns how each text of a page is displayed: its colours, size and weight, its parent's, and all backgrounds below it. */
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
 * Returns the faults of a page that is displayed in light colours and wide, with reduced motion: as it is, dark, and at
 * phone width in both schemes. The markup does not change, so each further check covers only what depends on scheme or
 * width, and colours only in combinations not checked before.
 * @param look called with the name of each display before axe runs.
 * @param judged what was checked on other pages with the same styles.
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

/** Loads axe into every page that is opened from now on, so that its source is not sent and parsed again. */
export function injectAxe(page: Page): Promise<unknown> {
  return page.addInitScript({ content: SOURCE });
}

/** Returns by how many pixels a page is wider than its window. */
export function sidewaysScroll(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
}

interface Results {
  violations: { id: string; nodes: { html: string }[] }[];
  incomplete: Results['violations'];
}

/**
 * Returns the faults of a page as displayed, each with its elements. Text whose contrast axe could not determine counts
 * as a fault, too.
 * @param rules the rules to check, by default axe's own selection.
 */
export async function accessibilityFaults(page: Page, rules?: string[]): Promise<string[]> {
  // Only the driver supports frames.
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
