// The hosted pages of the second factor: /u/<uid>/mfa and what is posted from there.
import type { Context } from 'koa';
import { stepPath } from '../flow/request-page.ts';
import { formFields } from '../http/body-fields.ts';
import { AuthError } from '../http/errors.ts';
import { PAGE, type Route } from '../http/routes.ts';
import { FACTORS } from './authenticators.ts';
import { startChallenge } from './challenge.ts';
import { type Enrollment, enroll } from './enroll.ts';
import { numberOf } from './message/countries.ts';
import {
  alertOf,
  type MfaPagesDependencies,
  type MfaVisit,
  openMfa,
  type PageState,
  requestOf,
  type Ways,
  waysOf,
} from './mfa-page.ts';
import { showChallenge, showChoice, showEnrollment, showNewRecoveryCode } from './page-views.ts';
import { enabledFactors, type FactorType, MFA_POLICY } from './policy.ts';
import { activeAuthenticators } from './second-factor.ts';
import { type Given, giveOob, giveOtp, giveRecoveryCode } from './verify.ts';

const KINDS = { otp: 'otp', phone: 'sms', email: 'email', 'push-notification': 'push' } as const;

/** The routes of the second factor's pages. */
export function mfaPages(deps: MfaPagesDependencies): Route[] {
  const at = (
    method: 'GET' | 'POST',
    path: string,
    handle: (ctx: Context, mfa: MfaVisit) => Promise<void>,
  ): Route => ({
    ...PAGE,
    methods: [method],
    path: `/u/:uid/mfa${path}`,
    handle: async (ctx) => {
      const mfa = await openMfa(deps, ctx);
      if (mfa === undefined) return;
      if (method === 'POST') deps.csrf.verify(ctx);
      await handle(ctx, mfa);
    },
  });
  return [
    at('GET', '', (ctx, mfa) => showFirst(deps, ctx, mfa)),
    at('GET', '/choose', async (ctx, mfa) => showChoice(deps, ctx, mfa, await waysOf(deps, mfa))),
    at('GET', '/status', (ctx, mfa) => answerStatus(deps, ctx, mfa)),
    at('POST', '/recovery-code-saved', (ctx, mfa) => postSaved(deps, ctx, mfa)),
    at('GET', '/:way', (ctx, mfa) => showWay(deps, ctx, mfa)),
    at('POST', '/:way', (ctx, mfa) => postWay(deps, ctx, mfa)),
    at('POST', '/:way/resend', (ctx, mfa) => postResend(deps, ctx, mfa)),
  ];
}

async function showFirst(deps: MfaPagesDependencies, ctx: Context, mfa: MfaVisit): Promise<void> {
  if (mfa.state.passed === true) return showNewRecoveryCode(deps, ctx, mfa);
  const { types, enrolling } = await waysOf(deps, mfa);
  const [first, ...others] = types;
  // Who enrols chooses; who has enrolled gets what is safest first, and may choose another.
  if (first === undefined || (enrolling && others.length > 0)) {
    return showChoice(deps, ctx, mfa, { enrolling, types });
  }
  ctx.redirect(stepPath(mfa.visit.pending, `mfa/${first}`));
}

async function wayOf(
  deps: MfaPagesDependencies,
  ctx: Context,
  mfa: MfaVisit,
): Promise<{ way: FactorType; ways: Ways }> {
  const ways = await waysOf(deps, mfa);
  const way = ways.types.find((type) => type === ctx.params.way);
  if (way === undefined || mfa.state.passed === true) {
    throw new AuthError(400, 'invalid_request', 'This way is not open.', {
      extra: { reason: 'request_expired' },
    });
  }
  return { way, ways };
}

