// Draws a contact sheet of a language, to be looked at: the pages that matter most, and an e-mail, at the width of a phone.
//   npm run sheet:locale -- ja pt-BR    writes /tmp/sheets/ja.png and /tmp/sheets/pt-BR.png
// Without fonts for the script of the language, Chromium draws boxes; FONTCONFIG_FILE may name a configuration that has them.
import { mkdirSync } from 'node:fs';
import type { BrowserContext } from 'playwright-core';
import type { MessageKind } from '../../src/capabilities/delivery/delivery-messages.ts';
import type { OutgoingEmail } from '../../src/capabilities/delivery/transport.ts';
import { languagesIn } from '../../src/tenant/languages.ts';
import { PAGES } from '../http/pages.ts';
import { startSite } from '../http/site.ts';
import { closeBrowsers, launchBrowser } from '../support/browser.ts';
import { LOCALES } from './messages.ts';
import { sampleMessages } from './sample-mail.ts';

const FOLDER = '/tmp/sheets';

/** Paths of test/http/pages.ts, and kinds of e-mails. */
const SHOWN = [
  '/login-choices /login-wrong /identifier /signup-failed /passwordless-code /mfa-choose /mfa-code-otp',
  '/mfa-enroll-otp /mfa-recovery-code /passkey-offer /reset-password-failed /forgot-password-sent /consent /device-confirm',
  '/own-profile /own-security /own-sessions /own-data /logout /error verify_email mfa_oob_code',
].map((row) => row.split(' '));

const WIDTH = 360;

async function drawn(context: BrowserContext, url: string, tag: string): Promise<string[][]> {
  const page = await context.newPage();
  const message = sampleMessages(tag);
  const rows: string[][] = [];
  for (const row of SHOWN) {
    const images: string[] = [];
    for (const path of row) {
      if (path.startsWith('/')) await page.goto(`${url}${path}`);
      else {
        // Without the content security policy of the page before.
        await page.goto('about:blank');
        await page.setContent(((await message(path as MessageKind)) as OutgoingEmail).html);
      }
      images.push((await page.screenshot({ fullPage: true })).toString('base64'));
    }
    rows.push(images);
  }
  await page.close();
  return rows;
}

const asked = process.argv.slice(2);
mkdirSync(FOLDER, { recursive: true });
const site = await startSite(PAGES);
const browser = await launchBrowser(site.ca);
try {
  for (const tag of asked.length > 0 ? asked : languagesIn(LOCALES)) {
    site.setTenant({ tenant: { enabled_locales: [tag], friendly_name: 'Example' } });
    const context = await browser.newContext({ viewport: { width: WIDTH, height: 640 }, locale: tag });
    const rows = await drawn(context, site.url, tag);
    const sheet = await context.newPage();
    await sheet.setViewportSize({ width: 8 * (WIDTH + 12), height: 640 });
    await sheet.setContent(
      rows
        .map((row) =>
          row.map(
            (one) =>
              `<img src="data:image/png;base64,${one}" style="margin:0 8px 8px 0;border:1px solid #888;vertical-align:top">`,
          ),
        )
        .map((row) => `<div style="white-space:nowrap">${row.join('')}</div>`)
        .join(''),
    );
    await sheet.screenshot({ path: `${FOLDER}/${tag}.png`, fullPage: true });
    process.stdout.write(`${FOLDER}/${tag}.png\n`);
    await context.close();
  }
} finally {
  await closeBrowsers();
  await site.stop();
}
