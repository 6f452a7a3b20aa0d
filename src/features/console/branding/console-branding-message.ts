// Messages whose templates the tenant can replace, with their current templates: e-mails by kind, and messages of
// passwordless connections, which are part of the connection's options.

import type { Context } from 'koa';
import type { EmailKind, MessageKind, Notice } from '../../../capabilities/delivery/delivery-messages.ts';
import type { Draft } from '../../../capabilities/delivery/delivery-templates.ts';
import type { DraftTemplate } from '../../../capabilities/delivery/tenant-template.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Connection } from '../../../records/collections.ts';
import type { User } from '../../../users/user.ts';
import { email } from '../../connections/passwordless/email.ts';
import { sms } from '../../connections/passwordless/sms.ts';
import { callApi, callApiIfFound } from '../api-calls.ts';
import type { ConsoleSession } from '../console-session.ts';
import type { BrandingDependencies } from './shared.ts';

/** The kinds of e-mail that have a template, and what each contains. */
const KINDS: Readonly<Partial<Record<EmailKind, 'link' | 'code' | 'nothing'>>> = {
  verify_email: 'link',
  reset_email: 'link',
  welcome_email: 'nothing',
  blocked_account: 'link',
  user_invitation: 'link',
  enrollment_email: 'link',
  mfa_oob_code: 'code',
  async_approval: 'link',
};

/** The names of all kinds of e-mail that have a template. */
export const EMAILS = Object.keys(KINDS) as EmailKind[];

/** A template as form fields. An empty text stands for the default. */
export interface TemplateTexts {
  from: string;
  subject: string;
  body: string;
  /** Whether the message is sent at all; only for kinds of e-mail. */
  enabled?: boolean;
}

export interface Message {
  /** The name in paths: a kind, or the id of a connection. */
  name: string;
  kind: MessageKind;
  connection?: Connection;
  templateTexts: TemplateTexts;
  /** Whether the tenant has replaced any of its texts. */
  isOwn: boolean;
  isStored: boolean;
}

export const isOfConnection = (name: string) => name.startsWith('con_');

/** @throws AuthError 404 */
export async function messageAt(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  name: string,
): Promise<Message> {
  if (isOfConnection(name)) return connectionMessage(deps, ctx, session, name);
  const kind = EMAILS.find((one) => one === name);
  if (kind === undefined) throw new AuthError(404, 'not_found', 'Not Found');
  const stored = await storedTemplate(deps, ctx, session, kind);
  const templateTexts = {
    ...textsIn(stored ?? {}),
    // The default: all are sent except welcome mails.
    enabled: stored === undefined ? kind !== 'welcome_email' : stored.enabled !== false,
  };
  return { name, kind, templateTexts, isStored: stored !== undefined, isOwn: isOwn(templateTexts) };
}

async function storedTemplate(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  templateName: string,
): Promise<Record<string, unknown> | undefined> {
  const input = { params: { templateName } };
  const answer = await callApiIfFound(deps, ctx, session, 'GET /email-templates/:templateName', input);
  return answer?.body as Record<string, unknown> | undefined;
}

async function connectionMessage(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  id: string,
): Promise<Message> {
  const { body } = await callApi(deps, ctx, session, 'GET /connections/:id', { params: { id } });
  const connection = body as Connection;
  const { strategy, options } = connection;
  if (strategy !== email.name && strategy !== sms.name) throw new AuthError(404, 'not_found', 'Not Found');
  const templateTexts =
    strategy === sms.name
      ? textsIn({ from: options.from, body: options.template })
      : textsIn((options.email ?? {}) as Record<string, unknown>);
  const kind = strategy === sms.name ? 'passwordless_sms' : 'passwordless_email';
  return { name: id, kind, connection, templateTexts, isStored: true, isOwn: isOwn(templateTexts) };
}

function textsIn({ from, subject, body }: Readonly<Record<string, unknown>>): TemplateTexts {
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  return { from: text(from), subject: text(subject), body: text(body) };
}

const isOwn = ({ from, subject, body }: TemplateTexts) =>
  [from, subject, body].some((text) => text.trim() !== '');

/** Saves a template; an empty text restores the default. @throws AuthError 400 */
export async function writeMessage(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  message: Message,
  templateTexts: TemplateTexts,
): Promise<void> {
  const { from, subject, body } = templateTexts;
  const texts = {
    from: from.trim() || null,
    subject: subject.trim() || null,
    body: body.trim() === '' ? null : body,
  };
  if (message.connection !== undefined) return writeOptions(deps, ctx, session, message.connection, texts);
  const { name, isStored } = message;
  const enabled = templateTexts.enabled ?? true;
  if (isStored) {
    const input = { params: { templateName: name }, body: { ...texts, enabled } };
    await callApi(deps, ctx, session, 'PATCH /email-templates/:templateName', input);
  } else {
    const template = { template: name, ...texts, syntax: 'liquid', enabled };
    await callApi(deps, ctx, session, 'POST /email-templates', { body: template });
  }
}

async function writeOptions(
  deps: BrandingDependencies,
  ctx: Context,
  session: ConsoleSession,
  { id, strategy, options: before }: Connection,
  { from, subject, body }: Record<'from' | 'subject' | 'body', string | null>,
): Promise<void> {
  const withoutNulls = (all: Record<string, string | null>) =>
    Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null));
  const { template: _template, from: _from, email: _email, ...others } = before;
  const options =
    strategy === sms.name
      ? { ...others, ...withoutNulls({ from, template: body }) }
      : { ...others, email: { ...withoutTexts(before.email), ...withoutNulls({ from, subject, body }) } };
  await callApi(deps, ctx, session, 'PATCH /connections/:id', { params: { id }, body: { options } });
}

function withoutTexts(email: unknown): object {
  const { from: _from, subject: _subject, body: _body, ...rest } = (email ?? {}) as Record<string, unknown>;
  return rest;
}

export function draftOf(
  { templates, baseUrl }: Pick<BrandingDependencies, 'templates' | 'baseUrl'>,
  { kind, connection }: Pick<Message, 'kind' | 'connection'>,
  { templateTexts, language, to }: { templateTexts: TemplateTexts; language: string; to: string },
): Promise<Draft> {
  const content =
    kind === 'passwordless_email' || kind === 'passwordless_sms' ? 'code' : KINDS[kind as EmailKind];
  const notice: Notice = {
    to: kind === 'passwordless_sms' ? '+15550100123' : to,
    user: EXAMPLE_USER,
    inviter: { name: 'Grace Hopper' },
    languages: [language],
    ...(connection && { connection }),
    ...(content === 'link' && { url: `${baseUrl}/#example` }),
    ...(content === 'code' && { code: '123456' }),
  };
  const texts = Object.entries(templateTexts).filter(
    ([, text]) => typeof text === 'string' && text.trim() !== '',
  );
  return templates.draft(kind, notice, Object.fromEntries(texts) as DraftTemplate);
}

const EXAMPLE_USER: User = {
  id: 'auth0|example',
  email: 'ada.lovelace@example.com',
  email_verified: true,
  name: 'Ada Lovelace',
  given_name: 'Ada',
  family_name: 'Lovelace',
  nickname: 'ada',
  user_metadata: {},
  app_metadata: {},
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
  logins_count: 1,
};