async function showWay(deps: MfaPagesDependencies, ctx: Context, mfa: MfaVisit): Promise<void> {
  const { way, ways } = await wayOf(deps, ctx, mfa);
  if (ways.enrolling) return beginEnrollment(deps, ctx, mfa, way, ways);
  const { state } = mfa;
  // Looking at the page again sends nothing again.
  const isOpen =
    state.way === way && state.oobCode !== undefined && (await deps.oob.find(state.oobCode)) !== undefined;
  if (isOpen || way === 'otp' || way === 'recovery-code') return showChallenge(deps, ctx, mfa, { way, ways });
  await ask(deps, ctx, mfa, way, ways);
}

/** Sends a code, or asks a device, and shows where to go on. */
async function ask(
  deps: MfaPagesDependencies,
  ctx: Context,
  mfa: MfaVisit,
  way: FactorType,
  ways: Ways,
): Promise<void> {
  const active = await activeAuthenticators(deps, mfa.user);
  const authenticator = active.find(({ kind }) => FACTORS[kind] === way);
  try {
    const started = await startChallenge(deps, requestOf(ctx, mfa), { authenticatorId: authenticator?.id });
    const state: PageState = {
      way,
      oobCode: started.oobCode,
      authenticatorId: started.authenticator.id,
      number: started.number,
    };
    await deps.interactions.remember(ctx, { ...state });
    await showChallenge(deps, ctx, { ...mfa, state }, { way, ways });
  } catch (thrown) {
    const { alert, status } = alertOf(thrown);
    await showChoice(deps, ctx, mfa, ways, { alert, status });
  }
}

async function beginEnrollment(
  deps: MfaPagesDependencies,
  ctx: Context,
  mfa: MfaVisit,
  way: FactorType,
  ways: Ways,
): Promise<void> {
  const { state } = mfa;
  const isBegun = state.way === way && state.authenticatorId !== undefined;
  if (isBegun || way === 'phone' || way === 'email') return showEnrollment(deps, ctx, mfa, { way, ways });
  await enrollAs(deps, ctx, mfa, { kind: KINDS[way as 'otp' | 'push-notification'] } as Enrollment, {
    way,
    ways,
  });
}

async function enrollAs(
  deps: MfaPagesDependencies,
  ctx: Context,
  mfa: MfaVisit,
  wanted: Enrollment,
  at: { way: FactorType; ways: Ways },
): Promise<void> {
  try {
    const { authenticator, barcodeUri, oobCode } = await enroll(deps, requestOf(ctx, mfa), wanted);
    const state: PageState = {
      way: at.way,
      authenticatorId: authenticator.id,
      oobCode,
      // An app's holds the secret, which is kept sealed and nowhere else.
      barcodeUri: wanted.kind === 'push' ? barcodeUri : undefined,
    };
    await deps.interactions.remember(ctx, { ...state });
    await showEnrollment(deps, ctx, { ...mfa, state }, at);
  } catch (thrown) {
    const { alert, status } = alertOf(thrown);
    const { address } = formFields(ctx, 'address');
    await showEnrollment(deps, ctx, mfa, at, { alert, status, address });
  }
}

async function postWay(deps: MfaPagesDependencies, ctx: Context, mfa: MfaVisit): Promise<void> {
  const { way, ways } = await wayOf(deps, ctx, mfa);
  const { address, country, code } = formFields(ctx, 'address', 'country', 'code');
  if (ways.enrolling && (way === 'phone' || way === 'email') && code === '') {
    const phoneNumber = numberOf(address, country) ?? address;
    const wanted: Enrollment =
      way === 'phone' ? { kind: 'sms', phoneNumber } : { kind: 'email', email: address };
    return enrollAs(deps, ctx, mfa, wanted, { way, ways });
  }
  const show = ways.enrolling ? showEnrollment : showChallenge;
  const again = (alert: string, status: number) => show(deps, ctx, mfa, { way, ways }, { alert, status });
  if (code === '' && way !== 'push-notification') return again('mfa.missing', 400);
  try {
    const given = await give(deps, mfa, way, code.replace(/[\s-]/g, ''));
    if (given.ok)
      return await pass(deps, ctx, mfa, { way, enrolled: ways.enrolling, recovered: given.recoveryCode });
    await again(OUTCOMES[given.outcome] ?? 'mfa.wrong', 400);
  } catch (thrown) {
    const { alert, status } = alertOf(thrown);
    await again(alert, status);
  }
}

