// A hosted page's visitor: the authorization request that waits in this browser, and its pages. Shared by the
// features that have a step in it.
import type { Context } from 'koa';
import {
  type Interactions,
  interactionPath,
  type PendingInteraction,
  requestExpired,
} from '../engine/interaction.ts';
import type { Csrf } from '../http/csrf.ts';
import type { AuthError } from '../http/errors.ts';
import { type Languages, languagesOf } from '../http/languages.ts';
import type { Views } from '../pages/views.ts';
import { THROTTLED } from '../protection/counts.ts';
import type { Client, Connection } from '../records/collections.ts';
import type { Config } from '../tenant/config.ts';

export interface HostedDependencies {
  config: Config;
  interactions: Interactions;
  views: Views;
  csrf: Csrf;
}

/** A request that waits for its user, with what its pages need to know. */
export interface Visit {
  pending: PendingInteraction;
  client: Client;
  csrf: string;
}

/** What every page of a request shows. */
export interface PageModel {
  /** Where the form posts. */
  action: string;
  csrf: string;
  client: { name: string; logo?: string };
  /** A message key. */
  alert?: string;
}

/** @throws AuthError 400 when this browser has no such request waiting. */
export async function openVisit(deps: HostedDependencies, ctx: Context): Promise<Visit> {
  const pending = await deps.interactions.pending(ctx);
  const client = await deps.config.client(pending.clientId);
  if (client === undefined || pending.uid !== ctx.params.uid) throw requestExpired();
  return { pending, client, csrf: deps.csrf.token(ctx) };
}

/** The path of a step of a request. */
export function stepPath({ uid }: PendingInteraction, step: string): string {
  return `${interactionPath(uid)}/${step}`;
}

/** What a step's page shows, whatever else it does. */
export function pageModel({ pending, client, csrf }: Visit, step: string): PageModel {
  const { name, logo_uri: logo } = client;
  return {
    action: stepPath(pending, step),
    csrf,
    client: { name, ...(logo === undefined ? {} : { logo }) },
  };
}

/** Answers with a page of the request, in its language; its form may lead to the request's callback. */
export function renderPage(
  deps: Pick<HostedDependencies, 'views'>,
  ctx: Context,
  visit: Visit,
  template: string,
  model: object,
  status = 200,
): Promise<void> {
  const { ui_locales: uiLocales, redirect_uri: formAction } = visit.pending.params;
  return deps.views.page(ctx, template, model, { status, uiLocales, formAction });
}

/** In which languages the visitor wants to be written to: the request's word comes before the browser's. */
export function visitLanguages(ctx: Context, { pending }: Visit): Languages {
  return languagesOf(ctx, pending.params.ui_locales);
}

/** Whether the request waits for somebody to log in, or to choose an account, rather than for a consent. */
export function waitsForLogin({ prompt }: Pick<PendingInteraction, 'prompt'>): boolean {
  return prompt === 'login' || prompt === 'select_account';
}

/** A way to log in, as a page offers it. */
export interface LoginChoice {
  url: string;
  /** A message key; `name` goes with it where there is none for the strategy. */
  text: string;
  name?: string;
}

const PASSWORDLESS = { email: 'login.emailCode', sms: 'login.smsCode' } as const;

/** The step of a passwordless connection. */
export function passwordlessStep(connection: Connection): string | undefined {
  const { strategy, name } = connection;
  return strategy === 'email' || strategy === 'sms' ? `passwordless/${name}` : undefined;
}

/** Whether a request may be completed by a login through a connection: where it names one, by that one alone. */
export function takesConnection({ params }: PendingInteraction, { name }: { name: string }): boolean {
  return params.connection === undefined || params.connection === name;
}

/** The passwordless connections of the request's application, as choices; none where the request has made its own. */
export async function passwordlessChoices(
  config: Config,
  { pending, client }: Visit,
): Promise<LoginChoice[]> {
  if (pending.params.connection !== undefined) return [];
  return (await config.connectionsOf(client.client_id)).flatMap((connection) => {
    const step = passwordlessStep(connection);
    if (step === undefined) return [];
    return [{ url: stepPath(pending, step), text: PASSWORDLESS[connection.strategy as 'email' | 'sms'] }];
  });
}

/** What a page says of a 429: what one can do about it differs. @returns a message key; undefined for other errors. */
export function tooManyAlert({ error, error_description }: AuthError): string | undefined {
  if (error === 'too_many_requests') return 'login.locked';
  if (error !== 'too_many_attempts') return undefined;
  return error_description === THROTTLED ? 'login.throttled' : 'login.blocked';
}
