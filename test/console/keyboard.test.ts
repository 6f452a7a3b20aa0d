// The pages of the console by the keyboard alone: Tab comes to each control, in the order of the page, and shows where it is.
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { openConsolePage, startConsole } from '../support/console.ts';
import { tenant, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

/** What a person could click or fill, numbered in the order of the page; radio buttons of one name are one stop. */
const NUMBER = `(() => {
  const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, iframe')];
  const seen = new Set();
  const stops = all.filter((one) => {
    if (one.disabled || one.type === 'hidden' || one.tabIndex < 0) return false;
    if (!one.checkVisibility({ visibilityProperty: true })) return false;
    if (one.type !== 'radio') return true;
    const group = one.form?.action + one.name;
    return !seen.has(group) && seen.add(group);
  });
  for (const [at, one] of stops.entries()) one.dataset.stop = String(at);
  return stops.length;
})()`;

/** Which has the focus now, and whether that is seen: on it, or on what stands for it. */
const FOCUSED = `(() => {
  const one = document.activeElement;
  if (one === null || one === document.body) return undefined;
  const first = one.type === 'radio'
    ? document.querySelector('input[type=radio][name="' + CSS.escape(one.name) + '"][data-stop]') ?? one
    : one;
  const places = [one, one.parentElement, one.nextElementSibling, one.nextElementSibling?.firstElementChild];
  const isSeen = one.tagName === 'IFRAME' || places.some((place) => {
    if (!place) return false;
    const { outlineStyle, outlineWidth } = getComputedStyle(place);
    const { width, height } = place.getBoundingClientRect();
    return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1 && width > 8 && height > 8;
  });
  return { stop: first.dataset.stop, isSeen, is: one.outerHTML.slice(0, 160) };
})()`;

describe('the pages of the console, by the keyboard', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let page: Page;
  let user: string;
  before(async () => {
    server = await startConsole({ tenant: { ...tenant, ...UNLIMITED } });
    const [found] = await server.users.withEmail(USER.email);
    user = `/console/users/${encodeURIComponent(found?.id ?? '')}`;
    browser = await launchBrowser(server.ca);
    page = await (await browser.newContext({ reducedMotion: 'reduce' })).newPage();
    await openConsolePage(page, server);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  const walk = async (path: string) => {
    await page.goto(`${server.url}${path}`);
    const count = (await page.evaluate(NUMBER)) as number;
    expect(count, path).to.be.greaterThan(5);
    const order: number[] = [];
    // Some stops are none of these, as a table that scrolls is.
    for (let presses = 0; presses < 2 * count + 20 && !order.includes(count - 1); presses += 1) {
      await page.keyboard.press('Tab');
      const at = (await page.evaluate(FOCUSED)) as { stop?: string; isSeen: boolean; is: string } | undefined;
      if (at === undefined) continue;
      expect(at.isSeen, `${path}: the focus is seen on ${at.is}`).to.equal(true);
      if (at.stop !== undefined && order.at(-1) !== Number(at.stop)) order.push(Number(at.stop));
    }
    expect(order, `${path}: Tab comes to each control, in their order`).to.deep.equal([
      ...Array(count).keys(),
    ]);
  };

  for (const path of [
    '/console',
    '/console/users',
    '/console/users/transfer',
    'the user',
    '/console/applications',
    '/console/connections',
    '/console/log',
    '/console/branding',
    '/console/security',
    '/console/actions/new',
    '/console/administrators',
    '/console/password',
  ])
    it(`come to each control of ${path}`, () => walk(path === 'the user' ? user : path));
});