const OUTCOMES: Partial<Record<Extract<Given, { ok: false }>['outcome'], string>> = {
  pending: 'mfa.pending',
  'too-fast': 'mfa.pending',
  rejected: 'mfa.rejected',
  unknown: 'mfa.expired',
};

function give(
  deps: MfaPagesDependencies,
  { giver, state }: MfaVisit,
  way: FactorType,
  code: string,
): Promise<Given> {
  if (way === 'otp') return giveOtp(deps, giver, code);
  if (way === 'recovery-code') return giveRecoveryCode(deps, giver, code);
  return giveOob(deps, giver, state.oobCode ?? '', way === 'push-notification' ? undefined : code);
}

/** The second factor was given: a new recovery code is shown where there is one, then the request goes on. */
async function pass(
  deps: MfaPagesDependencies,
  ctx: Context,
  mfa: MfaVisit,
  { way, enrolled, recovered }: { way: FactorType; enrolled: boolean; recovered: string | undefined },
): Promise<void> {
  const { remember } = formFields(ctx, 'remember');
  await deps.browsers.note(
    ctx,
    { userId: mfa.user.id, credentialVersion: mfa.giver.credentialVersion },
    { remember: remember === 'yes' },
  );
  const shows = recovered !== undefined || (enrolled && enabledFactors(deps.config).has('recovery-code'));
  if (!shows) return finish(deps, ctx, mfa, way);
  const state: PageState = { passed: true, way };
  await deps.interactions.remember(ctx, { ...state });
  await showNewRecoveryCode(deps, ctx, { ...mfa, state });
}

async function postSaved(deps: MfaPagesDependencies, ctx: Context, mfa: MfaVisit): Promise<void> {
  if (mfa.state.passed !== true) return showFirst(deps, ctx, mfa);
  if (formFields(ctx, 'saved').saved !== 'yes') return showNewRecoveryCode(deps, ctx, mfa, 'mfa.unsaved');
  await finish(deps, ctx, mfa, mfa.state.way);
}

/** What a factor proves (RFC 8176 §2); others have no word of their own. */
const METHODS: Partial<Record<FactorType, readonly string[]>> = { otp: ['otp'], phone: ['sms'] };

function finish(
  deps: MfaPagesDependencies,
  ctx: Context,
  { user }: MfaVisit,
  way: FactorType | undefined,
): Promise<void> {
  const methods = (way === undefined ? undefined : METHODS[way]) ?? [];
  return deps.interactions.secondFactor(ctx, { userId: user.id, acr: MFA_POLICY, methods });
}

async function postResend(deps: MfaPagesDependencies, ctx: Context, mfa: MfaVisit): Promise<void> {
  const { way, ways } = await wayOf(deps, ctx, mfa);
  if (ways.enrolling) {
    await deps.interactions.remember(ctx, {});
    return showEnrollment(deps, ctx, { ...mfa, state: {} }, { way, ways });
  }
  if (!(await deps.limits.spend('passwordlessResend', `mfa\n${mfa.user.id}`))) {
    return showChallenge(deps, ctx, mfa, { way, ways }, { alert: 'passwordless.tooSoon', status: 429 });
  }
  await ask(deps, ctx, mfa, way, ways);
}

/** Whether the device has answered: the page goes on by itself then. */
async function answerStatus(deps: MfaPagesDependencies, ctx: Context, { state }: MfaVisit): Promise<void> {
  const challenge = state.oobCode === undefined ? undefined : await deps.oob.find(state.oobCode);
  ctx.set('Cache-Control', 'no-store');
  ctx.body = { state: challenge?.state ?? 'expired' };
}
