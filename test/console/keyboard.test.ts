// The console by keyboard only: Tab reaches each control in the order of the page, and the focus is visible.
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { sidewaysScroll, WIDE } from '../support/accessibility.ts';
import { createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { addressOf, openConsolePage, PASSWORD, startConsole } from '../support/console.ts';
import { databaseUser } from '../support/database-user.ts';
import { logIn, pkce, spaRequest, tenant, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

/** Numbers the controls of a page in their order; radio buttons with one name are one control. */
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

/** Returns the control that has the focus, and whether the focus is visible on it or on an element beside it. */
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
  const name = one.ariaLabel ?? one.labels?.[0]?.textContent ?? one.textContent;
  return { stop: first.dataset.stop, isSeen, is: one.outerHTML.slice(0, 160), name: name.replace(/\\s+/g, ' ').trim() };
})()`;

/** Returns how much lower buttons end than the fields before them, pixels, without duplicates. */
const BESIDE = `(() => {
  const buttons = document.querySelectorAll('.filters > .field + button, form.inline > .field + button');
  const bottom = (one) => one.getBoundingClientRect().bottom;
  const fields = (one) => one.previousElementSibling.querySelector('input, select');
  return [...new Set([...buttons].map((one) => Math.round(bottom(one) - bottom(fields(one)))))];
})()`;

/** The control that has the focus. */
interface Focused {
  stop?: string;
  isSeen: boolean;
  is: string;
  /** The accessible name of the control. */
  name: string;
}

describe('the console by keyboard', () => {
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
    // Other elements can have the focus, too, for example a table that scrolls.
    for (let presses = 0; presses < 2 * count + 20 && !order.includes(count - 1); presses += 1) {
      await page.keyboard.press('Tab');
      const at = (await page.evaluate(FOCUSED)) as Focused | undefined;
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
    it(`reaches each control of ${path}`, () => walk(path === 'the user' ? user : path));

  /** Presses Tab until a control has the focus, which must be visible all the way. */
  const tabTo = async (at: Page, name: string) => {
    const passed: string[] = [];
    while (passed.length < 150) {
      await at.keyboard.press('Tab');
      const focused = (await at.evaluate(FOCUSED)) as Focused | undefined;
      if (focused === undefined) continue;
      expect(focused.isSeen, `${at.url()}: the focus is seen on ${focused.is}`).to.equal(true);
      if (focused.name === name) return;
      passed.push(focused.name);
    }
    throw new Error(`Tab does not come to "${name}" at ${at.url()}, but to ${passed.join(' | ')}`);
  };
  /** Activates controls by keyboard one after the other, waiting for the next page after each. */
  const press = async (at: Page, ...names: string[]) => {
    for (const name of names) {
      await tabTo(at, name);
      const answered = at.waitForEvent('load');
      await at.keyboard.press('Enter');
      await answered;
    }
  };
  /** Waits until the focus is on a text, as on the message after a form. */
  const told = (at: Page, text: string) => at.locator(':focus', { hasText: text }).waitFor();
  const typeIn = async (at: Page, name: string, text: string) => {
    await tabTo(at, name);
    await at.keyboard.type(text);
  };
  const logInBy = async (at: Page, email: string, password: string) => {
    await at.locator('#username:focus').waitFor();
    await at.keyboard.type(email);
    await typeIn(at, 'Password', password);
    await at.keyboard.press('Enter');
  };

  it('shows buttons at the height of their field, fits on a phone, and links back from an error', async () => {
    const paths = ['/console/users', '/console/applications', '/console/security/blocked', `${user}/roles`];
    for (const path of paths) {
      await page.goto(`${server.url}${path}`);
      expect(await page.evaluate(BESIDE), path).to.deep.equal([0]);
    }
    await page.setViewportSize({ width: 375, height: 740 });
    await page.goto(`${server.url}/console/branding/messages/verify_email`);
    expect(await sidewaysScroll(page)).to.equal(0);
    await page.setViewportSize(WIDE);
    await page.goto(`${server.url}/console/users/nobody`);
    await press(page, 'Back to the console');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });

  it('creates an application, copies its client ID, tries it, and logs out', async () => {
    const context = await browser.newContext({ reducedMotion: 'reduce' });
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const own = await context.newPage();
    await own.goto(`${server.url}/console`);
    await logInBy(own, addressOf('owner'), PASSWORD);
    await own.getByRole('heading', { name: 'Overview' }).waitFor();
    await press(own, 'Applications', 'Create an application', 'Create');
    await told(own, 'Created.');
    const id = (await own.locator('[data-copy]').nth(2).getAttribute('data-copy')) ?? '';
    await tabTo(own, `Copy ${id}`);
    await own.keyboard.press('Space');
    await own.locator(':focus', { hasText: 'Copied' }).waitFor();
    expect(await own.evaluate('navigator.clipboard.readText()')).to.equal(id);
    expect(await server.store.collection('clients').get(id)).to.have.property('name', 'My application');
    await press(own, 'Try it', 'Log in');
    await logInBy(own, USER.email, USER.password);
    await own.getByRole('heading', { name: 'ID token' }).waitFor();
    await press(own, 'Log out');
    await own.goto(`${server.url}/console`);
    await own.locator('#username:focus').waitFor();
  });

  it('finds a user, blocks and unblocks, mails a link, ends a session, and deletes', async () => {
    const email = 'keys@example.test';
    const password = 'Another-Horse-2';
    const outcome = await server.users.create(databaseUser({ email, password, connection: 'users' }));
    if (!('user' in outcome)) throw new Error(JSON.stringify(outcome));
    await page.goto(`${server.url}/console`);
    await press(page, 'Users');
    await typeIn(page, 'Search', 'keys');
    await page.waitForURL((url) => url.searchParams.get('q') === 'keys');
    await page.getByText(USER.email).waitFor({ state: 'detached' });
    await press(page, email, 'Block');
    await told(page, 'The user is blocked.');
    await press(page, 'Unblock');
    await told(page, 'The user is no longer blocked.');
    await press(page, 'Send an e-mail to reset the password');
    await told(page, 'The e-mail is on its way.');
    await logIn(createAgent(server), server, spaRequest(pkce().challenge), { email, password });
    await press(page, 'Sessions', 'End: Unknown browser');
    await told(page, 'The session ended.');
    await press(page, 'Profile', 'Delete', 'Delete for good');
    await told(page, 'The user was deleted.');
    expect(await server.users.withEmail(email)).to.deep.equal([]);
  });

  it('edits, deploys, tests and binds an action, rotates a key, and moves the focus to faults', async () => {
    await page.goto(`${server.url}/console/actions`);
    await press(page, 'New action');
    await typeIn(page, 'Name', 'Keys');
    await press(page, 'Create the action');
    // The tab has the same name as the editor.
    for (const name of ['Code', 'Code']) await tabTo(page, name);
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.insertText('exports.onExecutePostLogin = async () => console.log("by keys");');
    await press(page, 'Save the draft');
    await told(page, 'The draft was saved.');
    await press(page, 'Deploy', 'Deploy the draft');
    await told(page, 'The action was deployed.');
    await press(page, 'Test', 'Run the draft');
    await page.locator('pre', { hasText: 'by keys' }).waitFor();
    await press(page, 'Actions', 'Bind: Keys');
    await tabTo(page, 'Unbind: Keys');
    await press(page, 'Security', 'Signing keys');
    await tabTo(page, 'Rotate…');
    await page.keyboard.press('Enter');
    await press(page, 'Rotate the RS256 key');
    await told(page, 'The next key signs from now on.');
    await press(page, 'Roles', 'Create a role', 'Create a role');
    await told(page, 'Something is not right: Name');
    await tabTo(page, 'Name');
    await page.keyboard.press('Enter');
    await page.locator('#f-name:focus').waitFor();
  });
});
