// The pages of e-mails and SMS: editing a template with a preview, sending it to oneself, and restoring the default.
import { isDeepStrictEqual } from 'node:util';
import type { Context } from 'koa';
import type { MessageKind } from '../../../capabilities/delivery/delivery-messages.ts';
import type { Draft } from '../../../capabilities/delivery/delivery-templates.ts';
import { AuthError } from '../../../http/errors.ts';
import { bodyTexts } from '../../../http/server/body.ts';
import { DeliveryError } from '../../../records/base/message-transport.ts';
import { numberOf } from '../../factors/message/countries.ts';
import { roleRefusal } from '../../management/roles/administrator-roles.ts';
import { callApi } from '../api-calls.ts';
import { consoleLimits } from '../console-declaration.ts';
import { redirectAfterForm } from '../console-page.ts';
import type { ConsoleSession } from '../console-session.ts';
import type { FormFault } from '../form-fault.ts';
import { refusalOf, refusalOptions, withoutReturns } from '../forms.ts';
import { type DisplayText, declareConsolePage, renderConsole } from '../render.ts';
import {
  draftOf,
  EMAILS,
  isOfConnection,
  type Message,
  messageAt,
  type TemplateTexts,
  writeMessage,
} from './console-branding-message.ts';
import { type BrandingDependencies, languageOf, languagesOf, PATH, type ShownLanguage } from './shared.ts';

/** What the list and the page of a message show of it. */
interface ShownMessage {
  name: string;
  kind: MessageKind;
  connection: string | undefined;
  path: string;
  isOwn: boolean;
  isOff: boolean;
}

interface BrandingMessagesModel {
  tab: string;
  path: string;
  messages: ShownMessage[];
}

export const BRANDING_MESSAGES_PAGE = declareConsolePage<BrandingMessagesModel>('console/branding-messages');

export async function showMessages(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const names = session.can('read:email_templates') ? EMAILS : [];
  const connectionIds = session.can('read:connections') ? await passwordless(deps, ctx, session) : [];
  const all = await Promise.all(
    [...names, ...connectionIds].map((name) => messageAt(deps, ctx, session, name)),
  );
  await renderConsole(deps, ctx, session, {
    page: BRANDING_MESSAGES_PAGE,
    title: 't:console.branding.tab.messages',
    model: { tab: 'messages', path: PATH, messages: all.map(shownMessage) },
  });
}

