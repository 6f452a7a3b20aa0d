// When the browser's user is asked for something: log in, choose an account, consent.
import type { Context } from 'koa';
import { interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider';
import { isByConnection } from './admission.ts';
import { readNotes } from './implicit.ts';
import type { SecondFactor } from './second-factor.ts';
import { credentialVersionOf, factorsOf, type SettleDependencies, settle } from './settle.ts';
import { wantedOf } from './step-up.ts';

const { Check, Prompt, base } = interactionPolicy;

/** The descriptions of login_required and consent_required that SDKs know. */
const LOGIN_REQUIRED = 'Login required';
const CONSENT_REQUIRED = 'Consent required';

export interface PolicyDependencies extends SettleDependencies {
  secondFactor: SecondFactor;
}

/** The engine's interaction policy: its own, with the account choice, our texts, and our consent rules. */
export function policy(deps: PolicyDependencies): interactionPolicy.Prompt[] {
  const { secondFactor } = deps;
  const prompts = base();
  const login = prompts.get('login');
  const consent = prompts.get('consent');
  if (login === undefined || consent === undefined) throw new Error('the engine has no such prompts');
  login.checks.add(new Check('connection', LOGIN_REQUIRED, 'login_required', wrongConnection));
  login.checks.add(new Check('login_ticket', LOGIN_REQUIRED, 'login_required', bringsTicket));
  login.checks.add(
    new Check(MFA_REASON, MFA_REQUIRED, 'login_required', (ctx) => lacksSecondFactor(secondFactor, ctx)),
  );
  // "native" here is any application with a custom scheme; the hosted service asks nothing extra of them.
  consent.checks.remove('native_client_prompt');
  for (const check of login.checks) {
    if (check.reason !== MFA_REASON) check.description = LOGIN_REQUIRED;
  }
  for (const check of consent.checks) check.description = CONSENT_REQUIRED;
  prompts.add(new Prompt({ name: 'select_account', requestable: true }), 0);
  const stored = new Check('stored', 'never asked', async (ctx) => {
    await settle(deps, ctx);
    return Check.NO_NEED_TO_PROMPT;
  });
  prompts.add(new Prompt({ name: 'settle' }, stored), 0);
  prompts.add(new Prompt({ name: 'grant' }, new Check('saved', 'never asked', saveGrant)));
  return prompts;
}

/** Why a session is not enough: it has had no second factor. */
export const MFA_REASON = 'mfa';
/** SDKs compare this description letter by letter. */
export const MFA_REQUIRED = 'Multifactor authentication required';

/** A session of one factor does not answer a request that needs two. */
async function lacksSecondFactor(secondFactor: SecondFactor, ctx: KoaContextWithOIDC): Promise<boolean> {
  const { session, result, client, params } = ctx.oidc;
  if (session?.accountId === undefined || client === undefined) return Check.NO_NEED_TO_PROMPT;
  // A login that ends in this request was judged where it ended.
  if (result?.login !== undefined) return Check.NO_NEED_TO_PROMPT;
  const demanded = await secondFactor.isDemanded({
    userId: session.accountId,
    clientId: client.clientId,
    amr: session.amr ?? [],
    credentialVersion: credentialVersionOf(session),
    factors: factorsOf(session),
    ...wantedOf(params),
    browser: true,
    ctx: ctx as unknown as Context,
  });
  return demanded ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT;
}

/** A login done before the request is taken in by the login's page, whoever is logged in already. */
function bringsTicket({ oidc }: KoaContextWithOIDC): boolean {
  const brings = readNotes(oidc.params ?? {}).loginTicket !== undefined;
  return brings && oidc.result?.login === undefined ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT;
}

/** A session that came by another connection does not answer a request for this one. */
function wrongConnection({ oidc }: KoaContextWithOIDC): boolean {
  const { session, params, result } = oidc;
  // A login that ends in this request was judged where it ended.
  if (session?.accountId === undefined || result?.login !== undefined) return Check.NO_NEED_TO_PROMPT;
  const { connection } = session as { connection?: string };
  return isByConnection(params?.connection, connection) ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT;
}

/**
 * Prompts are asked in order, so when this one's turn comes all others are content and the response is
 * about to be issued: the moment to keep the grant, which a request that still waits for the user or
 * fails must not leave behind.
 */
async function saveGrant({ oidc }: KoaContextWithOIDC): Promise<boolean> {
  const { grant, session, client } = oidc;
  if (grant !== undefined && session !== undefined && client !== undefined) {
    const { uid: sessionUid, amr = [] } = session;
    const credentialVersion = credentialVersionOf(session);
    Object.assign(grant, { sessionUid, amr, credentialVersion, factors: factorsOf(session) });
    session.grantIdFor(client.clientId, await grant.save());
  }
  return Check.NO_NEED_TO_PROMPT;
}
