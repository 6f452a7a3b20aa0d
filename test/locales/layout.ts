// Measures pages in a language: what is wider than its place, cut off, or spaced where letters join.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import type { MessageKind } from '../../src/capabilities/delivery/delivery-messages.ts';
import type { OutgoingEmail } from '../../src/capabilities/delivery/transport.ts';
import { AuthError } from '../../src/http/errors.ts';
import { PAGES } from '../http/pages.ts';
import type { Site } from '../http/site.ts';
import { NARROWEST, WIDE } from '../support/accessibility.ts';
import type { TestBrowser } from '../support/browser.ts';
import { LOCALES } from './messages.ts';
import { KINDS, sampleMessages } from './sample-mail.ts';

/**
 * Runs in the page. Compares each text with the nearest element around it that has a place of its own; texts that are there for
 * screen readers alone, and fields and code that scroll, are left out.
 */
const FAULTS = `(() => {
  const faults = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) faults.push('the page is ' + (root.scrollWidth - root.clientWidth) + ' px too wide');
  const joined = /[\\p{scx=Arab}\\p{scx=Deva}\\p{scx=Beng}\\p{scx=Taml}\\p{scx=Telu}\\p{scx=Thai}]{2}/u;
  const inline = new Set(['inline', 'contents']);
  const name = (element, text) => element.localName + ' “' + text.trim().slice(0, 60) + '”';
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text !== null; text = walker.nextNode()) {
    const element = text.parentElement;
    if (text.data.trim() === '' || element.closest('script, style, noscript, svg, select, textarea, pre, code')) continue;
    if (!element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    if (joined.test(text.data) && !/^(?:normal|0px)$/.test(style.letterSpacing))
      faults.push(name(element, text.data) + ' has its letters spaced');
    let place = element;
    while (inline.has(getComputedStyle(place).display)) place = place.parentElement;
    const box = place.getBoundingClientRect();
    if (box.width <= 1 || box.height <= 1) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    for (const { left, right, width } of range.getClientRects()) {
      if (width > 0 && (left < box.left - 1.5 || right > box.right + 1.5)) {
        faults.push(name(element, text.data) + ' is wider than its ' + place.localName);
        break;
      }
    }
    const { overflowX, overflowY } = getComputedStyle(place);
    const cutsX = /hidden|clip/.test(overflowX) && place.scrollWidth > place.clientWidth + 1;
    const cutsY = /hidden|clip/.test(overflowY) && place.scrollHeight > place.clientHeight + 1;
    if (cutsX || cutsY) faults.push(name(element, text.data) + ' is cut off');
  }
  for (const toggle of document.querySelectorAll('.toggle')) {
    const field = toggle.parentElement.querySelector('input');
    if (field !== null && toggle.checkVisibility() && toggle.offsetWidth > field.offsetWidth * 0.4)
      faults.push(name(toggle, toggle.textContent) + ' covers the field');
  }
  return [...new Set(faults)];
})()`;

/** Pages for administrators and programmers, which a language may lack. */
const OF_PARTS = /^\/(?:console|home|inbox|scripts|tokens)/;

/** Reports whether a language has texts for the console and the other pages of {@link OF_PARTS}. */
export const hasConsole = (tag: string): boolean => existsSync(join(LOCALES, tag, 'console'));

/** Lists the paths of the pages that a language has. @param isShort whether one page of each template is enough. */
export function pathsIn(tag: string, { isShort = false } = {}): string[] {
  const hasParts = hasConsole(tag);
  const templates = new Set<string>();
  return Object.entries(PAGES).flatMap(([path, page]) => {
    if (OF_PARTS.test(path) && (isShort || !hasParts)) return [];
    const template = page instanceof AuthError ? 'error' : page.page.template;
    if (isShort && templates.has(template)) return [];
    templates.add(template);
    return [path];
  });
}

/** Measures the page that is shown, at 1280 and then at 320 pixels. @returns what is wrong, each with the page's name and the width. */
export async function faultsOf(page: Page, name: string): Promise<string[]> {
  const faults: string[] = [];
  for (const size of [WIDE, NARROWEST]) {
    await page.setViewportSize(size);
    const found = await page.evaluate<string[]>(FAULTS);
    faults.push(...found.map((fault) => `${name} ${size.width}: ${fault}`));
  }
  return faults;
}

/**
 * Opens pages in a language, at 320 and at 1280 pixels.
 * @param examine called with each page at the narrow width; returns its further faults.
 * @returns what is wrong, each with path and width.
 */
export async function layoutFaults(
  { browser, site }: { browser: TestBrowser; site: Site },
  tag: string,
  paths: readonly string[],
  examine: (page: Page) => Promise<string[]> = async () => [],
): Promise<string[]> {
  const context = await browser.newContext({ locale: tag, reducedMotion: 'reduce' });
  const page = await context.newPage();
  const faults: string[] = [];
  site.setTenant({ tenant: { enabled_locales: [tag, tag === 'en' ? 'de' : 'en'], language_menu: true } });
  const measure = async (path: string) => {
    faults.push(...(await faultsOf(page, `${tag} ${path}`)));
  };
  for (const path of paths) {
    await page.goto(`${site.url}${path}`);
    await measure(path);
    faults.push(...(await examine(page)).map((fault) => `${tag} ${path}: ${fault}`));
  }
  const message = sampleMessages(tag);
  await page.goto('about:blank');
  for (const kind of Object.keys(KINDS).filter((one) => !one.endsWith('sms')) as MessageKind[]) {
    await page.setContent(((await message(kind)) as OutgoingEmail).html);
    await measure(kind);
  }
  await context.close();
  return faults;
}