async function passwordless(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<string[]> {
  const lists = await Promise.all(
    ['email', 'sms'].map((strategy) =>
      callApi(deps, ctx, session, 'GET /connections', { query: { strategy, take: '100', fields: 'id' } }),
    ),
  );
  return lists.flatMap(({ body }) =>
    (body as { connections: { id: string }[] }).connections.map(({ id }) => id),
  );
}

export async function showMessage(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const message = await messageOf(deps, ctx, session);
  await showEditor(deps, ctx, session, { message, templateTexts: message.templateTexts });
}

/** Saves the template, restores the default, or sends the message to the administrator. */
export async function submitMessage(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const message = await messageOf(deps, ctx, session);
  requireScope(session, changeScope(message));
  const { order } = bodyTexts(ctx);
  const templateTexts = enteredTexts(ctx, message);
  const editor = { message, templateTexts };
  if (order === 'send') return send(deps, ctx, session, editor);
  const next =
    order === 'reset' ? { ...message.templateTexts, from: '', subject: '', body: '' } : templateTexts;
  const draft = await renderDraft(deps, ctx, session, message, next);
  if (Object.keys(draft.faults).length > 0)
    return showEditor(deps, ctx, session, { ...editor, draft, isRefused: true });
  try {
    // docs/understand/decisions/console-account.md#a-form-writes-what-somebody-has-changed
    if (!isDeepStrictEqual(next, message.templateTexts))
      await writeMessage(deps, ctx, session, message, next);
    redirectAfterForm(ctx, pathOf(message), 'console.said.saved');
  } catch (thrown) {
    await showEditor(deps, ctx, session, { ...editor, fault: refusalOf(thrown) });
  }
}

/** Shows the message as its recipient would see it, from the saved template. */
export async function previewMessage(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const message = await messageOf(deps, ctx, session);
  showDraft(ctx, await renderDraft(deps, ctx, session, message, message.templateTexts));
}

export async function previewEntered(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const message = await messageOf(deps, ctx, session);
  showDraft(ctx, await renderDraft(deps, ctx, session, message, enteredTexts(ctx, message)));
}

/** Answers with the message. The policy forbids scripts, and only pages of this origin may frame it. */
function showDraft(ctx: Context, { message }: Draft): void {
  ctx.set('Cache-Control', 'no-store');
  ctx.set(
    'Content-Security-Policy',
    "default-src 'none'; style-src 'unsafe-inline'; img-src data: https:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox",
  );
  ctx.set('X-Frame-Options', 'SAMEORIGIN');
  if (message.channel === 'email') {
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = message.html;
  } else {
    ctx.type = 'text/plain; charset=utf-8';
    ctx.body = message.text;
  }
}

async function messageOf(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<Message> {
  const name = String(ctx.params.message);
  requireScope(session, isOfConnection(name) ? 'read:connections' : 'read:email_templates');
  return messageAt(deps, ctx, session, name);
}

/** @throws AuthError 403 */
function requireScope(session: ConsoleSession, scope: string): void {
  if (!session.can(scope)) throw roleRefusal();
}

function enteredTexts(ctx: Context, { connection, templateTexts }: Message): TemplateTexts {
  const { from = '', subject = '', body = '', enabled, switches } = bodyTexts(ctx);
  const texts = { from, subject, body: withoutReturns(body) };
  return connection === undefined
    ? { ...texts, enabled: switches === '1' ? enabled === 'true' : templateTexts.enabled === true }
    : texts;
}

/** Sends the message as entered: an e-mail only to the administrator's own address, an SMS to an entered number. */
async function send(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  editor: Editor,
): Promise<void> {
  const { email } = session.administrator;
  const draft = await renderDraft(deps, ctx, session, editor.message, editor.templateTexts);
  if (Object.keys(draft.faults).length > 0)
    return showEditor(deps, ctx, session, { ...editor, draft, isRefused: true });
  const { message } = draft;
  const isSms = message.channel === 'sms';
  // Administrators have no phone number on record.
  const to = isSms ? numberOf(bodyTexts(ctx).number ?? '') : email;
  if (to === undefined) return showEditor(deps, ctx, session, { ...editor, fault: NO_NUMBER });
  if (
    !(await deps.rateLimits.spend(
      isSms ? consoleLimits.consoleSms : consoleLimits.consoleMail,
      session.administrator.userId,
    ))
  )
    throw new AuthError(429, 'too_many_requests', 'Too many messages. Try again later.');
  if (isSms) await deps.limitDestination(`sms\n${to}`);
  try {
    await (isSms ? deps.sendSms({ ...message, to }) : deps.sendEmail({ ...message, to }));
    await showEditor(deps, ctx, session, { ...editor, sent: to });
  } catch (thrown) {
    if (!(thrown instanceof DeliveryError)) throw thrown;
    await showEditor(deps, ctx, session, { ...editor, alert: { text: thrown.message } });
  }
}

const NO_NUMBER: FormFault = { status: 400, field: 'number', key: 'console.branding.noNumber' };

// The editor of one message: its form, its preview and its faults.

interface Editor {
  message: Message;
  templateTexts: TemplateTexts;
  draft?: Draft;
  /** Whether an action was refused because the template is broken. */
  isRefused?: boolean;
  /** The refusal, by the Management API or by the page. */
  fault?: FormFault;
  alert?: DisplayText;
  /** The address or number that it was sent to. */
  sent?: string;
}

const changeScope = ({ connection }: Message) =>
  connection === undefined ? 'update:email_templates' : 'update:connections';

const pathOf = ({ name }: Message) => `${PATH}/messages/${name}`;

/** Renders a message from an entered or saved template, in the requested language. */
function renderDraft(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  message: Message,
  templateTexts: TemplateTexts,
): Promise<Draft> {
  const language = languageOf(deps, bodyTexts(ctx).language ?? ctx.query.language);
  return draftOf(deps, message, { templateTexts, language, to: session.administrator.email });
}

const FIELDS = ['from', 'subject', 'body', 'number'] as const;
type FieldName = (typeof FIELDS)[number];

/** Returns the faults by field: errors of rendering, and a refusal. */
function faultsOf(broken: Draft['faults'], fault?: FormFault): Partial<Record<FieldName, FormFault>> {
  const rendered = Object.entries(broken).map(([name, message]) => [
    name,
    { status: 400, message, isEnglish: true },
  ]);
  // For a connection's message the API names the option: `options.email.subject`, and `options.template` for the
  // text.
  const last = (fault?.at ?? fault?.field ?? '').split(/\W/).at(-1) ?? '';
  return { ...Object.fromEntries(rendered), ...(fault && { [last === 'template' ? 'body' : last]: fault }) };
}

function labelOf(name: FieldName, isSms: boolean): DisplayText {
  if (name === 'number') return 't:console.branding.number';
  if (name === 'body') return isSms ? 't:console.branding.message.text' : 't:console.branding.message.html';
  return `t:console.branding.message.${name}`;
}

interface BrandingMessageModel {
  tab: string;
  path: string;
  message: ShownMessage;
  isSms: boolean;
  written: TemplateTexts;
  faults: Partial<Record<FieldName, FormFault>>;
  subject: string | undefined;
  from: string | undefined;
  language: string;
  languages: ShownLanguage[];
  mayChange: boolean;
  sent: string | undefined;
  number: string | undefined;
  frameUrl: string;
}

export const BRANDING_MESSAGE_PAGE = declareConsolePage<BrandingMessageModel>('console/branding-message');

async function showEditor(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  { message, templateTexts, draft, isRefused = false, fault, alert, sent }: Editor,
): Promise<void> {
  const language = languageOf(deps, bodyTexts(ctx).language ?? ctx.query.language);
  const { message: shown, faults: broken } =
    draft ?? (await renderDraft(deps, ctx, session, message, templateTexts));
  const isSms = shown.channel === 'sms';
  const faults = faultsOf(broken, fault);
  const [first] = FIELDS.filter((name) => faults[name] !== undefined);
  const shownFault = fault ?? (isRefused && first !== undefined ? faults[first] : undefined);
  const query = new URLSearchParams({ language, _csrf: session.token });
  await renderConsole(deps, ctx, session, {
    page: BRANDING_MESSAGE_PAGE,
    title: 't:console.branding.tab.messages',
    ...(alert === undefined
      ? refusalOptions(shownFault, first && { id: first, label: labelOf(first, isSms) })
      : { alert, status: 400 }),
    model: {
      tab: 'messages',
      path: PATH,
      message: shownMessage(message),
      isSms,
      written: templateTexts,
      faults,
      subject: shown.channel === 'email' ? shown.subject : undefined,
      from: shown.from,
      language,
      languages: languagesOf(deps).filter(({ isEnabled }) => isEnabled),
      mayChange: session.can(changeScope(message)),
      sent,
      number: bodyTexts(ctx).number,
      frameUrl: `${pathOf(message)}/preview?${query}`,
    },
  });
}

function shownMessage({ name, kind, connection, isOwn, templateTexts }: Message): ShownMessage {
  return {
    name,
    kind,
    connection: connection?.name,
    path: `${PATH}/messages/${name}`,
    isOwn,
    isOff: templateTexts.enabled === false,
  };
}
