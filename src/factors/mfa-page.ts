// A visit of the second factor's pages: who has come so far, by which ways they may go on, and what stopped them.
import type { Context } from 'koa';
import {
  type HostedDependencies,
  openRequestPage,
  type RequestPage,
  requestLanguages,
} from '../flow/request-page.ts';
import { AuthError } from '../http/errors.ts';
import type { User } from '../users/user.ts';
import { FACTORS } from './authenticators.ts';
import type { EnrollDependencies } from './enroll.ts';
import { enabledFactors, type FactorType } from './policy.ts';
import { activeAuthenticators } from './second-factor.ts';
import type { Giver } from './verify.ts';

export interface MfaPagesDependencies extends HostedDependencies, EnrollDependencies {}

/** What is kept of the pages beside the request, by the server. */
export interface PageState {
  way?: FactorType | undefined;
  authenticatorId?: string | undefined;
  oobCode?: string | undefined;
  number?: string | undefined;
  barcodeUri?: string | undefined;
  /** The factor was given, by `way`; what is left is to see the recovery code. */
  passed?: boolean;
}

/** A visit of somebody who has given the first factor. */
export interface MfaVisit {
  visit: RequestPage;
  user: User;
  giver: Giver;
  state: PageState;
}

const WAYS: FactorType[] = ['push-notification', 'otp', 'phone', 'email', 'recovery-code'];
/** @returns undefined when no second factor is wanted here, and the browser was sent on. */
export async function openMfa(deps: MfaPagesDependencies, ctx: Context): Promise<MfaVisit | undefined> {
  const visit = await openRequestPage(deps, ctx);
  const { firstFactor, remembered, uid } = visit.pending;
  const user = firstFactor === undefined ? undefined : await deps.users.get(firstFactor.userId);
  if (firstFactor === undefined || user === undefined) {
    ctx.redirect(`/u/${uid}`);
    return undefined;
  }
  const { credentialVersion } = firstFactor;
  const giver = { user, credentialVersion, clientId: visit.client.client_id, ip: ctx.ip };
  return { visit, user, giver, state: remembered as PageState };
}

/** The ways that there are: those that the user has, or, who has none, those that can be enrolled. */
export interface Ways {
  enrolling: boolean;
  types: FactorType[];
}

/** The ways of a visit, the safest first. */
export async function waysOf(deps: MfaPagesDependencies, { user }: MfaVisit): Promise<Ways> {
  const active = await activeAuthenticators(deps, user);
  const enrolling = active.length === 0;
  const factors = enrolling
    ? [...enabledFactors(deps.config)].filter((factor) => factor !== 'recovery-code')
    : active.map(({ kind }) => FACTORS[kind]);
  return { enrolling, types: WAYS.filter((way) => factors.includes(way)) };
}

/** What enrolling and challenging are told of a visit. */
export function requestOf(ctx: Context, { user, giver: { credentialVersion }, visit }: MfaVisit) {
  return {
    user,
    credentialVersion,
    clientId: visit.client.client_id,
    ip: ctx.ip,
    languages: requestLanguages(ctx, visit),
  };
}

/** Failures that the person at the page can do something about; others are thrown on. */
export function alertOf(thrown: unknown): { alert: string; status: number } {
  const alerts: Record<string, string> = {
    too_many_attempts: 'mfa.locked',
    too_many_requests: 'mfa.tooMany',
    temporarily_unavailable: 'mfa.notSent',
    invalid_phone_number: 'mfa.sms.invalid',
    invalid_request: 'mfa.email.invalid',
    association_required: 'mfa.expired',
    invalid_authenticator: 'mfa.expired',
  };
  const isOver = thrown instanceof AuthError && thrown.extra.reason === 'request_expired';
  const alert = thrown instanceof AuthError && !isOver ? alerts[thrown.error] : undefined;
  if (!(thrown instanceof AuthError) || alert === undefined) throw thrown;
  return { alert, status: thrown.status === 401 ? 400 : thrown.status };
}
