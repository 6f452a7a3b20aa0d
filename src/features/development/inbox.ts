// The development inbox: messages of the outbox. For this machine only, see feature.ts.
import type { Context } from 'koa';
import type { Outbox } from '../../capabilities/delivery/outbox.ts';
import type { OutboxMessage } from '../../capabilities/delivery/outbox-message.ts';
import { declarePage, type Views } from '../../capabilities/pages/views.ts';
import { AuthError } from '../../http/errors.ts';
import { httpLimits } from '../../http/limits.ts';
import type { Csrf } from '../../http/server/csrf.ts';
import type { RouteDeclarations } from '../../http/server/router.ts';

/** Path of the inbox; with `.json` appended it returns the messages as data. */
export const INBOX_PATH = '/dev/inbox';

export interface InboxDependencies {
  outbox: Outbox;
  views: Views;
  csrf: Csrf;
}

const page = { limit: httpLimits.other, cors: 'none', errors: 'page' } as const;

/** The routes of the inbox. They show every code, so the caller restricts them to this machine. */
export const inboxRoutes: RouteDeclarations<InboxDependencies> = {
  'GET /dev/inbox.json': { ...page, handle: listMessages },
  'GET /dev/inbox': { ...page, handle: showInbox },
  'GET /dev/inbox/:id': { ...page, handle: showMessage },
  'POST /dev/inbox': { ...page, handle: clearInbox },
};

async function listMessages({ outbox }: InboxDependencies, ctx: Context): Promise<void> {
  ctx.set('Cache-Control', 'no-store');
  ctx.body = (await matchingMessages(outbox, ctx)).map(({ id: _id, ...message }) => message);
}

async function showMessage({ outbox }: InboxDependencies, ctx: Context): Promise<void> {
  const html = (await outbox.get(String(ctx.params.id)))?.html;
  if (html === undefined) throw new AuthError(404, 'invalid_request', 'There is no such message.');
  showMail(ctx, html);
}

async function clearInbox({ outbox, csrf }: InboxDependencies, ctx: Context): Promise<void> {
  csrf.verify(ctx);
  await outbox.clear();
  ctx.redirect(INBOX_PATH);
  ctx.status = 303;
}

async function matchingMessages(outbox: Outbox, ctx: Context): Promise<OutboxMessage[]> {
  const { to } = ctx.query;
  return (await outbox.list()).filter((message) => typeof to !== 'string' || message.to === to);
}

interface DevelopmentInboxModel {
  messages: OutboxMessage[];
  action: string;
  csrf: string;
}

export const DEVELOPMENT_INBOX_PAGE = declarePage<DevelopmentInboxModel>('development/inbox');

async function showInbox({ outbox, views, csrf }: InboxDependencies, ctx: Context): Promise<void> {
  const messages = await matchingMessages(outbox, ctx);
  const newest = messages[0]?.id ?? '';
  ctx.set('ETag', `"${messages.length}-${newest}"`);
  ctx.status = 200;
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  await views.page(ctx, DEVELOPMENT_INBOX_PAGE, { messages, action: INBOX_PATH, csrf: csrf.token(ctx) });
}

/** Answers with a mail as a mail program shows it: nothing in it runs, and its links open in another window. */
function showMail(ctx: Context, html: string): void {
  ctx.set('Cache-Control', 'no-store');
  ctx.set(
    'Content-Security-Policy',
    "default-src 'none'; style-src 'unsafe-inline'; img-src data: https:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-popups allow-popups-to-escape-sandbox",
  );
  ctx.set('X-Frame-Options', 'SAMEORIGIN');
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = /<head[^<>]*>/i.test(html)
    ? html.replace(/<head[^<>]*>/i, (head) => `${head}<base target="_blank">`)
    : `<base target="_blank">${html}`;
}
